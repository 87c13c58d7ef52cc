"""A join block over two inputs, with functions that are asked about the rows of the second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eddyline.blocks.filter_block import FunctionKind, SessionSettings
from eddyline.blocks.filter_block import UserFunction as Described
from eddyline.blocks.join_block import JoinBlock
from eddyline.engine.join_query import JoinQuery
from eddyline.expressions import Call, Expression, Or
from tests.joins import BOOL, UserFunction, equal, query_of, relation

OTHER, INPUT = range(2)


class Closed(UserFunction):
    """A function that tells when it is closed, and may raise then."""

    def __init__(self, result: Callable[..., object], *, fails: bool = False) -> None:
        super().__init__(result)
        self.closed = 0
        self._fails = fails

    def close(self) -> None:
        self.closed += 1
        if self._fails:
            raise RuntimeError("cannot be closed")


def block_of(predicates: Callable[[JoinQuery], Sequence[Expression]], functions: int) -> JoinBlock:
    """Return a block over two inputs, of which the second is looked at; it has two columns."""
    query = query_of(
        [relation("R", 3), relation("S", 2)], equal((0, 0), (1, 0)), predicates=predicates
    )
    names = tuple(f"f{number}" for number in range(functions))
    kept = range(len(query.predicates))
    return JoinBlock(
        identity="block",
        query=replace(
            query,
            texts=tuple(f"condition {n}" for n in kept),
            function_names=names,
            column_names=("a", "b", "c", "d", "e"),
        ),
        functions=tuple(
            Described(name, FunctionKind.ARROW_BATCHED, (), (), (), '"boolean"') for name in names
        ),
        settings=SessionSettings("UTC"),
        sizes=(1, 1),
        output_types=('"long"',) * 5,
        column_names=(("a", "b", "c"), ("d", "e")),
    )


def asked(query: JoinQuery, *functions: int) -> list[Call]:
    """Return calls of functions on the column of the input that holds the numbers of its rows."""
    return [Call(number, (query.column(INPUT, 1),), BOOL) for number in functions]


def conjuncts(*functions: int) -> Callable[[JoinQuery], Sequence[Expression]]:
    return lambda query: asked(query, *functions)


def either(*functions: int) -> Callable[[JoinQuery], Sequence[Expression]]:
    return lambda query: [Or(tuple(asked(query, *functions)))]
