"""What of a plan cannot stand, as its user would call it, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eddyline.planner.read.chains import Tree
from eddyline.standing.existences import EXISTENCE

OTHER_JOINS: Final = {
    EXISTENCE: "EXISTS or IN about events, inside of OR or CASE: add a query for each side of OR, "
    "or join the stream",
}
"""What to write in the place of further kinds of joins."""


def why_not_joined(
    conjuncts: Sequence[Tree], of_match: Sequence[Tree], absent: int | None, alone: Sequence[str]
) -> str:
    """Return why the inputs are not joined as they have to be, and what to do.

    Of these conditions some are about a row of the input ``absent`` that fits. ``alone`` are the
    inputs that are joined with no other.
    """
    trees = [*conjuncts, *of_match]
    if absent is not None and any(tree.name == "EqualNullSafe" for tree in of_match):
        return (
            "EXCEPT, INTERSECT and semi or anti joins by <=>: write the condition into WHERE, "
            "or EXISTS, NOT EXISTS with an equality and a window"
        )
    if absent is not None and any(tree.name == "Or" for tree in of_match):
        return (
            "NOT IN about events, or OR in what says which of them are meant: write NOT EXISTS "
            "(SELECT … WHERE b.key = a.key AND b.time BETWEEN …)"
        )
    if any(tree.name == "EqualNullSafe" for tree in trees):
        return (
            "streams are joined by =, and <=> is none, as it has NULLs meet: write "
            "coalesce(a.x, '') = coalesce(b.x, ''), with a value that no event has (of a table as "
            "a column in tables=)"
        )
    if alone:
        return (
            f"nothing says which rows of {alone[0]} belong to which of the others: join all "
            "streams and tables by an equality, as in ON a.key = b.key, of values that are "
            "computed without errors (try_cast, try_add); every event with every other would "
            "be too many"
        )
    if absent is not None:
        return (
            "what must not be there is to be compared with columns that join the others, "
            "or with those of one of them: leave out the other equalities"
        )
    return (
        "the streams of a query are joined by equalities between all of them, of two columns "
        "of one type each: as in ON a.key = b.key AND b.key = c.key"
    )


def name_of_node(node: str) -> str:
    """Return what a node of a plan is to those who write queries, and what to write instead."""
    return _NODES.get(node, f"{node.upper()}, as Spark calls it: select and join events only")


_TOP: Final = (
    "write a top-k per window: QUALIFY row_number() OVER (PARTITION BY window ORDER BY …) <= k "
    "over a subquery"
)

_LIMIT: Final = f"LIMIT: results have no end; {_TOP}, or set max_results"

_NODES: Final = {
    "Aggregate": "an aggregate of a table, or of what an aggregate without a window gives: give "
    "its rows in tables= as a table, and write aggregates of streams with a window, which "
    "are joined by ON a.window = b.window",
    "GlobalLimit": _LIMIT,
    "LocalLimit": _LIMIT,
    "Sort": f"ORDER BY: results come as events do; {_TOP}, or sort them in the sink",
    "Distinct": "DISTINCT: leave it out, or GROUP BY window(time, '1 hour'), …",
    "Window": "a window function (OVER) of events: write an aggregate with GROUP BY window(time, "
    "…), max_by or min_by for the greatest and least, OVER (PARTITION BY window …) over it, or "
    "FOLLOWED BY for the event before or after",
    "LocalRelation": "a condition that is never true",
    "Expand": "several groupings: add a query for each of them",
    "Pivot": "PIVOT: write count(*) FILTER (WHERE …) for each value",
    "Sample": "TABLESAMPLE: write a condition such as crc32(key) % 10 = 0",
    "Deduplicate": "DISTINCT: leave it out, or GROUP BY window(time, '1 hour'), …",
}
"""What nodes of plans are to those who write queries, and what to write instead."""
