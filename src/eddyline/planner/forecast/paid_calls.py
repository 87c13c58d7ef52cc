"""For which rows of a block each paid call is needed, in the order in which an eddy asks.

What is free comes first and what is paid last, as far as the block lets terms be reordered; of
several paid terms those that drop more for what they cost come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eddyline.blocks.filter_block import FilterBlock
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import And, Argument, Call, Expression, calls_in
from eddyline.expressions.demand import demand
from eddyline.expressions.terms import Term, conjuncts_of, expression_of


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A call that the driver makes.

    It is needed where ``condition`` is TRUE or fails, and at most where ``free`` is, in which no
    paid call occurs. ``before`` are the paid calls in the condition, in the order in which their
    answers are needed.
    """

    call: Call
    condition: Expression
    free: Expression
    before: tuple[Call, ...]


def is_paid(block: FilterBlock, call: Call) -> bool:
    """Whether the driver makes a call."""
    return block.functions[call.function].driver is not None


def paid_terms(block: FilterBlock) -> list[int]:
    """Return the numbers of the terms of a block's predicate that need a paid call."""
    return [
        number
        for number, term in enumerate(terms_of_block(block))
        if any(is_paid(block, call) for call in calls_in(expression_of(term)))
    ]


def terms_of_block(block: FilterBlock) -> tuple[Term, ...]:
    """Return the terms that must all be TRUE."""
    return () if block.predicate == ALL_ROWS else conjuncts_of(block.predicate)


def order_of_terms(block: FilterBlock, ranks: Mapping[int, float]) -> list[int]:
    """Return the terms in the order in which an eddy comes to ask them.

    Free ones as soon as they may come; paid ones by their rank, the highest first, where one
    without a rank has 0 and the written order decides.
    """
    terms = terms_of_block(block)
    paid = set(paid_terms(block))
    waits = block.waits or (0,) * len(terms)
    order: list[int] = []
    left = list(range(len(terms)))
    while left:
        ready = [n for n in left if all(before in order for before in range(waits[n]))]
        free = [n for n in ready if n not in paid]
        chosen = free[0] if free else max(ready, key=lambda n: (ranks.get(n, 0.0), -n))
        order.append(chosen)
        left.remove(chosen)
    return order


def rivals(block: FilterBlock) -> list[int]:
    """Return the paid terms, where their order is the eddy's to choose."""
    paid = paid_terms(block)
    waits = block.waits or (0,) * len(terms_of_block(block))
    return [
        number
        for number in paid
        if any(
            other != number and not (other < waits[number] or number < waits[other])
            for other in paid
        )
    ]


def paid_calls(block: FilterBlock, order: Sequence[int], first: int = 0) -> list[PaidCall]:
    """Return the paid calls of a block whose terms are asked in an order.

    Only those of functions from number ``first`` on.
    """
    expressions = list(map(expression_of, terms_of_block(block)))

    def later(call: Call) -> bool:
        return is_paid(block, call)

    made: dict[Call, PaidCall] = {}
    before: list[Expression] = []
    steps = [(n, [expressions[n]]) for n in order]
    steps.append((-1, list(block.outputs)))
    for number, asking in steps:
        for call in _paid_in(asking, later):
            if call not in made:
                demanded = demand(call, asking, later)
                made[call] = _paid_call(call, before, demanded, later)
        if number >= 0:
            before.append(expressions[number])
    return [each for call, each in made.items() if call.function >= first]


def _paid_in(expressions: Sequence[Expression], later: Callable[[Call], bool]) -> list[Call]:
    calls = (call for expression in expressions for call in calls_in(expression))
    return list(dict.fromkeys(filter(later, calls)))


def _paid_call(
    call: Call,
    before: Sequence[Expression],
    demanded: Expression | None,
    later: Callable[[Call], bool],
) -> PaidCall:
    conditions = [*before, *([] if demanded is None else [demanded])]
    free = [each for each in conditions if not _paid_in([each], later)]
    needed = _paid_in([*conditions, *call.arguments], later)
    return PaidCall(call, conjunction(conditions), conjunction(free), tuple(needed))


def conjunction(conditions: Sequence[Expression]) -> Expression:
    """Return what is TRUE where all conditions are."""
    if len(conditions) > 1:
        return And(tuple(conditions))
    return next(iter(conditions), ALL_ROWS)


def over_columns(call: Call) -> tuple[int, ...] | None:
    """Return the columns that are the arguments of a call; None where they are something else."""
    columns = [argument.index for argument in call.arguments if isinstance(argument, Argument)]
    return tuple(columns) if len(columns) == len(call.arguments) else None
