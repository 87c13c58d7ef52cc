"""Hands keys of a join down to the lookups below what stands between them.

A subquery that is correlated by ``k`` becomes a join with an aggregate by ``k``, and nothing gives
values to a lookup table below the aggregate. None of its rows but those with a key of the other
side is ever joined, so the table is joined below with the distinct keys of that side: below
aggregates and windows by these keys, unions, filters, sorts, and joins that keep the rows of
the table's side. This is the rewriting by magic sets (Bancilhon, Maier, Sagiv and Ullman, 1986; for
correlated subqueries Seshadri, Pirahesh and Leung, 1996).

The other side is read twice, so it is used only where it is known to give the same rows again.
Where it is not, and its keys come from the kept rows of outer joins alone, those will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.rewrite.computed_keys import widens, with_computed_keys
from eddyline.planner.rewrite.replaced import over_lookups

_KEEPING: Final = frozenset({"LEFT OUTER", "LEFT SEMI", "LEFT ANTI", "EXISTENCE"})
"""Joins whose rows are rows of the left side, perhaps beside others."""

_PASSING_ALL: Final = frozenset({"LEFT OUTER", "EXISTENCE"})
"""Those of them that drop no row."""

_HANDED_TO_RIGHT: Final = _KEEPING | {"INNER", "CROSS"}
_HANDED_TO_LEFT: Final = frozenset({"INNER", "CROSS", "RIGHT OUTER", "LEFT SEMI"})

_Wanted: TypeAlias = Mapping[int, CatalystExpression]
"""The columns of a plan, by the numbers in their identities, and the key each has to equal."""

_Keys: TypeAlias = Sequence[CatalystExpression]
_ReadAgain: TypeAlias = Callable[[Plan, _Keys], "tuple[Plan, _Keys] | None"]


def with_keys_handed_down(plan: Plan) -> Plan:
    """Return a plan whose lookups get the keys that joins above have for them; itself if none."""
    return over_lookups(plan, _with_keys_handed_down)


def what_keeps_keys_away(plan: Plan) -> str:
    """Return why no keys are handed down to lookup tables of a plan, as sentences for people."""
    return " ".join(dict.fromkeys(_kept_away(with_computed_keys(plan), limited=False)))


def _kept_away(plan: Plan, *, limited: bool) -> Iterator[str]:
    if next(lookup_leaves(plan), None) is None:
        return
    kind = catalyst.class_name(plan).rpartition(".")[2]
    children = catalyst.children(plan)
    if not any(next(lookup_leaves(child), None) is not None for child in children) and limited:
        yield (
            "It stands below a LIMIT over the rows of all keys. In LATERAL and correlated "
            "subqueries that is so where the key is computed or cast, also in plain Spark, which "
            "then gives too few rows: name the key in a subquery of the other table, in the "
            "column's own type. Or join a subquery that numbers the rows of each key, "
            "row_number() OVER (PARTITION BY the key ORDER BY …)."
        )
    condition = catalyst.join_condition(plan) if kind == "Join" else None
    for place, child in enumerate(children):
        if condition is not None and _lacks_keys(Tree.of(condition), children, place):
            yield (
                "The keys of the other side cannot be handed down to it, as that side may give "
                "other rows when it is read again: keep it first, as with localCheckpoint()."
            )
        yield from _kept_away(child, limited=(limited or "Limit" in kind) and kind != "Join")


def _lacks_keys(condition: Tree, sides: Sequence[Plan], to: int) -> bool:
    """Whether keys would be handed down to a side if the other could be read again."""
    if next(lookup_leaves(sides[to]), None) is None:
        return False
    giving = sides[1 - to]
    reduced = _handed_down(condition, giving, sides[to], again=lambda plan, keys: (plan, keys))
    return reduced is not sides[to] and not catalyst.gives_same_rows(giving)


def _with_keys_handed_down(join: Plan) -> Plan:
    if not catalyst.class_name(join).endswith(".Join"):
        return join
    condition = catalyst.join_condition(join)
    if condition is None:
        return join
    sides = list(catalyst.children(join))
    kind = catalyst.join_type(join)
    for to, kinds in ((1, _HANDED_TO_RIGHT), (0, _HANDED_TO_LEFT)):
        if kind in kinds and next(lookup_leaves(sides[to]), None) is not None:
            sides[to] = _handed_down(Tree.of(condition), sides[1 - to], sides[to])
    if all(one is other for one, other in zip(catalyst.children(join), sides, strict=True)):
        return join
    return catalyst.with_children(join, sides)


def _handed_down(
    condition: Tree,
    giving: Plan,
    asked: Plan,
    again: _ReadAgain | None = None,
) -> Plan:
    """Return a side of a join, with the keys of the other side handed down in it.

    ``again`` gives what has these keys when it is read again.
    """
    again = again or _read_again
    given = frozenset(catalyst.output_numbers(giving))
    numbers = frozenset(catalyst.output_numbers(asked))
    columns: list[int] = []
    keys: list[CatalystExpression] = []
    for term in condition.terms("And"):
        if term.name != "EqualTo" or any(
            child.name != "AttributeReference" for child in term.children
        ):
            continue
        for one, other in (term.children, term.children[::-1]):
            if one.identity[0] in numbers and other.identity[0] in given:
                columns.append(one.identity[0])
                keys.append(other.handle)
    pair = again(giving, keys) if keys else None
    if pair is None:
        return asked
    source, values = pair
    wanted = dict(zip(columns, values, strict=True))
    return _reduced(asked, wanted, source, passed=False)


def _read_again(plan: Plan, keys: _Keys) -> tuple[Plan, _Keys] | None:
    """Return a plan that gives the same rows again, and keys of another plan over it.

    None where no plan has just these keys, or more of them below a limit that Spark has pushed to
    this side: a limit in another place than the query's may keep other rows when it is read again,
    and without it the keys are those that the query has without its LIMIT.
    """
    while not catalyst.gives_same_rows(plan):
        kind = catalyst.class_name(plan).rpartition(".")[2]
        if kind not in {"Join", "Project", "LocalLimit", "ArrowEvalPython", "BatchEvalPython"}:
            return None  # a GlobalLimit is the query's own: what is below it may have far more keys
        if kind == "Join" and catalyst.join_type(plan) not in _PASSING_ALL:
            return None
        if kind == "Project":
            items = [item for item in catalyst.project_list(plan) if Tree.of(item).name == "Alias"]
            meant = [(catalyst.attribute_of(item), catalyst.aliased(item)) for item in items]
            keys = [catalyst.in_terms_of(key, meant) for key in keys]
        plan = catalyst.children(plan)[0]
        own = frozenset(catalyst.output_numbers(plan))
        if not all(number in own for key in keys for number, _ in Tree.of(key).attributes()):
            return None
    return plan, keys


def _reduced(plan: Plan, wanted: _Wanted, source: Plan, *, passed: bool) -> Plan:
    """Return a plan without all or some of the rows whose ``wanted`` columns equal no key.

    ``passed`` says that a node was passed on the way below which no join above would reach.
    """
    if next(lookup_leaves(plan), None) is None:
        return plan
    children = catalyst.children(plan)
    below = [_below(plan, place, wanted) for place in range(len(children))]
    if not any(below):
        return _by_keys(source, plan, wanted) if passed else plan
    passed = passed or catalyst.class_name(plan).rpartition(".")[2] not in {"Project", "Filter"}
    new = [
        _reduced(child, columns, source, passed=passed) if columns else child
        for child, columns in zip(children, below, strict=True)
    ]
    if all(one is other for one, other in zip(children, new, strict=True)):
        return plan
    return catalyst.with_children(plan, new)


def _below(plan: Plan, place: int, wanted: _Wanted) -> _Wanted:  # noqa: PLR0911 - one a kind
    """Return the columns of a child that must equal the keys for the columns of a plan to do so."""
    kind = catalyst.class_name(plan).rpartition(".")[2]
    child = catalyst.children(plan)[place]
    own = frozenset(catalyst.output_numbers(child))
    match kind:
        case "Filter":
            fits = catalyst.is_deterministic(catalyst.condition(plan))
            return wanted if fits else {}
        case "Sort":
            return wanted
        case "Project":
            fits = catalyst.node_fields(plan).deterministic
            return _renamed(catalyst.project_list(plan), wanted) if fits else {}
        case "Aggregate":
            groups = {
                number for expression in catalyst.grouping(plan) for number in _column(expression)
            }
            passed = _renamed(catalyst.aggregated(plan), wanted)
            return {number: key for number, key in passed.items() if number in groups}
        case "Window" | "WindowGroupLimit":
            groups = {
                number
                for expression in catalyst.partitioned(plan)
                for number in _column(expression)
            }
            return {number: key for number, key in wanted.items() if number in groups}
        case "Union":
            columns = zip(
                catalyst.output_numbers(plan), catalyst.output_numbers(child), strict=True
            )
            return {inner: wanted[outer] for outer, inner in columns if outer in wanted}
        case "Join" if place == 0 and catalyst.join_type(plan) in _KEEPING:
            return {number: key for number, key in wanted.items() if number in own}
    return {}


def _renamed(items: list[CatalystExpression], wanted: _Wanted) -> _Wanted:
    """Return the columns that named expressions pass on as the ``wanted`` ones."""
    columns = {}
    for tree in map(Tree.of, items):
        if tree.identity[0] not in wanted:
            continue
        key = wanted[tree.identity[0]]
        inner = tree.children[0] if tree.name == "Alias" else tree
        if inner.name == "Cast" and widens(inner.children[0], inner):
            key = catalyst.narrowed(key, inner.handle)
            inner = inner.children[0]
        if inner.name == "AttributeReference":
            columns[inner.identity[0]] = key
    return columns


def _column(expression: CatalystExpression) -> Iterator[int]:
    tree = Tree.of(expression)
    if tree.name == "AttributeReference":
        yield tree.identity[0]


def _by_keys(source: Plan, plan: Plan, wanted: _Wanted) -> Plan:
    """Return the rows of a plan that have keys of another one."""
    items = [catalyst.named(key, "key") for key in wanted.values()]
    distinct = catalyst.distinct(catalyst.projected(items, source))
    columns = dict(zip(catalyst.output_numbers(plan), catalyst.outputs(plan), strict=True))
    equalities = [
        catalyst.equal(columns[number], key)
        for number, key in zip(wanted, catalyst.outputs(distinct), strict=True)
    ]
    joined = catalyst.inner_join_of(plan, distinct, catalyst.conjunction(equalities))
    return catalyst.projected_like(plan, joined)
