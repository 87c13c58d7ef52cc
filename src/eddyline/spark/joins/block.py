"""A join block as plain data: what travels from the plan rewrite to the workers."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.query.join_query import JoinQuery
from eddyline.spark.filter_block import SessionSettings, UserFunction


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """The claimed joins and predicates of a region.

    ``sizes`` are Spark's estimates of each input in bytes. ``texts`` shows each predicate
    as the user would recognize it, ``output_types`` are Spark's, as JSON.
    """

    identity: str
    query: JoinQuery
    functions: tuple[UserFunction, ...]
    settings: SessionSettings
    sizes: tuple[int, ...]
    texts: tuple[str, ...]
    output_types: tuple[str, ...]
