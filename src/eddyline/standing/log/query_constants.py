"""The constants of queries put into the template that they share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeAlias

import pyarrow as pa

from eddyline.expressions import Argument, Expression, Literal, VariableMatch, evaluate
from eddyline.expressions.vector import Columns
from eddyline.standing.engine.join_conditions import JoinCondition
from eddyline.standing.engine.predicate_templates import conditions_of, selections_of
from eddyline.standing.engine.selections import Selection, SplitSelection
from eddyline.standing.engine.shared_query import Absence, SharedQuery
from eddyline.standing.query_template import QueryGroup

Constants: TypeAlias = "list[pa.Array]"
"""For each constant of a template a value for each of its queries."""


class ConstantError(ValueError):
    """A constant cannot be computed from the parameters of one query."""

    def __init__(self, position: int, error: Exception) -> None:
        """Say which query of the group it is, and what went wrong."""
        super().__init__(position, error)
        self.position = position
        self.error = error


def constants_of(group: QueryGroup) -> Constants:
    """Return the constants of all queries of a group; ConstantError where one has none."""
    columns = {n: column.combine_chunks() for n, column in enumerate(group.parameters.columns)}
    scope = Columns(columns, len(group.names))
    constants = []
    for expression in group.template.constants:
        vector = evaluate(expression, scope)
        for position, error in sorted(vector.errors.items()):
            raise ConstantError(position, error)
        constants.append(vector.values)
    return constants


def queries_of(
    group: QueryGroup, query: SharedQuery, positions: Sequence[int]
) -> Iterator[SharedQuery]:
    """Yield some queries of a group, made of ``query`` with their constants put in."""
    if not group.template.constants:
        yield from (query for _ in positions)
        return
    constants = [constant.take(pa.array(positions)) for constant in constants_of(group)]
    conditions = conditions_of(query.conditions, constants)
    absences = _absences(query.absence, constants)
    split = {number: _split(selection, constants) for number, selection in query.selections.items()}
    if all(pieces is not None for pieces in split.values()):
        chosen: Iterator[tuple[Selection, ...]] = zip(*split.values(), strict=True)
        for selections, own, absence in zip(chosen, conditions, absences, strict=True):
            yield _like(query, dict(zip(split, selections, strict=True)), own, absence)
        return
    rows = [constant.to_pylist() for constant in constants]
    kinds = [constant.type for constant in constants]
    fillers = {
        number: _filler(selection, kinds) if isinstance(selection, Expression) else None
        for number, selection in query.selections.items()
    }
    for row, own, absence in zip(zip(*rows, strict=True), conditions, absences, strict=True):
        filled = {n: None if filler is None else filler(row) for n, filler in fillers.items()}
        yield _like(query, filled, own, absence)


def _absences(absence: Absence | None, constants: Constants) -> Iterator[Absence | None]:
    """Yield what must not be there for each row of constants."""
    if absence is None:
        yield from itertools.repeat(None, len(constants[0]))
        return
    for conditions in conditions_of(absence.conditions, constants):
        yield replace(absence, conditions=conditions)


def _split(selection: Selection, constants: Constants) -> Sequence[Selection] | None:
    """Return a selection for each row of constants; None where each is to be made by itself."""
    if selection is None or isinstance(selection, SplitSelection):
        return [selection] * len(constants[0])
    if not any(isinstance(node, Argument) and node.index < 0 for node in selection.walk()):
        return [selection] * len(constants[0])
    return selections_of(selection, constants)


def _like(
    query: SharedQuery,
    selections: Mapping[int, Selection],
    conditions: tuple[JoinCondition, ...],
    absence: Absence | None,
) -> SharedQuery:
    """Return a query with other selections and conditions, and the shapes that are known."""
    made = SharedQuery(selections, query.edges, query.bounds, conditions, absence)
    made.__dict__.update(shape=query.shape, present=query.present)  # cached properties
    return made


_Filler: TypeAlias = "Callable[[tuple[object, ...]], Expression]"


def _filler(expression: Expression, kinds: Sequence[pa.DataType]) -> _Filler:
    """Return a function that puts the constants of a query into an expression.

    What is to be done is found out once for all queries: 5 microseconds a query instead of 60.
    """
    if not any(isinstance(node, Argument) and node.index < 0 for node in expression.walk()):
        return lambda _: expression
    if isinstance(expression, Argument):
        number = -1 - expression.index
        kind = kinds[number]
        return lambda row: Literal(row[number], kind)
    if isinstance(expression, VariableMatch):
        return _pattern_filler(expression, kinds)
    make = type(expression)
    parts = [_part(getattr(expression, field.name), kinds) for field in fields(expression)]
    return lambda row: make(*[part(row) for part in parts])


def _pattern_filler(match: VariableMatch, kinds: Sequence[pa.DataType]) -> _Filler:
    """Return what makes of a match with a parameter the test against a query's pattern."""
    operand, pattern = _filler(match.operand, kinds), _filler(match.pattern, kinds)

    def fill(row: tuple[object, ...]) -> Expression:
        own = replace(match, operand=operand(row), pattern=pattern(row))
        known = own.pattern
        if isinstance(known, Literal) and (known.value is None or isinstance(known.value, str)):
            return own.against(known.value)
        return own

    return fill


def _part(part: object, kinds: Sequence[pa.DataType]) -> Callable[[tuple[object, ...]], object]:
    if isinstance(part, Expression):
        return _filler(part, kinds)
    if isinstance(part, tuple):
        inner = [_part(member, kinds) for member in part]
        return lambda row: tuple([filler(row) for filler in inner])
    return lambda _: part
