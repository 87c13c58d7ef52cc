"""The version of PySpark that is at hand."""

from __future__ import annotations

from typing import Final

import pyspark

from eddyline.quirks.minor_versions import minor_version

MINOR: Final = minor_version(pyspark.__version__)
"""Its first two numbers."""
