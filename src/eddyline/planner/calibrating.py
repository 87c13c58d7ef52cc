"""Sets the thresholds of a cascade in a query: draws rows, has them scored and labelled."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BinaryType, BooleanType, DoubleType, StructField, StructType
from pyspark.sql.udf import UserDefinedFunction

from eddyline import catalyst
from eddyline.blocks.filter_block import FunctionKind
from eddyline.cascades.calibration import Calibration, Label, calibrate
from eddyline.cascades.thresholds import Thresholds
from eddyline.catalyst import Plan
from eddyline.planner.declare.declared_cascades import CASCADES, Cascade
from eddyline.planner.read.chains import (
    ExpressionId,
    FilterLink,
    Link,
    ProjectLink,
    Tree,
    read_link,
)
from eddyline.planner.rewrite.decided_cascades import (
    CascadeCalls,
    argument_values,
    with_cascades_decided,
)
from eddyline.tasks.not_adapted import CascadeMark
from eddyline.tasks.verdicts import ProxyVerdict, Scored

_KEY: Final = "eddyline_drawn"
"""The column of random numbers by which rows are drawn."""

_DESCRIPTION: Final = "spark.job.description"

_SCORED: Final = StructType([StructField("score", DoubleType()), StructField("key", BinaryType())])

_FEW: Final = 0.25
"""Of the rows that are drawn, a share that other predicates may leave before more are drawn."""

_MORE: Final = 5
"""How many times as many rows are drawn then; these predicates are called for all of them."""

_NOT_ALL: Final = 0.9
"""A random number: where the greatest one drawn is below that, there are more rows to draw."""

_EXPLAINED: Final = "nothing is asked before eddyline.adapt(df) is called"


@dataclass
class CascadesInQuery:
    """Decides the cascades of one query, each once, and knows what was found out about them.

    ``adapted`` is what makes DataFrames run in eddies; without it nothing may run, and oracles are
    asked for every row.
    """

    spark: SparkSession
    adapted: Callable[[DataFrame], DataFrame] | None
    _places: list[_Place] = field(default_factory=list)
    _known: dict[object, _Place] = field(default_factory=dict)

    @property
    def calibrations(self) -> tuple[Calibration, ...]:
        """What was found out, by places in the plan."""
        return tuple(place.calibration for place in self._places)

    def decided(self, plan: Plan) -> Plan:
        """Return a plan with what decides cascades in their places; raise what oracles raise.

        A call has the same thresholds wherever it stands in a plan: Spark puts a filter over a key
        of a join on both sides, and a row is lost that either drops.
        """
        self._places = []
        rewritten = with_cascades_decided(plan, self._calls)
        common: dict[ExpressionId, _Place] = {}
        for place in self._places:
            known = common.get(place.call)
            common[place.call] = place if known is None else known.joined(place)
        if len(common) == len(self._places):
            return rewritten
        self._places = [place.sharing(common[place.call]) for place in self._places]
        again = iter(self._places)
        return with_cascades_decided(plan, lambda *_: next(again).calls)

    def _calls(self, mark: CascadeMark, function: Tree, below: Plan) -> CascadeCalls:
        # Other forms of a plan call it over the same rows, and a plan may call it over others.
        given = tuple(catalyst.pretty(child.handle) for child in function.children)
        where = function.result, given, catalyst.tree_text(below)
        place = self._known.get(where)
        if place is None:
            cascade = CASCADES.of(mark.number, mark.name)
            calibration = Calibration(cascade.name, cascade.targets, why=_EXPLAINED)
            labelled: Mapping[bytes, bool] = {}
            if self.adapted is not None:
                calibration, labelled = _calibrated(
                    self.spark, cascade, function, below, self.adapted
                )
            place = _Place(function.result, cascade, calibration, labelled)
            self._known[where] = place
        self._places.append(place)
        return place.calls


@dataclass(frozen=True)
class _Place:
    """A ``call`` of a cascade in a plan, with what was found out there."""

    call: ExpressionId
    cascade: Cascade
    calibration: Calibration
    labelled: Mapping[bytes, bool]

    @property
    def calls(self) -> CascadeCalls:
        """The functions that decide it."""
        return _deciding(self.cascade, self.calibration.thresholds, self.labelled)

    def joined(self, other: _Place) -> _Place:
        """Return what decides as little as both, and knows the labels of both."""
        thresholds = self.calibration.thresholds.less_of(other.calibration.thresholds)
        spared = min(self.calibration.spared, other.calibration.spared)
        found = replace(self.calibration, thresholds=thresholds, spared=spared)
        return replace(self, calibration=found, labelled={**self.labelled, **other.labelled})

    def sharing(self, common: _Place) -> _Place:
        """Return this place with the thresholds and labels that all places share."""
        thresholds, spared = common.calibration.thresholds, common.calibration.spared
        found = replace(self.calibration, thresholds=thresholds, spared=spared)
        return replace(self, calibration=found, labelled=common.labelled)


def _deciding(
    cascade: Cascade, thresholds: Thresholds, labelled: Mapping[bytes, bool]
) -> CascadeCalls:
    by_column = cascade.called is None and thresholds.decides
    # Where its scores would decide nothing, they are not computed.
    called = None if by_column else cascade.called or _no_score
    return CascadeCalls(
        UserDefinedFunction(
            ProxyVerdict(cascade.name, called, thresholds, labelled),
            BooleanType(),
            name=f"{cascade.name}_proxy",
            evalType=_kind(cascade),
        ),
        cascade.oracle,
        cascade.proxy if by_column else None,
    )


def _kind(cascade: Cascade) -> int:
    """Return the evaluation type of what calls a proxy, or takes its scores."""
    return FunctionKind.PICKLED if cascade.called is None else int(cascade.proxy.evalType)


def _no_score(*_: object, **__: object) -> None:
    """Score nothing."""


def _calibrated(
    spark: SparkSession,
    cascade: Cascade,
    function: Tree,
    below: Plan,
    adapted: Callable[[DataFrame], DataFrame],
) -> tuple[Calibration, dict[bytes, bool]]:
    """Draw rows from a plan, have some labelled, and set the thresholds.

    Return these, and what the oracle has said, by the keys of arguments.
    """
    seed = secrets.randbits(31) if cascade.seed is None else cascade.seed
    labelled: dict[bytes, bool] = {}
    with (
        _described(spark, f"eddyline sets the thresholds of {cascade.name}"),
        _drawn(spark, function, below, cascade.labels, seed, adapted) as drawn,
    ):
        keys = drawn.keys

        def label(start: int, stop: int) -> list[Label]:
            part = drawn.rows.where(F.col(_KEY).between(keys[start], keys[stop - 1]))
            names = [name for name, _ in argument_values(function)]
            given = [F.col(f"argument{n}") for n in range(len(names))]
            asked = part.select(*_columns(cascade, given, names))
            labels: list[Label] = []
            for row in adapted(asked).collect():
                labels.append((row.scored.score, row.label is True))
                if row.scored.key is not None:
                    labelled[bytes(row.scored.key)] = row.label is True
            return labels

        found = calibrate(
            cascade.name, cascade.targets, drawn.total, len(keys), cascade.labels, label
        )
    return found, labelled


@contextmanager
def _described(spark: SparkSession, text: str) -> Iterator[None]:
    """Show a text for the jobs of this thread, and then again what was shown for them before."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None takes it back


