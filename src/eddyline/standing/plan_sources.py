"""What parts of a plan are of: streams, tables, and what is aggregated of streams."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.catalyst import Plan


@dataclass(frozen=True)
class PlanSources:
    """Which leaves of a plan are which streams and tables.

    ``table_of`` gives the name of a leaf, None where it has none; ``tables`` are the names that are
    no streams.
    """

    table_of: Callable[[Plan], str | None]
    tables: Collection[str]

    def of_tables(self, plan: Plan) -> bool:
        """Tell whether a plan is of tables alone."""
        children = catalyst.children(plan)
        if children:
            return all(map(self.of_tables, children))
        return self.table_of(plan) in self.tables

    def has_groups(self, plan: Plan) -> bool:
        """Tell whether anything in a plan is aggregated of streams."""
        if name_of(plan) == "Aggregate" and not self.of_tables(plan):
            return True
        return any(map(self.has_groups, catalyst.children(plan)))

    def joins_groups(self, plan: Plan) -> bool:
        """Tell whether a node joins what is aggregated of streams."""
        return name_of(plan) == "Join" and any(map(self.has_groups, catalyst.children(plan)))


def name_of(plan: Plan) -> str:
    """Return what Spark calls a node."""
    return catalyst.class_name(plan).rpartition(".")[2]
