"""Chains: the runs of filters, projections and Python evaluations in a plan.

In an optimized plan a Python function stands in a node of its own
(``ArrowEvalPython``, ``BatchEvalPython``), which adds the function's result as
an attribute; the filters and projections above refer to that attribute. A chain
is a maximal run of such nodes over one child. It is read here into frozen data
with handles into the JVM; :mod:`eddyline.planner.claim.filter_claim` decides about it and
:mod:`eddyline.planner.rewrite.filter_rewrite` rebuilds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from eddyline import catalyst
from eddyline.blocks.filter_block import FUSED_NAME
from eddyline.catalyst import CatalystExpression, NodeFields, PickledFunction, Plan
from eddyline.planner.read.translation import CatalystNode, tree_of

ExpressionId = tuple[int, str]
"""How Catalyst tells attributes apart: a number, and the JVM that gave it."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A Catalyst expression as data, with the way to its handle in the JVM.

    ``root`` fetches the handle of the outermost expression, and ``fetch_pickled`` its function,
    where it is known as one of many. The walks are loops, not recursions, where a chain of a
    thousand ANDs is to be expected.
    """

    node: CatalystNode
    root: Callable[[], CatalystExpression]
    parent: Tree | None = None
    position: int = 0
    fetch_pickled: Callable[[], PickledFunction] | None = None

    @classmethod
    def of(cls, expression: CatalystExpression) -> Tree:
        """Read an expression from the JVM."""
        return cls(tree_of(catalyst.read_expression(expression)), lambda: expression)

    @property
    def name(self) -> str:
        """The class of the top node, without its package."""
        return self.node.name

    @property
    def evaluation_type(self) -> int:
        """The number by which PySpark tells how the function of a ``PythonUDF`` is called."""
        return int(str(self.node.fields["evalType"]))

    @cached_property
    def children(self) -> tuple[Tree, ...]:
        """The expressions right below."""
        nodes = enumerate(self.node.children)
        return tuple(Tree(child, self.root, self, position) for position, child in nodes)

    @cached_property
    def handle(self) -> CatalystExpression:
        """The expression in the JVM; only asked for where it is needed.

        Those above it are remembered as well: in a nest of n levels, to start from the outermost
        one for each part would take n * n / 2 calls.
        """
        if (known := self._known_handle()) is not None:
            return known
        unknown = [self]
        while unknown[-1].parent is not None and "handle" not in unknown[-1].parent.__dict__:
            unknown.append(unknown[-1].parent)
        for tree in reversed(unknown):
            above = None if tree.parent is None else tree.parent.__dict__["handle"]
            handle = (
                self.root() if above is None else catalyst.expression_at(above, [tree.position])
            )
            tree.__dict__["handle"] = handle
        return handle

    def _known_handle(self) -> CatalystExpression | None:
        """Return the handle that came with what was read, if one did."""
        entry = self.node.entry
        return entry.handle if isinstance(entry, catalyst.ReadNode) else None

    @property
    def pickled(self) -> PickledFunction:
        """The function of a ``PythonUDF``."""
        fetch = self.fetch_pickled
        return catalyst.pickled_function(self.handle) if fetch is None else fetch()

    @property
    def data_type(self) -> str:
        """The type as JSON; asked of the JVM where the expression's own JSON does not tell."""
        if self.name in {"AttributeReference", "PythonUDF"}:
            kind = self.node.fields["dataType"]
            return json.dumps(kind, separators=(",", ":"), ensure_ascii=False)
        return catalyst.data_type(self.handle)

    def at(self, path: tuple[int, ...]) -> Tree:
        """Return the expression reached by taking child after child."""
        tree = self
        for position in path:
            tree = tree.children[position]
        return tree

    @cached_property
    def identity(self) -> ExpressionId:
        """The identity of an attribute or of a named expression."""
        return _identity(self.node.fields["exprId"])

    @cached_property
    def result(self) -> ExpressionId:
        """The identity that a ``PythonUDF`` has of its own."""
        return _identity(self.node.fields["resultId"])

    def attributes(self) -> Iterator[ExpressionId]:
        """Identities of the attributes that the expression refers to."""
        pending = [self]
        while pending:
            tree = pending.pop()
            if tree.name == "AttributeReference":
                yield tree.identity
            elif (known := tree.node.attributes) is not None:  # what is below is not read
                yield from (_identity(attribute.fields["exprId"]) for attribute in known)
                continue
            pending.extend(tree.children)

    def terms(self, connective: str) -> Iterator[Tree]:
        """Return the terms of a nest of binary ``And`` or ``Or`` nodes, left to right."""
        pending = [self]
        while pending:
            tree = pending.pop()
            if tree.name == connective:
                pending.extend(reversed(tree.children))
            else:
                yield tree


