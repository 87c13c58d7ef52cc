"""The parts of a query that are about parameters alone: each of its queries has constants there."""

from __future__ import annotations

from typing import Final

from eddyline.blocks.decline import not_understood
from eddyline.expressions import Argument, Call, Expression, type_of, with_arguments, with_children

ALONE: Final = "a Python function of parameters alone"


def with_constants(expression: Expression, constants: dict[Expression, int]) -> Expression:
    """Return an expression with what depends on parameters alone replaced by constants' numbers.

    These are taken into ``constants`` as they come. Raises DeclinedError for a Python function of
    parameters alone: constants are computed where the query is added, and functions run elsewhere.
    """
    indexes = [node.index for node in expression.walk() if isinstance(node, Argument)]
    if indexes and max(indexes) < 0:
        if any(isinstance(node, Call) for node in expression.walk()):
            raise not_understood(ALONE)
        over_parameters = with_arguments(
            expression, lambda argument: Argument(-1 - argument.index, argument.type)
        )
        number = constants.setdefault(over_parameters, len(constants))
        return Argument(-1 - number, type_of(expression))
    if not indexes or min(indexes) >= 0:
        return expression
    return with_children(expression, lambda child: with_constants(child, constants))
