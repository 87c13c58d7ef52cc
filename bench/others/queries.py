"""The queries, which were written from the documentation alone, in three groups."""

from __future__ import annotations

from typing import Final

from bench.others.everyday import EVERYDAY
from bench.others.few_rows import FEW_ROWS
from bench.others.pipelines import PIPELINES

QUERIES: Final = (*PIPELINES, *EVERYDAY, *FEW_ROWS)