def _identity(fields: object) -> ExpressionId:
    if not isinstance(fields, dict):
        raise TypeError(f"an expression's identity is an object in JSON, not {fields!r}")
    return int(fields["id"]), str(fields["jvmId"])


@dataclass(frozen=True)
class FilterLink:
    """A ``Filter``: the conjuncts of its condition."""

    plan: Plan
    conjuncts: tuple[Tree, ...]


@dataclass(frozen=True)
class ProjectLink:
    """A ``Project``: its named expressions."""

    plan: Plan
    items: tuple[Tree, ...]


@dataclass(frozen=True)
class EvaluationLink:
    """A node that evaluates Python functions.

    Function ``i`` of the node is ``functions[i]`` and gives the attribute
    ``results[i]``. ``indexes`` names those that belong to the chain: all of
    them, or, at the bottom of a chain, the deterministic ones.
    """

    plan: Plan
    functions: tuple[Tree, ...]
    results: tuple[Tree, ...]
    indexes: tuple[int, ...]


Link = FilterLink | ProjectLink | EvaluationLink


@dataclass(frozen=True)
class Chain:
    """Links from the bottom up, over ``base``; the lowest evaluates Python functions.

    Without links nothing is evaluated in it. ``run`` are all nodes of the run from
    the top down, whether they matter or not, and ``below`` is the node after them.
    ``unstable`` are the attributes of the base that non-deterministic functions
    gave, with these functions. ``breaker`` is a filter whose condition is not
    deterministic, where that is why ``top`` is in no chain. ``lower`` are the links
    under the lowest evaluation, which are a part of the base.
    """

    top: Plan
    base: Plan
    links: tuple[Link, ...]
    run: tuple[Plan, ...]
    below: Plan
    unstable: Mapping[ExpressionId, Tree]
    breaker: FilterLink | None = None
    lower: tuple[Link, ...] = ()

    def above(self, position: int) -> Chain:
        """Return the chain that starts at the first evaluation from link ``position`` on."""
        links = _from_evaluation(self.links[position:])
        start = len(self.links) - len(links)
        base = self.links[start - 1].plan if start else self.base
        return replace(self, base=base, links=links, lower=())

    def from_lower(self, position: int) -> Chain:
        """Return the chain with its ``lower`` links from a position on among its links."""
        base = catalyst.children(self.lower[position].plan)[0]
        return replace(self, base=base, links=self.lower[position:] + self.links, lower=())


def read_chain(top: Plan) -> Chain:
    """Read the chain that starts at ``top``; it is empty if ``top`` cannot be in one.

    Nodes with non-deterministic expressions end a chain, since nothing may be
    moved past them, and so do blocks that were claimed before. A node that
    evaluates deterministic and other functions together is split: the others
    become part of the base.
    """
    links: list[Link] = []
    run: list[Plan] = []
    unstable: dict[ExpressionId, Tree] = {}
    breaker: FilterLink | None = None
    base = plan = top
    while not unstable:
        link, deterministic = read_link(plan)
        if link is None:
            break
        below = catalyst.children(plan)[0]
        if deterministic:
            base = below
        elif isinstance(link, EvaluationLink):
            link, base, unstable = _split(link, below)
        else:
            breaker = link if isinstance(link, FilterLink) and not run else None
            break
        links.append(link)
        run.append(plan)
        plan = below
    in_order = tuple(reversed(links))
    # Over functions that are not deterministic every filter is of interest to `explain`.
    from_evaluation = in_order if unstable else _from_evaluation(in_order)
    if skipped := len(in_order) - len(from_evaluation):
        base = in_order[skipped - 1].plan
    lower = in_order[:skipped]
    return Chain(top, base, from_evaluation, tuple(run), plan, unstable, breaker, lower)


