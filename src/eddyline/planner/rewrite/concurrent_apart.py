"""Takes concurrent functions and cascades out of the chains of functions that Spark runs in one go.

Spark evaluates ``f(g(x))`` in one go where both are of one kind, and what stands for a concurrent
function is of the kind of functions over Arrow's columns. In a node of its own below ``f`` its
calls are made as they are under functions of any other kind. A cascade stands for one, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.cascade_marks import cascade_in
from eddyline.planner.read.chains import EvaluationLink, Tree, read_link
from eddyline.planner.read.concurrent_marks import mark_in
from eddyline.planner.rewrite.replaced import replaced


def with_concurrent_calls_apart(plan: Plan) -> Plan:
    """Return a plan where no other function has a concurrent one in its chain; the same if none."""
    if not catalyst.has_python_function(plan):
        return plan
    children = catalyst.children(plan)
    new = [with_concurrent_calls_apart(child) for child in children]
    plan = replaced(plan, children, new, with_concurrent_calls_apart)
    link, _ = read_link(plan)
    return _apart(link) if isinstance(link, EvaluationLink) else plan


def _apart(link: EvaluationLink) -> Plan:
    plan = link.plan
    chains = [tuple(_chain(function)) for function in link.functions]
    if not any(map(_cuts, chains)):
        return plan
    (below,) = catalyst.children(plan)
    kind = link.functions[0].evaluation_type
    calls: list[CatalystExpression] = []
    for chain in chains:
        call = chain[-1].handle
        cuts = set(_cuts(chain))
        for place in range(len(chain) - 2, -1, -1):
            if place in cuts:
                value = catalyst.new_attribute("value", call)
                below = catalyst.arrow_evaluation(call, value, kind, below)
                call = value
            call = catalyst.with_operands(chain[place].handle, [call])
        calls.append(call)
    results = [result.handle for result in link.results]
    above = catalyst.arrow_evaluations(calls, results, kind, below)
    return catalyst.projected_like(plan, above)


def _chain(function: Tree) -> Iterator[Tree]:
    """Yield a function and those that it is called with, each the only argument of the one before.

    Spark runs no others in one go.
    """
    yield function
    if len(function.children) == 1 and function.children[0].name == "PythonUDF":
        yield from _chain(function.children[0])


def _cuts(chain: tuple[Tree, ...]) -> list[int]:
    """Return the places in a chain after which it is cut: above concurrent functions.

    What a concurrent function is called with may be in its chain: it is computed on the way. A
    cascade's arguments are for two functions, so that it is cut on both sides.
    """
    if len(chain) == 1:
        return []
    marks = [mark_in(function) is not None for function in chain]
    cascades = [cascade_in(function) is not None for function in chain]
    return [
        place
        for place in range(len(chain) - 1)
        if (marks[place + 1] and not marks[place]) or cascades[place] or cascades[place + 1]
    ]
