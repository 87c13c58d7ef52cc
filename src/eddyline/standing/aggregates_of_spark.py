"""From an aggregate function of Spark to one that standing queries compute, and its arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.planner.read.chains import Tree
from eddyline.standing.engine.aggregation.aggregate_functions import (
    CHOOSING,
    MOMENTS,
    PAIRS,
    AggregateFunction,
)
from eddyline.standing.sql_tokens import sql_tokens

_FUNCTIONS: Final = {
    "Count": AggregateFunction.COUNT,
    "Sum": AggregateFunction.SUM,
    "Average": AggregateFunction.AVG,
    "Min": AggregateFunction.MIN,
    "Max": AggregateFunction.MAX,
    "CollectSet": AggregateFunction.COLLECT_SET,
    "CollectList": AggregateFunction.COLLECT_LIST,
    "HyperLogLogPlusPlus": AggregateFunction.COUNT,
    "StddevSamp": AggregateFunction.STDDEV_SAMP,
    "StddevPop": AggregateFunction.STDDEV_POP,
    "VarianceSamp": AggregateFunction.VAR_SAMP,
    "VariancePop": AggregateFunction.VAR_POP,
    "Skewness": AggregateFunction.SKEWNESS,
    "Kurtosis": AggregateFunction.KURTOSIS,
    "Corr": AggregateFunction.CORR,
    "CovSample": AggregateFunction.COVAR_SAMP,
    "CovPopulation": AggregateFunction.COVAR_POP,
    "MaxBy": AggregateFunction.MAX_BY,
    "MinBy": AggregateFunction.MIN_BY,
    "BitAndAgg": AggregateFunction.BIT_AND,
    "BitOrAgg": AggregateFunction.BIT_OR,
    "BitXorAgg": AggregateFunction.BIT_XOR,
    "Mode": AggregateFunction.MODE,
    "Percentile": AggregateFunction.PERCENTILE,
    "ApproximatePercentile": AggregateFunction.PERCENTILE_APPROX,
}

_ALWAYS_DISTINCT: Final = {"HyperLogLogPlusPlus"}
"""Approximate counts, which are exact here: the values are kept in any case."""

_DISTINCT: Final = {AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.AVG}
"""Functions that may be of distinct values."""

_ONCE_AS_WELL: Final = CHOOSING | {
    AggregateFunction.MIN,
    AggregateFunction.MAX,
    AggregateFunction.COLLECT_SET,
    AggregateFunction.BIT_AND,
    AggregateFunction.BIT_OR,
}
"""Functions to which it makes no difference how often a value is there."""

KNOWN: Final = (
    "aggregates are COUNT, SUM and AVG, also DISTINCT, MIN, MAX, count_if, bool_and, bool_or, "
    "any_value, min_by, max_by, mode, median, percentile, percentile_approx, "
    "approx_count_distinct, collect_set, collect_list, bit_and, bit_or, bit_xor, corr, "
    "covariances, variances, standard deviations, skewness and kurtosis"
)

_MARK: Final = "KnownNullable"
"""What arguments of aggregates of distinct values are in."""

_ORDER: Final = (
    "which row is the first or the last is not defined in Spark: write min_by(x, time) for the "
    "earliest, max_by(x, time) for the latest, or any_value(x) for whichever"
)

_REMEDIES: Final = {
    "First": _ORDER,
    "Last": _ORDER,
    "ListAgg": "write array_join(array_sort(collect_set(x)), ',') for the distinct texts in their "
    "order, or array_join(collect_list(x), ',') for all in any order",
    "PercentileDisc": "write percentile_approx(x, 0.5) or percentile_cont",
    "MaxMinByK": "write slice(array_sort(collect_list(struct(y, x))), -k, k), whose last items "
    "have the greatest y",
    "ApproxTopK": "write mode(x) for the most frequent value, or group by x as well",
    "HistogramNumeric": "write percentile(x, array(0.1, 0.5, 0.9))",
    "RegrSlope": "write covar_pop(y, x) / var_pop(x)",
}
"""What to write in the place of functions that are not known, by Spark's names of them."""