def read_link(plan: Plan) -> tuple[Link | None, bool]:
    """Read a node as a link, None if it is no such node, and whether it is deterministic."""
    name = catalyst.class_name(plan).rpartition(".")[2]
    if name not in {"Filter", "Project", "ArrowEvalPython", "BatchEvalPython"}:
        return None, False
    read = catalyst.node_fields(plan)
    if name == "Filter":
        (condition,) = _trees(read, "condition", lambda _: catalyst.condition(plan))
        return FilterLink(plan, tuple(condition.terms("And"))), read.deterministic
    if name == "Project":
        items = _trees(read, "projectList", partial(catalyst.project_item, plan))
        return ProjectLink(plan, items), read.deterministic
    pickled = _Pickled(plan)
    functions = tuple(
        replace(function, fetch_pickled=partial(pickled.number, i))
        for i, function in enumerate(
            _trees(read, "udfs", partial(catalyst.evaluated_function, plan))
        )
    )
    if any(str(function.node.fields["name"]).startswith(FUSED_NAME) for function in functions):
        return None, True
    results = _trees(read, "resultAttrs", partial(catalyst.result_attribute, plan))
    link = EvaluationLink(plan, functions, results, tuple(range(len(functions))))
    return link, read.deterministic


def _trees(
    read: NodeFields, name: str, handle_at: Callable[[int], CatalystExpression]
) -> tuple[Tree, ...]:
    """Return the expressions in a field of a node; ``handle_at`` fetches the handle of one."""
    return tuple(
        Tree(tree_of(expression), partial(handle_at, index))
        for index, expression in enumerate(read.fields[name])
    )


@dataclass(frozen=True, eq=False)
class _Pickled:
    """The functions of a node, fetched together when the first of them is asked for."""

    plan: Plan

    @cached_property
    def _all(self) -> list[PickledFunction]:
        return catalyst.pickled_functions(self.plan)

    def number(self, index: int) -> PickledFunction:
        return self._all[index]


def _split(
    link: EvaluationLink, below: Plan
) -> tuple[EvaluationLink, Plan, dict[ExpressionId, Tree]]:
    """Split off what is not deterministic: into a node of its own, right over ``below``."""
    unstable = [i for i in link.indexes if not catalyst.is_deterministic(link.functions[i].handle)]
    functions = {link.results[i].identity: link.functions[i] for i in unstable}
    stable = tuple(i for i in link.indexes if i not in unstable)
    base = catalyst.evaluation_of(link.plan, unstable, below) if stable else link.plan
    return replace(link, indexes=stable), base, functions


def _from_evaluation(links: tuple[Link, ...]) -> tuple[Link, ...]:
    """Drop the links at the bottom that evaluate no function of the chain."""
    for position, link in enumerate(links):
        if isinstance(link, EvaluationLink) and link.indexes:
            return links[position:]
    return ()


def fused_commands(plan: Plan, *, within_cached: bool = True) -> Iterator[bytes]:
    """Yield the pickled functions of all blocks in a plan, its subqueries and cached parts."""
    for function in catalyst.evaluated_functions(plan):
        nest: CatalystExpression | None = function
        while nest is not None and catalyst.function_name(nest).startswith(FUSED_NAME):
            yield catalyst.pickled_function(nest).command
            nest = catalyst.called_in_one_go(nest)
    inside = [*catalyst.children(plan), *catalyst.subqueries(plan)]
    if within_cached:
        inside += catalyst.cached(plan)
    for part in inside:
        yield from fused_commands(part, within_cached=within_cached)
