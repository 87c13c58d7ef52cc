"""What a query makes of the groups of a window: ranks and shares, aggregates, and joins of them.

All groups of a window are put out in one micro-batch, so Spark goes on with them right there: see
``docs/decisions/0085-spark-goes-on-above-windows.md`` and
``docs/decisions/0088-aggregates-are-joined-by-window.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.errors import NotShareableError
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, Tree, read_link
from eddyline.standing.described_outputs import canonical, shown_name, unsaid
from eddyline.standing.engine.aggregation.grouping import Grouping
from eddyline.standing.existences import EXISTENCE
from eddyline.standing.log.jobs import job_of
from eddyline.standing.markers import PARAMETER
from eddyline.standing.plan_sources import name_of
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.shown_parameters import ShownParameters
from eddyline.standing.step_tree import CHAIN, StepItem, StepNode, StepPart, StepTable, WindowStep
from eddyline.standing.window_bounds import WindowBound, WindowBounds

_IDENTITY: Final = re.compile(r"#\d+L?")
"""What Spark's text of an expression says of identities, which differ from reading to reading."""


class GroupReader(Protocol):
    """What has read an aggregate below."""

    def windows(self, plan: Plan) -> Mapping[ExpressionId, WindowBound]:
        """Return the outputs of a plan that say of which window a row is, and what of it."""
        ...


@dataclass(frozen=True)
class PartOfStep:
    """A part that a step goes on above: what has read it, and texts that say all of it."""

    groups: GroupReader
    texts: tuple[str, ...]


def said_of(
    step: WindowStep, parts: Sequence[PartOfStep], shown: ShownParameters, branch: int
) -> str:
    """Return a text that says all of a step; DeclinedError where it cannot be one.

    Its parameters are taken among those that are ``shown``: they come to Spark with each row.
    ``branch`` tells it from those of other branches of the same query.
    """
    reader = _StepReader(parts, shown)
    reader.read(step.top)
    texts = [text for part in parts for text in part.texts]
    return "\n".join([f"branch {branch}", *texts, *reader.texts])


class _StepReader:
    """Reads a step from the bottom up."""

    def __init__(self, parts: Sequence[PartOfStep], shown: ShownParameters) -> None:
        """Take what the parts below it are."""
        self._parts = parts
        self._shown = shown
        self._names: dict[int, str] = {}
        self._tables = 0
        self.texts: list[str] = []

    def read(self, item: StepItem) -> WindowBounds | None:
        """Read what is below a node, then it; return its bounds, None for rows of tables."""
        match item:
            case StepPart(plan, number):
                for place, output in enumerate(catalyst.output_numbers(plan)):
                    self._names[output] = f"g{number}.{place}"
                self.texts.append(f"part {number}")
                return WindowBounds.of_part(number, self._parts[number].groups.windows(plan))
            case StepTable(_, _, text, names):
                self.texts.append(f"table {self._tables}: {text}")
                self._names |= {n: f"{self._tables}.{name}" for n, name in names.items()}
                self._tables += 1
                return None
            case StepNode(node, below):
                sides = list(map(self.read, below))
                if len(sides) > 1:
                    return self._join(node, *sides)
                if sides[0] is None:
                    raise ValueError("a step over tables alone")
                return self._node(node, sides[0])

    def _join(
        self, node: Plan, left: WindowBounds | None, right: WindowBounds | None
    ) -> WindowBounds:
        kind = catalyst.join_type(node)
        condition = catalyst.join_condition(node)
        terms = [] if condition is None else [*Tree.of(condition).terms("And")]
        if kind == EXISTENCE:
            self._names[catalyst.identity_number(catalyst.existence(node))] = f"n{len(self._names)}"
        self.texts.append(f"{kind} {[self._said(term) for term in terms]}")
        if left is None or right is None:
            return _with_table(kind, left, right)
        if not any(left.are_joined(right, term) for term in terms):
            raise not_understood(_OF_SEVERAL_WINDOWS)
        return left.joined(right, kind)

    def _node(self, node: Plan, bounds: WindowBounds) -> WindowBounds:
        name = name_of(node)
        if name == "WindowGroupLimit":  # Spark infers it again
            return bounds
        if name in CHAIN:
            link, _ = read_link(node)
            if isinstance(link, EvaluationLink):
                self._parameters(link)
                return bounds
        sizes = ""
        if name == "Window":
            partitions = catalyst.partitioned(node)
            _require_window(bounds, partitions, "a window function (OVER)", "PARTITION BY")
            sizes = str(len(partitions))
        elif name == "Aggregate":
            groups = catalyst.grouping(node)
            _require_window(bounds, groups, "an aggregate of aggregates", "GROUP BY")
            sizes = str(len(groups))
        trees = list(map(Tree.of, catalyst.own_expressions(node)))
        self.texts.append(f"{name} {sizes} {list(map(self._said, trees))}")
        return bounds.with_names({t.identity: t for t in trees if t.name == "Alias"})

    def _parameters(self, link: EvaluationLink) -> None:
        for function, result in zip(link.functions, link.results, strict=True):
            name = str(function.node.fields["name"])
            if not name.startswith(PARAMETER):
                raise not_understood(
                    f"the Python function {name} of what is aggregated: call it in the sink"
                )
            self._shown.take(result, name.removeprefix(PARAMETER))

    def _said(self, tree: Tree) -> str:
        _require_stable(tree)
        names = self._names | self._shown.names()
        whole = _IDENTITY.sub("", catalyst.whole_text(tree.handle))
        # What may raise an error is told by the last: / and try_divide are alike in all others.
        said = f"{canonical(tree.node, names, without=_IDENTITIES)} {whole} {unsaid(tree)}"
        if tree.name == "Alias":
            self._names[tree.identity[0]] = f"n{len(self._names)}"
        return said


