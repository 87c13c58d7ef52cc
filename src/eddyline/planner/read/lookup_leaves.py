"""Where a plan reads a lookup table: a leaf that Spark could not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import Plan

LOOKUP_NAME: Final = "lookup("
"""How the name of a lookup table's function begins, which no function of a user's can have."""

CHOICE_NAME: Final = "keys("
"""How the name of the function begins that has the keys of such a table asked for."""


def lookup_command(plan: Plan) -> bytes | None:
    """Return the function that stands for a lookup table; None where a node is none."""
    if not catalyst.class_name(plan).endswith("MapInArrow"):
        return None
    (function,) = catalyst.evaluated_functions(plan)
    if not catalyst.function_name(function).startswith(LOOKUP_NAME):
        return None
    return catalyst.pickled_function(function).command


def choice_commands(plan: Plan) -> Iterator[bytes]:
    """Yield the functions of a plan that have keys asked for, or else the table scanned."""
    if not catalyst.has_python_function(plan):
        return
    if catalyst.class_name(plan).endswith("MapInArrow"):
        (function,) = catalyst.evaluated_functions(plan)
        if catalyst.function_name(function).startswith(CHOICE_NAME):
            yield catalyst.pickled_function(function).command
    for part in (*catalyst.children(plan), *catalyst.subqueries(plan)):
        yield from choice_commands(part)


def lookup_leaves(plan: Plan) -> Iterator[Plan]:
    """Yield the lookup tables in a plan, those of its subqueries included."""
    if not catalyst.has_python_function(plan):
        return
    if lookup_command(plan) is not None:
        yield plan
        return
    for part in (*catalyst.children(plan), *catalyst.subqueries(plan)):
        yield from lookup_leaves(part)
