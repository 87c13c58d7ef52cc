"""What of a region runs in an eddy over joins, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.blocks.filter_block import UserFunction
from eddyline.blocks.lookup_table import LookupTable
from eddyline.catalyst import CatalystExpression, PickledFunction
from eddyline.expressions import Argument, Call, Case, Expression, calls_in
from eddyline.planner.claim.column_constants import Constants
from eddyline.planner.claim.values_above import ValuesAbove


@dataclass(frozen=True)
class InputColumn:
    """A column that an input brings into the block: an expression over the input.

    A ``constant`` is a column of the first, and looks at none.
    """

    input: int
    handle: CatalystExpression
    constant: bool = False


@dataclass(frozen=True)
class JoinClaim:
    """A region that becomes a join block.

    ``columns`` are what the inputs bring, ``Argument(i)`` in the expressions is number i.
    ``below`` are native conditions for each input, ``above`` are some for the block's rows.
    ``looked_up`` are the inputs whose rows are looked up, ``constants`` values of columns of
    these. ``outputs`` gives, for each attribute
    that the region's top needs, the attribute and the column or call that is its value.
    ``items`` are the named expressions over these that make the region's output. For a region
    claimed as a whole ``values`` make it, whose columns number the ``outputs``.
    ``notes`` say in words who joins and why, and what reduces what; ``reduced`` is whether any
    input is. ``limit`` is how many of the region's rows are wanted of each task, 0 for all.
    ``later`` are functions over the outputs that the ``items`` need and the block does not call.
    """

    predicates: tuple[Expression, ...]
    texts: tuple[str, ...]
    functions: tuple[UserFunction, ...]
    environments: tuple[PickledFunction, ...]
    columns: tuple[InputColumn, ...]
    below: tuple[tuple[CatalystExpression, ...], ...]
    outputs: tuple[tuple[CatalystExpression, Expression], ...]
    items: tuple[CatalystExpression, ...]
    above: tuple[CatalystExpression, ...] = ()
    looked_up: Mapping[int, LookupTable] = field(default_factory=dict)
    constants: tuple[Constants, ...] = ()
    values: tuple[Expression, ...] = ()
    notes: tuple[str, ...] = ()
    reduced: bool = False
    limit: int = 0
    later: tuple[ValuesAbove, ...] = ()

    @property
    def calls(self) -> tuple[Call, ...]:
        """The distinct calls of functions in predicates."""
        calls: dict[Call, None] = {}
        for predicate in self.predicates:
            calls.update(dict.fromkeys(calls_in(predicate)))
        return tuple(calls)

    @property
    def results(self) -> tuple[tuple[CatalystExpression, Call | Case], ...]:
        """The results of functions that the region's top needs, maybe of some rows: calls."""
        calls = (
            (attribute, value)
            for attribute, value in self.outputs
            if isinstance(value, Call | Case)
        )
        return tuple(calls)

    @property
    def only_values(self) -> bool:
        """Whether a function is called that no predicate calls."""
        asked = self.calls
        return any(call not in asked for _, value in self.results for call in calls_in(value))

    @property
    def asking(self) -> tuple[str, ...]:
        """The texts of the predicates that call functions."""
        pairs = zip(self.predicates, self.texts, strict=True)
        return tuple(text for predicate, text in pairs if calls_in(predicate))

    def inputs_asked_about(self) -> list[frozenset[int]]:
        """Return for each call in a predicate the inputs that its function looks at."""
        return [self.looked_at(call) for call in self.calls]

    def looked_at(self, expression: Expression) -> frozenset[int]:
        """Return the inputs that an expression looks at."""
        arguments = (node.index for node in expression.walk() if isinstance(node, Argument))
        columns = (self.columns[index] for index in arguments)
        return frozenset(column.input for column in columns if not column.constant)
