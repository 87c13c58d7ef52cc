"""A function in a block of its own, which remembers or is called for fewer rows.

Around it stands no eddy: it is one call in a node of Spark's, see
:mod:`eddyline.planner.rewrite.remembered_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import (
    FilterBlock,
    SessionSettings,
    UserFunction,
    fused_name,
    identified,
)
from eddyline.blocks.nests import part_of
from eddyline.catalyst import CatalystExpression
from eddyline.chance import looks_non_deterministic
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import Call, Case, called_where
from eddyline.forgetful_mark import FORGETFUL
from eddyline.planner.claim.term_translation import Terms
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.needs import ALWAYS, Need, as_expression, conditions_of
from eddyline.planner.read.throwing import may_throw
from eddyline.quirks import arrow_columns

Remember: TypeAlias = Callable[[FilterBlock], bytes]
"""Makes the function, pickled, of a block that computes one value."""


@dataclass(frozen=True, slots=True)
class OwnBlock:
    """A block, and its call; ``below`` is what is to be computed below, if the call looks at it."""

    block: FilterBlock
    call: CatalystExpression
    below: CatalystExpression | None


def own_block(
    function: Tree,
    need: Need,
    settings: SessionSettings,
    remember: Remember,
    mates: Mapping[UserFunction, tuple[int, ...]],
    *,
    all_remember: bool,
    spared: bool,
    repeats: bool,
    stays: bool,
) -> OwnBlock | None:
    """Return a function in a block of its own; None where it is as well where it is.

    It has a memory unless it is not to remember; then it is called for the rows that ``need`` it.
    ``mates`` say what it shares with others. Its node ``stays`` above a limit. DeclinedError where
    it cannot be in a block.
    """
    terms = Terms(Definitions({}), settings)
    remembers = all_remember and may_remember(terms.commands(function))
    if need is ALWAYS and not remembers:
        return None
    called = terms.evaluable(terms.call(FunctionResult(function, guarded=False)))
    contents = terms.contents
    arguments = contents.arguments
    if not arguments or any(map(catalyst.holds_subquery, arguments)):
        return None
    value: Call | Case = called
    below: CatalystExpression | None = None
    if need is not ALWAYS:
        needed = as_expression(need)
        # No argument of a Python function may look at a subquery.
        if any(catalyst.holds_subquery(condition.handle) for condition in conditions_of(need)):
            below = catalyst.named(needed, "needed")
            needed = catalyst.attribute_of(below)
        value = called_where(terms.base_column(needed), called)
        arguments = _safe_where(needed, contents.arguments)
    functions = tuple(
        replace(each, shared=mates.get(part_of(each, len(each.commands)), ()))
        for each in contents.functions
    )
    names = tuple(map(catalyst.pretty, arguments))
    block = identified(
        FilterBlock(
            "", ALL_ROWS, (), functions, (value,), settings, names, spared=spared, repeats=repeats
        )
    )
    call = catalyst.python_call(
        name=fused_name([functions[0].name]),
        command=remember(block),
        like=contents.environments,
        return_type=functions[0].return_type,
        arguments=arguments,
        kind=arrow_columns.BY_BATCH,
        deterministic=not stays or below is not None,
    )
    return OwnBlock(block, call, below)


def _safe_where(
    needed: CatalystExpression, arguments: Sequence[CatalystExpression]
) -> tuple[CatalystExpression, ...]:
    """Return arguments, none of which raises anything for a row that does not need it."""
    return tuple(
        catalyst.where_needed(needed, argument)
        if "column" not in argument.told and may_throw(Tree.of(argument))
        else argument
        for argument in arguments
    )


def may_remember(commands: Sequence[bytes]) -> bool:
    """Whether functions, given as they are pickled, are worth a block of their own to remember.

    Not so where one is marked as forgetful. The mark of a function that is pickled by reference,
    as it is if it is imported from a package, is not among the bytes: it is found in the worker.
    Raises :class:`DeclinedError` where one looks non-deterministic, which people should know of.
    """
    mark = FORGETFUL.encode()
    if any(mark in command for command in commands):
        return False
    chance = looks_non_deterministic(commands)
    if chance is not None:
        raise DeclinedError(DeclineReason.CALLED_FOR_EVERY_ROW, chance)
    return True
