"""Tables that can be looked up and scanned: which of the two, by the keys that a query has.

In the place of such a table stands what has all of its rows that a join above can use:

1. the distinct keys of the join's other side, which is read beforehand for that, or constants;
2. what has these asked for at the driver, each once, until all have answers, or those that are
   left would take longer than a scan (:mod:`eddyline.asking.scan_choice`): it gives their rows, or
   one row that says that the table is to be scanned. It is shuffled, so that it is one stage that
   runs once, though it is read twice;
3. the rows of the keys, where it has no such row; and the scan, where it has one.

The scan is semijoined with that row, which is broadcast, and so are the rows antijoined where
several tasks have keys. Where it is not there, adaptive execution drops the scan before it starts
(Spark's AQEPropagateEmptyRelation): so of the two only one runs, and it runs when nobody waits for
answers. A scan begun beside tasks that wait would need cores, which these hold.

Where one task reads a small side for its keys it is the other way round: it gives no row at all if
the table is to be scanned, and one more than those of the keys if it is not. Then the scan is
antijoined with that stage itself, and dropped as soon as this is over: no job has to find out
first whether it has a certain row. That job is a tenth of what a query with few keys takes.

All above is Spark's, or an eddy's, as over a scan. The other side is read twice, so it must give
the same rows again, without functions in Python, and be quick to read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from math import prod
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType

from eddyline import catalyst
from eddyline.asking.driver_channel import Address
from eddyline.asking.price import Price
from eddyline.blocks.column_types import arrow_type, spark_type
from eddyline.blocks.lookup_table import AccessChoice, ChosenWay, LookupTable, PlannedLookup
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.digest import digest
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.lookup_leaves import CHOICE_NAME, lookup_leaves
from eddyline.planner.rewrite.steps import map_in_arrow
from eddyline.tasks.chosen_access import SCAN_WANTED, AskedKeys, AskedWay
from eddyline.tasks.our_functions import pickled

BYTES_A_SECOND: Final = 100_000_000
"""Bytes of a table that are taken to be read in a second: what one core decodes of Parquet."""

CHEAP: Final = 2.0
"""Seconds of a scan below which it begins at once.

To find the keys, and that they are few, takes two small stages: some tenths of a second.
"""

UNKNOWN: Final = 10.0
"""Seconds that a scan is taken to need where Spark knows nothing of its size, as by JDBC."""

TINY: Final = 1 << 20
"""Bytes of a side that one task reads for its keys, which then are not shuffled."""

READ_TWICE: Final = 0.1
"""Part of the scan's time that it may take to read the other side for its keys."""

MOST_CONSTANTS: Final = 100
"""Keys of constants for which it is worth to find out."""

_HANDED_TO_RIGHT: Final = frozenset(
    {"INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI", "EXISTENCE"}
)
_HANDED_TO_LEFT: Final = frozenset({"INNER", "CROSS", "RIGHT OUTER", "LEFT SEMI"})
_PASSED: Final = frozenset({"Project", "Filter"})
_ONE_STAGE: Final = _PASSED | {"MapInArrow", "MapInPandas"}
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"


@dataclass(frozen=True)
class AccessRules:
    """What choices of one rewriting are made with.

    ``run`` tells its jobs from others, ``server`` says where tasks ask, ``register`` takes note of
    the function that stands for a choice, and ``learned`` tells what a scan has taken, by its name.
    ``worth`` has the seconds that units of money are worth.
    """

    spark: SparkSession
    run: int
    zone: str
    server: Callable[[], Address]
    register: Callable[[bytes, AccessChoice], None]
    learned: Callable[[str], float | None]
    worth: Mapping[str, float] = field(default_factory=dict)
    uses: Iterator[int] = field(default_factory=count)

    def money(self, price: Price) -> float:
        """Return what a price is worth, in seconds."""
        return price.of(()) * self.worth.get(price.unit, 0.0)

    @property
    def apply(self) -> bool:
        """Whether Spark would leave out the one that is not chosen."""
        return str(self.spark.conf.get(_ADAPTIVE)).lower() == "true"


def with_chosen_access(
    plan: Plan, rules: AccessRules, table_of: Callable[[Plan], LookupTable | None]
) -> Plan:
    """Return a join, or a filter, in which a table with a scan is looked up or scanned.

    It turns out which of the two. The same handle where there is no such table, or its scan is to
    begin at once.
    """
    kind = catalyst.class_name(plan).rpartition(".")[2]
    if kind == "Join" and rules.apply:
        return _join_with(plan, rules, table_of)
    if kind == "Filter" and rules.apply:
        return _filter_with(plan, rules, table_of)
    return plan


