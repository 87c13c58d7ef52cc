"""Where a plan calls a concurrent function: a Python function that only stands for it."""

from __future__ import annotations

from collections.abc import Iterator

from eddyline import catalyst
from eddyline.blocks.filter_block import FUSED_NAME
from eddyline.catalyst import Plan
from eddyline.declaring.called_together import mark_of
from eddyline.planner.read.cascade_marks import cascade_in, cascade_of
from eddyline.planner.read.chains import EvaluationLink, Tree
from eddyline.quirks import arrow_columns
from eddyline.tasks.not_adapted import CascadeMark, ConcurrentMark


def mark_in(tree: Tree) -> ConcurrentMark | None:
    """Return the concurrent function that a ``PythonUDF`` stands for; None for any other."""
    if tree.evaluation_type != arrow_columns.STAND_IN:
        return None
    return mark_of(tree.pickled.command)


def marks_of(link: EvaluationLink) -> Iterator[ConcurrentMark | CascadeMark]:
    """Yield the concurrent functions and cascades that a node evaluates."""
    pending = [link.functions[index] for index in link.indexes]
    while pending:
        tree = pending.pop()
        mark = (mark_in(tree) or cascade_in(tree)) if tree.name == "PythonUDF" else None
        if mark is not None:
            yield mark
        pending.extend(tree.children)


def marks_in(plan: Plan) -> Iterator[ConcurrentMark | CascadeMark]:
    """Yield the concurrent functions and cascades in a plan, those of its subqueries included."""
    if not catalyst.has_python_function(plan):
        return
    for function in catalyst.python_functions(plan):
        if not catalyst.function_name(function).startswith(FUSED_NAME):
            command = catalyst.pickled_function(function).command
            mark = mark_of(command) or cascade_of(command)
            if mark is not None:
                yield mark
    for part in (*catalyst.children(plan), *catalyst.subqueries(plan)):
        yield from marks_in(part)
