"""Where a plan with eddies in it asks the driver, as blocks over rows that nobody is asked about.

A block that asks may stand over another one that does: ``where(score(text) > 0.8)`` below
``select(summary(text))``. With nothing but projections and filters by the lower block between them,
both are one block over the rows below the lower one: first its predicate, then the upper's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.filter_block import FUSED_NAME, FilterBlock
from eddyline.blocks.join_block import JoinBlock
from eddyline.catalyst import CatalystExpression, PickledFunction, Plan
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import And, Argument, Call, Case, Expression, with_children
from eddyline.expressions.terms import conjuncts_of
from eddyline.planner.read.chains import ExpressionId, Tree

Made: TypeAlias = Callable[[bytes], "FilterBlock | JoinBlock | None"]
"""Tells what block a fused function was made of."""


@dataclass(frozen=True, eq=False)
class PaidBlock:
    """A block with functions that the driver calls, over a plan in which none is called.

    ``arguments`` are expressions over ``base``, one for each argument of the block.
    ``environment`` is a function as whose workers the block's run. Functions before number
    ``first`` are those of blocks below, which this was put together of: their own blocks tell of
    their calls. ``passed`` are filters between these, which are taken for ones that drop nothing.
    """

    block: FilterBlock
    base: Plan
    arguments: tuple[CatalystExpression, ...]
    environment: PickledFunction
    first: int = 0
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class UnreadBlock:
    """A block that asks the driver, and why there is no forecast for it."""

    names: tuple[str, ...]
    why: str


def paid_blocks(plan: Plan, made: Made) -> Iterator[PaidBlock | UnreadBlock]:
    """Yield the blocks of a plan that ask the driver, subqueries included, from the top down."""
    for function in catalyst.evaluated_functions(plan):
        if not catalyst.function_name(function).startswith(FUSED_NAME):
            continue
        pickled = catalyst.pickled_function(function)
        block = made(pickled.command)
        if isinstance(block, FilterBlock) and _asks(block):
            yield _read(plan, function, block, made)
    for part in (*catalyst.children(plan), *catalyst.subqueries(plan)):
        yield from paid_blocks(part, made)


def _asks(block: FilterBlock) -> bool:
    return any(function.driver is not None for function in block.functions)


def names_in(block: FilterBlock) -> tuple[str, ...]:
    """Return the functions of a block that the driver calls."""
    return tuple(function.name for function in block.functions if function.driver is not None)


def _read(
    plan: Plan, function: CatalystExpression, block: FilterBlock, made: Made
) -> PaidBlock | UnreadBlock:
    """Return the block of a node, put together with those below it that ask, too."""
    own = tuple(
        catalyst.expression_at(function, [place]) for place in range(len(block.argument_names))
    )
    (base,) = catalyst.children(plan)
    if not _asks_somewhere(base, made):
        return PaidBlock(block, base, own, catalyst.pickled_function(function))
    return _over(block, own, base, made)


def _asks_somewhere(plan: Plan, made: Made) -> bool:
    """Whether a block anywhere in a plan asks the driver."""
    for function in catalyst.evaluated_functions(plan):
        if catalyst.function_name(function).startswith(FUSED_NAME):
            block = made(catalyst.pickled_function(function).command)
            if block is not None and (block.server is not None):
                return True
    parts = (*catalyst.children(plan), *catalyst.subqueries(plan), *catalyst.cached(plan))
    return any(_asks_somewhere(part, made) for part in parts)


def _over(
    block: FilterBlock,
    arguments: tuple[CatalystExpression, ...],
    base: Plan,
    made: Made,
) -> PaidBlock | UnreadBlock:
    """Return a block over one below it that asks, as one block over the rows below that."""
    names = names_in(block)
    passed: list[CatalystExpression] = []
    plan = base
    while True:
        kind = catalyst.class_name(plan).rpartition(".")[2]
        if kind == "Project":
            arguments = tuple(_below(plan, arguments))
            passed = list(_below(plan, passed))
        elif kind == "Filter":
            passed.append(catalyst.condition(plan))
        else:
            break
        (plan,) = catalyst.children(plan)
    functions = catalyst.evaluated_functions(plan)
    fused = [
        (number, made(catalyst.pickled_function(function).command))
        for number, function in enumerate(functions)
        if catalyst.function_name(function).startswith(FUSED_NAME)
    ]
    if len(functions) != 1 or not fused or not isinstance(fused[0][1], FilterBlock):
        return UnreadBlock(
            names, "which rows come to it depends on answers below a join, an aggregate or the like"
        )
    lower = _read(plan, functions[0], fused[0][1], made)
    if isinstance(lower, UnreadBlock):
        return UnreadBlock(names, lower.why)
    struct = Tree.of(catalyst.result_attribute(plan, 0)).identity
    return _together(block, arguments, passed, struct, lower)


def _below(
    project: Plan, expressions: Sequence[CatalystExpression]
) -> Iterator[CatalystExpression]:
    """Yield expressions over a projection as ones over its child."""
    meant = [
        (catalyst.attribute_of(item), catalyst.expression_at(item, [0]))
        for item in catalyst.project_list(project)
        if Tree.of(item).name == "Alias"
    ]
    for expression in expressions:
        yield catalyst.in_terms_of(expression, meant) if meant else expression


def _together(
    upper: FilterBlock,
    arguments: Sequence[CatalystExpression],
    passed: Sequence[CatalystExpression],
    struct: ExpressionId,
    lower: PaidBlock,
) -> PaidBlock | UnreadBlock:
    """Return two blocks as one; ``struct`` is what the ``lower`` one returns."""
    known = lower.block
    more: list[CatalystExpression] = []
    meant: list[Expression] = []
    for number, argument in enumerate(arguments):
        tree = Tree.of(argument)
        value = _field_of(tree, struct)
        if value is not None:
            if value == 0:
                return UnreadBlock(names_in(upper), "it asks about what another block keeps")
            meant.append(known.outputs[value - 1])
        elif struct in set(tree.attributes()):
            name = upper.argument_names[number]
            return UnreadBlock(names_in(upper), f"{name} is made of answers of another function")
        else:
            kind = _argument_type(upper, number)
            meant.append(Argument(len(known.argument_names) + len(more), kind))
            more.append(argument)
    shift = len(known.functions)

    def placed(expression: Expression) -> Expression:
        if isinstance(expression, Argument):
            return meant[expression.index]
        over = with_children(expression, placed)
        if isinstance(over, Call) and isinstance(expression, Call):
            return replace(over, function=expression.function + shift)
        return over

    predicates = [
        block for block in (known.predicate, placed(upper.predicate)) if block != ALL_ROWS
    ]
    lower_terms = 0 if known.predicate == ALL_ROWS else len(conjuncts_of(known.predicate))
    upper_terms = 0 if upper.predicate == ALL_ROWS else len(conjuncts_of(upper.predicate))
    waits = (
        *(known.waits or (0,) * lower_terms),
        *(lower_terms + wait for wait in upper.waits or (0,) * upper_terms),
    )
    outputs = tuple(
        output for output in map(placed, upper.outputs) if isinstance(output, Call | Case)
    )
    block = replace(
        upper,
        predicate=And(tuple(predicates))
        if len(predicates) > 1
        else next(iter(predicates), ALL_ROWS),
        functions=(*known.functions, *upper.functions),
        outputs=outputs,
        argument_names=(
            *known.argument_names,
            *map(catalyst.pretty, more),
        ),
        waits=waits if any(waits) else (),
        texts=(),
        after=(),
    )
    filters = tuple(
        catalyst.pretty(conjunct.handle)
        for condition in passed
        for conjunct in Tree.of(condition).terms("And")
        if not _is_kept(conjunct, struct)
    )
    return PaidBlock(
        block,
        lower.base,
        (*lower.arguments, *more),
        lower.environment,
        shift,
        (*lower.passed, *filters),
    )


def _is_kept(conjunct: Tree, struct: ExpressionId) -> bool:
    """Whether a conjunct asks for what the block below keeps, as Spark also asks in other words."""
    if conjunct.name == "IsNotNull":
        conjunct = conjunct.children[0]
        if conjunct.name == "AttributeReference" and conjunct.identity == struct:
            return True
    return _field_of(conjunct, struct) == 0


def _field_of(tree: Tree, struct: ExpressionId) -> int | None:
    """Return which field of a struct an expression is; None where it is none."""
    if tree.name != "GetStructField" or tree.children[0].name != "AttributeReference":
        return None
    if tree.children[0].identity != struct:
        return None
    return int(str(tree.node.fields["ordinal"]))


def _argument_type(block: FilterBlock, number: int) -> pa.DataType:
    for expression in (block.predicate, *block.outputs):
        for node in expression.walk():
            if isinstance(node, Argument) and node.index == number:
                return node.type
    raise AssertionError("a block uses each of its arguments")
