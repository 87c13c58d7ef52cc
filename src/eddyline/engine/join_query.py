"""Select-project-join queries, as frozen data."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import pyarrow as pa

from eddyline.engine.prior import Prior
from eddyline.expressions import Argument, Call, Case, Expression, render, require_boolean
from eddyline.expressions.value_types import is_joinable


@dataclass(frozen=True, slots=True)
class Lookup:
    """An access method that answers only for given values of the ``bind`` columns.

    Raman, Deshpande and Hellerstein (2003, Section 2.1.3) call it an index access method.
    """

    bind: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinRelation:
    """One relation in the FROM clause.

    ``types`` are those of its columns. ``same_rows_as`` is the number of an earlier
    relation that has the very same rows: both then share one store. Without ``scan`` the
    rows come only by the ``lookups``; ``mirrors`` are further scans that give all
    the rows again, in competition with the first (Raman, Deshpande and Hellerstein, 2003,
    Section 3.2). A relation with more than one access method must have a ``key``, the
    columns that tell its rows apart; NULL counts as a value there.
    """

    name: str
    types: tuple[pa.DataType, ...]
    same_rows_as: int | None = None
    scan: bool = True
    lookups: tuple[Lookup, ...] = ()
    key: tuple[int, ...] = ()
    mirrors: int = 0

    @property
    def access_methods(self) -> int:
        """The number of ways to the rows; with several, a row may come more than once."""
        return self.scan + self.mirrors + len(self.lookups)

    @property
    def only_scanned(self) -> bool:
        """Whether one scan is the only access method: then BuildFirst may be relaxed."""
        return self.scan and self.access_methods == 1


@dataclass(frozen=True)
class JoinQuery:
    """Rows of the cross product of ``relations`` for which every predicate is TRUE.

    Columns are numbered through over all relations: ``Argument(index)`` with index
    ``offset(r) + c`` is column ``c`` of relation ``r``. ``outputs`` are columns or calls, or a
    CASE of these.
    ValueError where the parts do not fit together.
    """

    relations: tuple[JoinRelation, ...]
    predicates: tuple[Expression, ...] = ()
    outputs: tuple[Expression, ...] = ()
    # For reports, and may be left out: the predicates as text, names of functions and columns.
    texts: tuple[str, ...] = field(default=(), compare=False)
    function_names: tuple[str, ...] = field(default=(), compare=False)
    column_names: tuple[str, ...] = field(default=(), compare=False)
    # What is known beforehand of the predicates of its join graph. It may be left out, and is no
    # part of what makes two queries equal, or of their texts.
    priors: tuple[Prior | None, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.relations:
            raise ValueError("a query needs a relation")
        for number in range(len(self.relations)):
            self._check_relation(number)
        for expression in (*self.predicates, *self.outputs):
            for node in expression.walk():
                if isinstance(node, Argument):
                    self._check_column(node)
        for predicate in self.predicates:
            require_boolean(predicate)
        for output in self.outputs:
            if not isinstance(output, Argument | Call | Case):
                raise ValueError(f"{output} is neither a column nor a call")  # noqa: TRY004 - a value of the query

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The number of each relation's first column, and the number of all columns."""
        return (0, *accumulate(len(relation.types) for relation in self.relations))

    @cached_property
    def lookups(self) -> tuple[tuple[int, Lookup], ...]:
        """All lookups, each with its relation, in the order of these."""
        return tuple(
            (relation, lookup)
            for relation, description in enumerate(self.relations)
            for lookup in description.lookups
        )

    def text_of(self, expression: Expression) -> str:
        """Return an expression as people would write it, as far as names are known."""
        if not self.function_names or not self.column_names:
            return ""
        return render(expression, self.function_names, self.column_names)

    def place_of(self, column: int) -> tuple[int, int]:
        """Return the relation of a column and its number there.

        >>> import pyarrow as pa
        >>> two = JoinRelation("t", (pa.int64(), pa.int64()))
        >>> JoinQuery((two, two)).place_of(3)
        (1, 1)
        """
        relation = bisect_right(self.offsets, column) - 1
        return relation, column - self.offsets[relation]

    def column(self, relation: int, column: int) -> Argument:
        """Return a relation's column as an expression."""
        return Argument(self.offsets[relation] + column, self.relations[relation].types[column])

    def relations_in(self, expression: Expression) -> int:
        """Return the relations whose columns an expression needs, as a mask."""
        mask = 0
        for node in expression.walk():
            if isinstance(node, Argument):
                mask |= 1 << self.place_of(node.index)[0]
        return mask

    def store_of(self, relation: int) -> int:
        """Return the first relation with the same rows."""
        same = self.relations[relation].same_rows_as
        return relation if same is None else self.store_of(same)

    def shares_rows(self, relation: int) -> bool:
        """Tell whether another relation has the same rows."""
        numbers = range(len(self.relations))
        return sum(self.store_of(other) == self.store_of(relation) for other in numbers) > 1

    def _check_relation(self, number: int) -> None:
        relation = self.relations[number]
        if not relation.scan and not relation.lookups:
            raise ValueError(f"{relation.name} can be neither scanned nor looked up")
        if relation.mirrors < 0:
            raise ValueError(f"{relation.name} cannot have {relation.mirrors} mirrors")
        if relation.mirrors and not relation.scan:
            raise ValueError(f"{relation.name} has mirrors of a scan that it has not")
        if relation.access_methods > 1 and not relation.key:
            raise ValueError(
                f"{relation.name} has several access methods and needs a key, by which "
                f"rows that two of them return are known to be the same"
            )
        self._check_lookups(relation)
        self._check_key_columns(relation, relation.key)
        same = relation.same_rows_as
        if same is None:
            return
        if not 0 <= same < number:
            raise ValueError(f"{relation.name} shares the rows of no earlier relation")
        if not relation.only_scanned or not self.relations[same].only_scanned:
            raise ValueError(f"{relation.name} shares rows, which must then come by one scan")
        if self.relations[same].types != relation.types:
            raise ValueError(f"{relation.name} has not the columns of what it shares")

    def _check_lookups(self, relation: JoinRelation) -> None:
        for lookup in relation.lookups:
            if not lookup.bind:
                raise ValueError(f"a lookup of {relation.name} binds no column: that is a scan")
            if len(set(lookup.bind)) < len(lookup.bind):
                raise ValueError(
                    f"a lookup of {relation.name} binds a column twice: {list(lookup.bind)}"
                )
            self._check_key_columns(relation, lookup.bind)

    @staticmethod
    def _check_key_columns(relation: JoinRelation, columns: tuple[int, ...]) -> None:
        for column in columns:
            if not 0 <= column < len(relation.types):
                raise ValueError(f"{relation.name} has no column {column}")
            if not is_joinable(relation.types[column]):
                raise ValueError(
                    f"column {column} of {relation.name} is {relation.types[column]}, "
                    f"which no key is made of"
                )

    def _check_column(self, node: Argument) -> None:
        if not 0 <= node.index < self.offsets[-1]:
            raise ValueError(f"there is no column {node.index}")
        relation, column = self.place_of(node.index)
        if self.relations[relation].types[column] != node.type:
            raise ValueError(
                f"column {node.index} is {self.relations[relation].types[column]}, not {node.type}"
            )
