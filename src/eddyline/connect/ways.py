"""Where Spark would push the conditions of a run of filters, as far as the server tells.

What it says of a relation is asked for once, however many conditions look at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from eddyline.blocks.decline import DeclinedError
from eddyline.connect.filter_runs import FilterRun, questions
from eddyline.connect.messages import Expression, Relation, columns_in
from eddyline.connect.push_down import Way, sides_looked_at, way_of
from eddyline.connect.server_answers import Server


class Ways:
    """Answers about the relations of one plan."""

    def __init__(self, server: Server) -> None:
        """Ask a server."""
        self._server: Final = server
        self._parting: Final[dict[bytes, bool]] = {}
        self._names: Final[dict[bytes, Sequence[str]]] = {}

    def of(self, run: FilterRun, below: Relation) -> dict[int, Way | None]:
        """Return where the conditions of a run over Python functions go, by their numbers."""
        found = {}
        for number, condition in enumerate(run.dependent):
            asked, _ = questions(replace(run, conditions=(condition,)))
            looks = _Looks(self, asked, columns_in(condition.expression))
            found[number] = way_of(below, looks.sides_of, looks.resolves, self.is_parting)
        return found

    def is_parting(self, leaf: Relation) -> bool:
        """Whether a leaf has something in it by which conditions part, as the server says."""
        key = leaf.SerializeToString(deterministic=True)
        if key not in self._parting:
            self._parting[key] = self._server.explained(leaf).parting
        return self._parting[key]

    def names_of(self, relation: Relation) -> Sequence[str]:
        """Return the names of a relation's columns; DeclinedError for none."""
        key = relation.SerializeToString(deterministic=True)
        if key not in self._names:
            self._names[key] = [field.name for field in self._server.fields(relation)]
        return self._names[key]

    def resolves(self, relation: Relation, asked: Mapping[bytes, Expression]) -> bool:
        """Whether expressions mean something over a relation."""
        try:
            self._server.types(relation, asked, ())
        except DeclinedError:
            return False
        return True


class _Looks:
    """What one condition looks at."""

    def __init__(
        self, ways: Ways, asked: Mapping[bytes, Expression], columns: Sequence[Expression]
    ) -> None:
        self._ways, self._asked, self._columns = ways, asked, columns

    def resolves(self, relation: Relation) -> bool:
        return self._ways.resolves(relation, self._asked)

    def sides_of(self, join: Relation) -> frozenset[str] | None:
        try:
            return sides_looked_at(self._columns, join, self._ways.names_of)
        except DeclinedError:
            return None