def _filter_with(
    plan: Plan, rules: AccessRules, table_of: Callable[[Plan], LookupTable | None]
) -> Plan:
    """Return a filter over a table that it gives constants for."""
    leaf = leaf_below(plan, table_of)
    table = None if leaf is None else table_of(leaf)
    if leaf is None or table is None or not table.scan:
        return plan
    given = _constants(plan, leaf)
    ways = _ways(table, given)
    columns = _columns(ways)
    if not ways or prod(len(given[column]) for column in columns) > MOST_CONSTANTS:
        return plan
    names = [f"k{n}" for n in range(len(columns))]
    rows = [
        catalyst.one_row([catalyst.named(*pair) for pair in zip(values, names, strict=True)])
        for values in product(*(given[column] for column in columns))
    ]
    giving = catalyst.union(rows) if len(rows) > 1 else rows[0]
    new = _chosen(rules, leaf, table, ways, catalyst.outputs(giving), giving)
    return plan if new is None else _with_leaf(plan, new)


def _ways(table: LookupTable, bound: Collection[int]) -> list[PlannedLookup]:
    """Return the ways to a table for which a query has values."""
    return [way for way in table.chosen if set(way.bind) <= set(bound)]


def _columns(ways: Sequence[PlannedLookup]) -> list[int]:
    """Return the columns that any of some ways binds, each once."""
    return list(dict.fromkeys(column for way in ways for column in way.bind))


def _constants(plan: Plan, leaf: Plan) -> Mapping[int, Sequence[CatalystExpression]]:
    """Return the constants that filters over a table have for its columns, by their places."""
    own = {number: place for place, number in enumerate(catalyst.output_numbers(leaf))}
    found: dict[int, Sequence[CatalystExpression]] = {}
    while plan is not leaf:
        if catalyst.class_name(plan).endswith(".Filter"):
            for conjunct in Tree.of(catalyst.condition(plan)).terms("And"):
                if conjunct.name not in {"EqualTo", "In"}:
                    continue
                column, *values = conjunct.children
                if column.name == "Literal":
                    column, values = values[0], [column]
                if column.name != "AttributeReference" or column.identity[0] not in own:
                    continue
                if all(value.name == "Literal" for value in values):
                    found.setdefault(own[column.identity[0]], [value.handle for value in values])
        (plan,) = catalyst.children(plan)
    return found


def _join_with(
    join: Plan, rules: AccessRules, table_of: Callable[[Plan], LookupTable | None]
) -> Plan:
    """Return a join with a table whose keys its other side has."""
    condition = catalyst.join_condition(join)
    if condition is None:
        return join
    sides = list(catalyst.children(join))
    kind = catalyst.join_type(join)
    for to, kinds in ((1, _HANDED_TO_RIGHT), (0, _HANDED_TO_LEFT)):
        leaf = leaf_below(sides[to], table_of)
        table = None if leaf is None else table_of(leaf)
        if kind not in kinds or leaf is None or table is None or not table.scan:
            continue
        bound = _bound(Tree.of(condition), leaf, sides[1 - to])
        ways = _ways(table, bound)
        if not ways:
            continue
        keys = [bound[column] for column in _columns(ways)]
        new = _chosen(rules, leaf, table, ways, keys, sides[1 - to])
        if new is not None:
            sides[to] = _with_leaf(sides[to], new)
            return catalyst.with_children(join, sides)
    return join


def leaf_below(plan: Plan, table_of: Callable[[Plan], LookupTable | None]) -> Plan | None:
    """Return the lookup table that a node reads, through projections and filters."""
    while catalyst.class_name(plan).rpartition(".")[2] in _PASSED:
        (plan,) = catalyst.children(plan)
    return plan if table_of(plan) is not None else None


def _with_leaf(plan: Plan, new: Plan) -> Plan:
    if catalyst.class_name(plan).rpartition(".")[2] not in _PASSED:
        return new
    (child,) = catalyst.children(plan)
    return catalyst.with_children(plan, [_with_leaf(child, new)])