_IDENTITIES: Final = frozenset({"exprId", "qualifier", "resultId"})


def _require_window(
    bounds: WindowBounds, by: Sequence[CatalystExpression], what: str, clause: str
) -> None:
    if not any(bounds.says_window(Tree.of(value)) for value in by):
        raise not_understood(
            f"{what} over the groups of several windows, of which there is no last one: write "
            f"{clause} window, … with the window of the aggregate below, or its start or end (of a "
            "session, its end; of an outer join, that of the side that is never missing; of a FULL "
            "JOIN, coalesce() of both)"
        )


def _with_table(kind: str, left: WindowBounds | None, right: WindowBounds | None) -> WindowBounds:
    """Return the bounds of a join with rows of tables, none of which is put out alone."""
    if left is not None and kind not in {"RIGHT OUTER", "FULL OUTER"}:
        return left
    if right is not None and kind in {"INNER", "CROSS", "RIGHT OUTER"}:
        return right
    raise not_understood(
        "a join that puts out rows of a table that no group meets, which is never known: write "
        "aggregate LEFT JOIN table"
    )


_OF_SEVERAL_WINDOWS: Final = (
    "a join of aggregates whose groups may be of any two windows, of which there is no last one: "
    "write ON a.window = b.window, or a.window.start = b.window.start, of windows of one size, or "
    "a.window.end = b.window.end, also for several sizes; sessions are not joined"
)


def _require_stable(tree: Tree) -> None:
    """Raise DeclinedError for what may be another value each time that it is computed.

    Functions such as ``collect_list``, which depend on the order of rows, are as in any query.
    """
    if catalyst.is_deterministic(tree.handle):
        return
    parts = tree.children
    if tree.name == "AggregateExpression":
        parts = (*tree.children[0].children, *tree.children[1:])
    elif all(catalyst.is_deterministic(child.handle) for child in parts):
        raise not_understood(
            f"{shown_name(catalyst.pretty(tree.handle))}, which is not deterministic, of what is "
            "aggregated: compute it in the sink"
        )
    for part in parts:
        _require_stable(part)


def check_together(parts: Sequence[QueryTemplate]) -> None:
    """Raise DeclinedError where windows of the parts that a step goes on above close apart."""
    if len({job_of(part) for part in parts}) > 1:
        raise not_understood(
            "a join of aggregates of different streams, or of streams that are joined by different "
            "keys, whose windows close in micro-batches of their own: make the streams one, by "
            "UNION ALL in its DataFrame, and write count(*) FILTER (WHERE …), or join what several "
            "queries put out in a further stream"
        )
    if len({_grouping(part).delay for part in parts}) > 1:
        raise not_understood(
            "a join of aggregates that wait for rows of joined streams for different times after "
            "the end of a window: write the same bounds between the times of the streams in both"
        )


def check_backfill(branches: Sequence[QueryTemplate], look_back: int | None) -> None:
    """Raise NotShareableError where old windows of the parts of a step would be put out apart."""
    windows: dict[str, set[object]] = {}
    for template in branches:
        if look_back is not None and template.further:
            windows.setdefault(template.further, set()).add(_grouping(template).window)
    if any(len(of_step) > 1 for of_step in windows.values()):
        raise NotShareableError(
            "a join of aggregates in different windows takes no backfill, as no part of the old "
            "events has whole windows of both: leave it out, or write the same window(time, …) in "
            f"both: {branches[0].sql}"
        )


def _grouping(template: QueryTemplate) -> Grouping:
    if template.aggregated is None:
        raise ValueError(f"{template.sql} aggregates nothing")
    return template.aggregated.aggregation.grouping


def check_step(template: QueryTemplate, *, samples: bool) -> None:
    """Raise NotShareableError where groups may have lost events that others are compared with."""
    if template.further and samples:
        raise NotShareableError(
            "with on_overload='sample' the groups of a window that lost events would have wrong "
            "ranks and shares: window functions, aggregates and joins of the groups of a window "
            f"need on_overload='block': {template.sql}"
        )
