"""A join block as plain data: what travels from the plan rewrite to the workers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from eddyline.asking.driver_channel import Address
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, UserFunction
from eddyline.blocks.lookup_table import BlockLookup
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.prior import Prior


class Counted(StrEnum):
    """What a row of the result is, where rows stay in the JVM and each has its matches."""

    MATCHES = "a match"
    MATCHES_OR_ROW = "a match, or a row without any"
    MATCHED = "a row with matches"
    UNMATCHED = "a row without"
    ROWS = "a row"


@dataclass(frozen=True)
class JoinBlock:
    """The claimed joins and predicates of a region.

    ``sizes`` are Spark's estimates of each input in bytes, ``output_types`` are Spark's, as
    JSON, ``column_names`` what each input's columns are, as text, and ``layout`` says how the
    inputs meet. ``lookups`` are those of the query, in its order, which ``server`` makes.
    ``notes`` say in words why the eddy joins, and what reduces its inputs before; ``reduced`` is
    whether anything does. ``limit`` is how many rows a limit above keeps of each task's, 0 where
    there is none; a task that has given as many ``stops`` if nothing between drops any.
    ``counted`` says what counts as one. At ``learned_at`` tasks ask what others have learned.
    """

    identity: str
    query: JoinQuery
    functions: tuple[UserFunction, ...]
    settings: SessionSettings
    sizes: tuple[int, ...]
    output_types: tuple[str, ...]
    column_names: tuple[tuple[str, ...], ...]
    layout: str = ""
    lookups: tuple[BlockLookup, ...] = ()
    server: Address | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    reduced: bool = False
    limit: int = 0
    stops: bool = False
    counted: Counted = Counted.MATCHES
    learned_at: Address | None = field(default=None, compare=False, repr=False)

    @cached_property
    def graph(self) -> JoinGraph:
        """The join graph of the query, made when it is first asked for."""
        return JoinGraph(self.query)

    def __getstate__(self) -> dict[str, object]:
        """Leave out the graph, so that equal blocks have equal pickles."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}

    @property
    def priors(self) -> tuple[Prior | None, ...]:
        """What is known of the query's predicates beforehand."""
        return self.query.priors

    def with_priors(self, priors: tuple[Prior | None, ...]) -> JoinBlock:
        """Return the same block, with something else known beforehand."""
        return replace(self, query=replace(self.query, priors=priors))

    @property
    def scanned(self) -> tuple[int, ...]:
        """The inputs whose rows travel; those of the others are looked up."""
        relations = self.query.relations
        return tuple(r for r, relation in enumerate(relations) if relation.scan)

    @property
    def steps(self) -> tuple[str, ...]:
        """What an order consists of, as people know it: the predicates, then the SteMs."""
        graph = self.graph
        texts = [
            graph.texts[n] if n < len(graph.texts) else f"predicate {n + 1}"
            for n in range(len(graph.predicates))
        ]
        return (*texts, *(f"join {relation.name}" for relation in self.query.relations))


Block: TypeAlias = FilterBlock | JoinBlock
"""What runs in an eddy."""