@dataclass(frozen=True)
class KnownAggregate:
    """An aggregate function, and the expressions that it is of.

    ``together`` says whether a row in which one of several is NULL counts as NULL, as for pairs;
    ``options`` and ``listed`` are those of an
    :class:`~eddyline.standing.engine.aggregation.aggregate_functions.Aggregate`.
    """

    function: AggregateFunction
    arguments: tuple[Tree, ...]
    distinct: bool = False
    options: tuple[float, ...] = ()
    listed: bool = False
    together: bool = True


def known_aggregate(tree: Tree, sql: str) -> KnownAggregate:
    """Return what an ``AggregateExpression`` asks for; DeclinedError where it is not known.

    ``sql`` is the query that it is in.
    """
    function = tree.children[0]
    name, arguments = function.name, function.children
    asked = bool(tree.node.fields.get("isDistinct")) or _are_marked(arguments)
    if _are_marked(arguments):
        arguments = tuple(
            argument.children[0] if argument.name == _MARK else argument for argument in arguments
        )
    if name == "First" and _any_value_alone(sql):
        # Any of them is right: the least is the same one whenever it is computed again.
        return KnownAggregate(AggregateFunction.MIN, arguments)
    known = _FUNCTIONS.get(name)
    if known is AggregateFunction.COLLECT_LIST and asked:
        known = AggregateFunction.COLLECT_SET
    if known is None:
        raise _unknown(tree, _REMEDIES.get(name, KNOWN))
    _check(tree, known, distinct=asked)
    distinct = (asked and known in _DISTINCT) or name in _ALWAYS_DISTINCT
    if known is AggregateFunction.PERCENTILE:
        value, shares, frequency = arguments
        if str(frequency.node.fields.get("value")) != "1":
            raise _unknown(tree, "leave out the frequency, each row counts once")
        falling = float(bool(function.node.fields.get("reverse")))
        return _percentile(tree, known, value, shares, falling)
    if known is AggregateFunction.PERCENTILE_APPROX:
        value, shares, accuracy = arguments
        return _percentile(tree, known, value, shares, _constant(tree, accuracy)[0])
    together = known is AggregateFunction.COUNT or known in PAIRS
    return KnownAggregate(known, arguments, distinct, together=together)


def _check(tree: Tree, known: AggregateFunction, *, distinct: bool) -> None:
    """Raise DeclinedError where a known function is asked to work otherwise than it does."""
    fields = tree.children[0].node.fields
    if fields.get("ignoreNulls", True) is False:
        raise _unknown(tree, "NULLs are left out of it: write coalesce(x, …)")
    if known in MOMENTS and fields.get("nullOnDivideByZero") is False:
        raise _unknown(tree, "set spark.sql.legacy.statisticalAggregate to false")
    if distinct and known not in _DISTINCT | _ONCE_AS_WELL:
        raise _unknown(
            tree, "of distinct values there are COUNT, SUM, AVG, collect_set; leave out DISTINCT"
        )
    if known is AggregateFunction.MODE and fields.get("reverseOpt") is False:
        raise _unknown(tree, "of several values the least is the mode: write mode(x)")


def _percentile(
    tree: Tree, function: AggregateFunction, value: Tree, shares: Tree, first: float
) -> KnownAggregate:
    listed = isinstance(shares.node.fields.get("dataType"), dict)
    options = (first, *_constant(tree, shares))
    return KnownAggregate(function, (value,), options=options, listed=listed)


def _constant(tree: Tree, literal: Tree) -> tuple[float, ...]:
    """Return the numbers of a constant, which may be an array of them."""
    value = literal.node.fields.get("value")
    if literal.name != "Literal" or value is None:
        raise _unknown(tree, "its shares and its accuracy have to be constants")
    read = json.loads(str(value))
    return tuple(map(float, read)) if isinstance(read, list) else (float(read),)


def _are_marked(arguments: Sequence[Tree]) -> bool:
    """Tell whether an aggregate is of distinct values, as its arguments say; constants do not."""
    return any(argument.name == _MARK for argument in arguments)


def _any_value_alone(sql: str) -> bool:
    """Tell whether a query says ``any_value``, of which Spark makes ``first``, and not that."""
    names = {token.name.lower() for token in sql_tokens(sql) if token.name is not None}
    return "any_value" in names and not names & {"first", "first_value"}


def _unknown(tree: Tree, remedy: str) -> DeclinedError:
    return not_understood(f"{catalyst.pretty(tree.handle)}: {remedy}")