def _bound(condition: Tree, leaf: Plan, giving: Plan) -> Mapping[int, CatalystExpression]:
    """Return what a join has for the columns of a table, by their places."""
    own = {number: place for place, number in enumerate(catalyst.output_numbers(leaf))}
    given = frozenset(catalyst.output_numbers(giving))
    bound: dict[int, CatalystExpression] = {}
    for conjunct in condition.terms("And"):
        if conjunct.name != "EqualTo":
            continue
        for column, value in (conjunct.children, conjunct.children[::-1]):
            place = own.get(column.identity[0]) if column.name == "AttributeReference" else None
            numbers = {number for number, _ in value.attributes()}
            if place is not None and numbers and numbers <= given:
                bound.setdefault(place, value.handle)
    return bound


def _chosen(
    rules: AccessRules,
    leaf: Plan,
    table: LookupTable,
    ways: Sequence[PlannedLookup],
    keys: Sequence[CatalystExpression],
    giving: Plan,
) -> Plan | None:
    """Return what stands for a table; None where it is to be scanned at once.

    ``keys`` are what ``giving`` has for the columns that the ways bind.
    """
    (scan,) = catalyst.children(leaf)
    name = "" if table.scan_seconds is not None else _scan_name(table, scan)
    seconds, known = scan_seconds_of(table, scan, rules.learned(name) if name else None)
    money = rules.money(table.scan_price)
    if seconds + money < CHEAP or next(lookup_leaves(giving), None) is not None:
        return None
    if not all(catalyst.is_deterministic(key) for key in keys) or not _may_read(
        giving, seconds, declared=table.scan_seconds is not None
    ):
        return None
    named = _named(rules, table, ways)
    choice = AccessChoice(rules.run, table.name, named, seconds, known, name, money)
    tiny = catalyst.size_in_bytes(giving) <= TINY
    in_one = tiny or len(ways) > 1
    asked = _distinct_keys(keys, giving, in_one=in_one)
    came = _asked(rules, table, ways, choice, asked, alone=tiny)
    by = () if in_one else ways[0].bind
    came = catalyst.shuffled_once(came, by, in_one=in_one)
    if tiny:
        catalyst.open_gates(rules.spark, CHOICE_NAME)
        parts = [_answers(came), _gated_scan(scan, came, catalyst.unless_any)]
    else:
        answers, gate = _answers_and_outcome(came, in_one=in_one)
        parts = [answers, _gated_scan(scan, gate, catalyst.if_any)]
    both = catalyst.union(parts)
    pairs = zip(catalyst.outputs(leaf), catalyst.outputs(both), strict=True)
    return catalyst.projected([catalyst.attribute_like(one, other) for one, other in pairs], both)


def _named(
    rules: AccessRules, table: LookupTable, ways: Sequence[PlannedLookup]
) -> tuple[ChosenWay, ...]:
    return tuple(
        ChosenWay(
            tuple(table.columns[column] for column in way.bind),
            way.name,
            way.keys_per_call,
            rules.money(way.price),
        )
        for way in ways
    )


def _asked(
    rules: AccessRules,
    table: LookupTable,
    ways: Sequence[PlannedLookup],
    choice: AccessChoice,
    keys: Plan,
    *,
    alone: bool,
) -> Plan:
    """Return what has keys asked for: their rows, or one that says that the table is scanned.

    One that is ``alone`` gives no row if it is to be scanned, and else one more.
    """
    places = {column: place for place, column in enumerate(_columns(ways))}
    ask = AskedKeys(
        rules.server(),
        rules.run,
        next(rules.uses),
        tuple(
            AskedWay(way.name, tuple(places[column] for column in way.bind), rules.money(way.price))
            for way in ways
        ),
        choice.scan_seconds,
        table.columns,
        tuple(arrow_type(kind, rules.zone) for kind in table.types),
        choice.scan_money,
        alone,
    )
    columns = [
        StructField(column, spark_type(kind))
        for column, kind in zip(table.columns, table.types, strict=True)
    ]
    result = StructType([*columns, StructField(SCAN_WANTED, BooleanType())])
    command = pickled(ask, result)
    rules.register(command, choice)
    environments = [catalyst.plain_environment(rules.spark.sparkContext)]
    return map_in_arrow(keys, command, result, environments, name=f"{CHOICE_NAME}{table.name})")


