"""What a query makes of the groups of a window: ranks and shares among them, and aggregates.

All groups of a window are put out in one micro-batch, so Spark goes on with them right there: see
``docs/decisions/0085-spark-goes-on-above-windows.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.errors import NotShareableError
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, Tree, read_link
from eddyline.standing.described_outputs import canonical, shown_name
from eddyline.standing.markers import PARAMETER
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.shown_parameters import ShownParameters

_CHAIN: Final = frozenset({"Filter", "Project", "ArrowEvalPython", "BatchEvalPython"})

_STEPS: Final = _CHAIN | {"Aggregate", "Window", "WindowGroupLimit"}

_IDENTITY: Final = re.compile(r"#\d+L?")
"""What Spark's text of an expression says of identities, which differ from reading to reading."""


@dataclass(frozen=True)
class WindowStep:
    """The nodes of a plan above what one aggregate of streams puts out, from the bottom up.

    ``below`` is that part of the plan: the whole where there are no such nodes.
    """

    below: Plan
    nodes: tuple[Plan, ...]

    @property
    def result(self) -> Plan:
        """The plan whose outputs are the query's."""
        return self.nodes[-1] if self.nodes else self.below


class GroupReader(Protocol):
    """What has read the aggregate below; ``in_sessions`` says whether its windows are sessions."""

    in_sessions: bool

    def windows(self, plan: Plan) -> frozenset[ExpressionId]:
        """Return the outputs of a plan that say of which window a row is."""
        ...


def window_step(plan: Plan) -> WindowStep:
    """Return what stands above the lowest aggregate of a plan, and the filters right over it."""
    nodes: list[Plan] = []
    node = plan
    while _name(node) in _STEPS:
        nodes.append(node)
        node = catalyst.children(node)[0]
    first = max((n for n, one in enumerate(nodes) if _name(one) == "Aggregate"), default=0)
    while first and _name(nodes[first - 1]) in _CHAIN:
        first -= 1
    if not first:
        return WindowStep(plan, ())
    return WindowStep(nodes[first], tuple(reversed(nodes[:first])))


def said_of(
    step: WindowStep, meanings: Sequence[str], groups: GroupReader, shown: ShownParameters
) -> str:
    """Return a text that says all of a step; DeclinedError where it cannot be one.

    ``meanings`` are those of the outputs below it. Its parameters are taken among those that are
    ``shown``: they come to Spark with each row.
    """
    windows = groups.windows(step.below)
    return _StepReader(windows, shown, in_sessions=groups.in_sessions).text(step, meanings)


class _StepReader:
    """Reads a step from the bottom up."""

    def __init__(
        self, windows: Iterable[ExpressionId], shown: ShownParameters, *, in_sessions: bool
    ) -> None:
        """Take which attributes below it say of which window a row is.

        Sessions that begin at the same time may end, and so come, at different ones.
        """
        self._in_sessions = in_sessions
        self._windows = set(windows)
        self._shown = shown
        self._names: dict[int, str] = {}

    def text(self, step: WindowStep, meanings: Sequence[str]) -> str:
        for place, number in enumerate(catalyst.output_numbers(step.below)):
            self._names[number] = f"g{place}"
        return "\n".join([*meanings, *map(self._node, step.nodes)])

    def _node(self, node: Plan) -> str:
        name = _name(node)
        if name == "WindowGroupLimit":  # Spark infers it again
            return ""
        if name in _CHAIN:
            link, _ = read_link(node)
            if isinstance(link, EvaluationLink):
                self._parameters(link)
                return ""
        sizes = ""
        if name == "Window":
            partitions = catalyst.partitioned(node)
            self._require_window(partitions, "a window function (OVER)", "PARTITION BY window, …")
            sizes = str(len(partitions))
        elif name == "Aggregate":
            groups = catalyst.grouping(node)
            self._require_window(groups, "an aggregate of aggregates", "GROUP BY window, …")
            sizes = str(len(groups))
        said = [self._said(Tree.of(value)) for value in catalyst.own_expressions(node)]
        return f"{name} {sizes} {said}"

    def _parameters(self, link: EvaluationLink) -> None:
        for function, result in zip(link.functions, link.results, strict=True):
            name = str(function.node.fields["name"])
            if not name.startswith(PARAMETER):
                raise not_understood(
                    f"the Python function {name} of what is aggregated: call it in the sink"
                )
            self._shown.take(result, name.removeprefix(PARAMETER))

    def _require_window(self, by: Sequence[CatalystExpression], what: str, remedy: str) -> None:
        if not any(self._is_window(Tree.of(value)) for value in by):
            raise not_understood(
                f"{what} over the groups of several windows, of which there is no last one: write "
                f"{remedy} with the window of the aggregate below, or its start or end (of a "
                "session, its end)"
            )

    def _is_window(self, tree: Tree) -> bool:
        if tree.name == "GetStructField" and str(tree.node.fields["ordinal"]) == "0":
            return not self._in_sessions and self._is_window(tree.children[0])
        if tree.name in {"Alias", "GetStructField"}:
            return self._is_window(tree.children[0])
        return tree.name == "AttributeReference" and tree.identity in self._windows

    def _said(self, tree: Tree) -> str:
        _require_stable(tree)
        names = self._names | self._shown.names()
        whole = _IDENTITY.sub("", catalyst.whole_text(tree.handle))
        said = f"{canonical(tree.node, names, without=_IDENTITIES)} {whole}"
        if tree.name == "Alias":
            if self._is_window(tree):
                self._windows.add(tree.identity)
            self._names[tree.identity[0]] = f"n{len(self._names)}"
        return said


_IDENTITIES: Final = frozenset({"exprId", "qualifier", "resultId"})


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


def check_step(template: QueryTemplate, *, samples: bool) -> None:
    """Raise NotShareableError where groups may have lost events that others are compared with."""
    if template.further and samples:
        raise NotShareableError(
            "with on_overload='sample' the groups of a window that lost events would have wrong "
            "ranks and shares: window functions and aggregates over the groups of a window need "
            f"on_overload='block': {template.sql}"
        )


def _name(plan: Plan) -> str:
    return catalyst.class_name(plan).rpartition(".")[2]