def _columns(
    cascade: Cascade, given: list[Column], names: list[str | None]
) -> tuple[Column, Column]:
    """Return the label of a row, and its score with the key of its arguments."""
    plain = [column for column, name in zip(given, names, strict=True) if name is None]
    named = {name: column for column, name in zip(given, names, strict=True) if name is not None}
    scored = Scored(cascade.name, cascade.called)
    name, kind = f"{cascade.name}_proxy", _kind(cascade)
    udf = UserDefinedFunction(scored, _SCORED, name=name, evalType=kind)
    if cascade.called is None:
        scores = udf(cascade.proxy(*plain, **named), *given)
    else:
        scores = udf(*plain, **named)
    return cascade.oracle(*plain, **named).alias("label"), scores.alias("scored")


@dataclass(frozen=True)
class _Drawn:
    """Rows that were drawn, with their keys, sorted; of about ``total`` rows that could be."""

    rows: DataFrame
    keys: list[float]
    total: int


@contextmanager
def _drawn(
    spark: SparkSession,
    function: Tree,
    below: Plan,
    most: int,
    seed: int,
    adapted: Callable[[DataFrame], DataFrame],
) -> Iterator[_Drawn]:
    """Draw rows uniformly from a plan, as the arguments that a function has in them.

    They are drawn below the functions right below, and the filters over these, so that such
    functions are called for the drawn rows alone. The keys are random numbers.
    """
    between: list[Link] = []
    base = below
    while True:
        link, deterministic = read_link(base)
        if link is None or not deterministic or not catalyst.has_python_function(base):
            break
        between.append(link)
        (base,) = catalyst.children(base)
    filtered = any(isinstance(link, FilterLink) for link in between)
    values = [argument.handle for _, argument in argument_values(function)]

    def draw(number: int) -> tuple[DataFrame, list[float]]:
        everything = catalyst.dataframe_over(spark, base)
        chosen = everything.select("*", F.rand(seed).alias(_KEY)).orderBy(_KEY).limit(number)
        plan = catalyst.analyzed_plan(chosen)
        key = catalyst.outputs(plan)[-1]
        for link in reversed(between):
            if isinstance(link, ProjectLink):
                plan = catalyst.project_over(link.plan, plan, [key])
            elif isinstance(link, FilterLink):
                plan = catalyst.filtered(catalyst.condition(link.plan), plan)
            else:
                plan = catalyst.evaluation_of(link.plan, link.indexes, plan)
        items = [catalyst.named(value, f"argument{n}") for n, value in enumerate(values)]
        arguments = catalyst.projected([*items, key], plan)
        rows = adapted(catalyst.dataframe_over(spark, arguments)).cache()
        try:
            return rows, sorted(row[0] for row in rows.select(_KEY).collect())
        except BaseException:
            rows.unpersist()
            raise

    rows, keys = draw(most)
    if filtered and 0 < len(keys) < most * _FEW and keys[-1] < _NOT_ALL:
        rows.unpersist()
        rows, keys = draw(most * _MORE)
    try:
        # All of them, or as many as have the n-th smallest of their random numbers there: within
        # 1 % for n = 10,000. A filter in between leaves random numbers as they are.
        total = len(keys)
        if total > 1 and (total == most or filtered):
            total = max(total, round((total - 1) / keys[-1]))
        yield _Drawn(rows, keys, total)
    finally:
        rows.unpersist()