def _scan_name(table: LookupTable, scan: Plan) -> str:
    """Return what tells a scan from others: what table it is of, and what kinds of nodes it has."""
    nodes = " ".join(map(catalyst.class_name, _nodes(scan)))
    return digest("\n".join((table.name, *table.columns, *table.types, nodes)).encode()).hex()


def scan_seconds_of(table: LookupTable, scan: Plan, learned: float | None) -> tuple[float, str]:
    """Return how long a scan of a table is expected to take, and how that is known.

    An earlier one has taken as long as was ``learned``, if any has.
    """
    if table.scan_seconds is not None:
        return table.scan_seconds, "as declared"
    if learned is not None:
        return learned, "as the last one did"
    size = _bytes_read(scan)
    if size >= catalyst.LARGEST_ESTIMATE or catalyst.has_python_function(scan):
        return UNKNOWN, "as nothing is known of it"
    return size / BYTES_A_SECOND, "by its size"


def _may_read(giving: Plan, scan_seconds: float, *, declared: bool) -> bool:
    """Whether a side may be read for its keys, and gives the same ones when it is read again."""
    if catalyst.has_python_function(giving) or not catalyst.gives_same_rows(giving):
        return False
    if any(map(_is_rdd, _leaves(giving))) and not declared:
        return False  # nobody knows what it takes to make its rows again
    return _bytes_read(giving) / BYTES_A_SECOND <= READ_TWICE * scan_seconds


def _bytes_read(plan: Plan) -> int:
    """Return how much a plan reads; rows of an RDD, which Spark has, count for nothing."""
    return sum(catalyst.size_in_bytes(leaf) for leaf in _leaves(plan) if not _is_rdd(leaf))


def _is_rdd(leaf: Plan) -> bool:
    return catalyst.class_name(leaf).endswith("RDD")


def _nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in catalyst.children(plan):
        yield from _nodes(child)


def _leaves(plan: Plan) -> list[Plan]:
    children = catalyst.children(plan)
    return [leaf for child in children for leaf in _leaves(child)] if children else [plan]


def _distinct_keys(keys: Sequence[CatalystExpression], giving: Plan, *, in_one: bool) -> Plan:
    """Return the keys that a side has, in one partition or many; a row with NULL matches nothing.

    A small side is read by one task. Of others the distinct rows meet in one.
    """
    items = [catalyst.named(key, f"k{n}") for n, key in enumerate(keys)]
    rows = catalyst.projected(items, giving)
    given = [catalyst.is_not_null(column) for column in catalyst.outputs(rows)]
    rows = catalyst.filtered(catalyst.conjunction(given), rows)
    if not in_one:
        return catalyst.distinct(rows)
    if catalyst.size_in_bytes(giving) <= TINY:
        return catalyst.distinct(catalyst.in_one_partition(rows))
    return catalyst.in_one_partition(catalyst.distinct(rows))


def _answers(came: Plan) -> Plan:
    """Return the rows of keys."""
    *columns, mark = catalyst.outputs(came)
    return catalyst.projected(columns, catalyst.apart(catalyst.is_null(mark), came))


def _answers_and_outcome(came: Plan, *, in_one: bool) -> tuple[Plan, Plan]:
    """Return the rows of keys, or none if the table is scanned; and a row if it is, or none.

    One task gives either rows or that row. Of many one may want the scan, and others have rows.
    """
    mark = catalyst.outputs(came)[-1]
    says = catalyst.apart(catalyst.is_not_null(mark), came)
    scanned = catalyst.projected([catalyst.named(mark, SCAN_WANTED)], says)
    rows = _answers(came)
    return rows if in_one else catalyst.unless_any(rows, scanned), scanned


def _gated_scan(scan: Plan, gate: Plan, gated: Callable[[Plan, Plan], Plan]) -> Plan:
    """Return a scan that nothing of is read unless a gate is open, as ``gated`` has it.

    A stage of it that ends in a shuffle would begin beside the gate, so its leaves wait as well.
    """
    plan = scan
    while catalyst.class_name(plan).rpartition(".")[2] in _ONE_STAGE:
        (plan,) = catalyst.children(plan)
    return gated(_over_leaves(scan, gate, gated) if catalyst.children(plan) else scan, gate)


def _over_leaves(plan: Plan, gate: Plan, gated: Callable[[Plan, Plan], Plan]) -> Plan:
    children = catalyst.children(plan)
    if not children:
        return gated(plan, gate)
    return catalyst.with_children(plan, [_over_leaves(child, gate, gated) for child in children])
