"""What a block takes in: columns over its base, functions, and the functions' environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.filter_block import UserFunction
from eddyline.catalyst import CatalystExpression, PickledFunction
from eddyline.expressions import Argument, Call, Expression
from eddyline.planner.read.chains import ExpressionId


class ContentsSize(NamedTuple):
    """How much a block had taken in at some time."""

    arguments: int
    functions: int
    environments: int


class Contents:
    """Arguments and functions, each taken in once, numbered as they come.

    Finding an equal one takes O(1) time and O(1) calls into the JVM: comparing each argument
    with all before it took 90,000 calls for 300 of them.
    """

    def __init__(self) -> None:
        self._handles: list[CatalystExpression] = []
        self._arguments: list[Argument] = []
        self._hashes: list[int] = []  # of what the arguments mean
        self._by_hash: dict[int, list[int]] = {}
        self._columns: dict[ExpressionId, Argument] = {}
        self._functions: dict[UserFunction, int] = {}
        self._environments: list[PickledFunction] = []

    @property
    def arguments(self) -> tuple[CatalystExpression, ...]:
        """The expressions over the base whose values are the arguments."""
        return tuple(self._handles)

    @property
    def functions(self) -> tuple[UserFunction, ...]:
        """The functions."""
        return tuple(self._functions)

    @property
    def environments(self) -> tuple[PickledFunction, ...]:
        """What the functions need of their environments, in the functions' order."""
        return tuple(self._environments)

    def argument(
        self, handle: CatalystExpression, type_of: Callable[[CatalystExpression], pa.DataType]
    ) -> Argument:
        """Return the argument that carries an expression; ``type_of`` may refuse a new one."""
        hashed = catalyst.hash_of_value(handle)
        same = self._by_hash.setdefault(hashed, [])
        for number in same:
            if catalyst.same_value(self._handles[number], handle):
                return self._arguments[number]
        argument = Argument(len(self._arguments), type_of(handle))
        same.append(argument.index)
        self._handles.append(handle)
        self._arguments.append(argument)
        self._hashes.append(hashed)
        return argument

    def column(self, identity: ExpressionId, carried: Callable[[], Argument]) -> Argument:
        """Return the argument that carries a column; ``carried`` makes it at first."""
        known = self._columns.get(identity)
        if known is None:
            known = self._columns[identity] = carried()
        return known

    def function(self, function: UserFunction, environments: tuple[PickledFunction, ...]) -> int:
        """Return the number of a function, whose environments come with it."""
        number = self._functions.get(function)
        if number is None:
            number = self._functions[function] = len(self._functions)
            self._environments.extend(environments)
        return number

    def has(self, expression: Expression) -> bool:
        """Whether all arguments and functions of an expression are there."""
        arguments, functions = len(self._arguments), len(self._functions)
        return all(
            (not isinstance(node, Argument) or node.index < arguments)
            and (not isinstance(node, Call) or node.function < functions)
            for node in expression.walk()
        )

    def mark(self) -> ContentsSize:
        """Return how much there is now."""
        return ContentsSize(len(self._arguments), len(self._functions), len(self._environments))

    def back_to(self, mark: ContentsSize) -> bool:
        """Drop what came since; whether there was anything."""
        if self.mark() == mark:
            return False
        for hashed in reversed(self._hashes[mark.arguments :]):
            self._by_hash[hashed].pop()
        for held in (self._handles, self._arguments, self._hashes):
            del held[mark.arguments :]
        self._columns = {c: a for c, a in self._columns.items() if a.index < mark.arguments}
        while len(self._functions) > mark.functions:
            self._functions.popitem()
        del self._environments[mark.environments :]
        return True
