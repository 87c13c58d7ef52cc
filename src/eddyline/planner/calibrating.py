"""Sets the thresholds of a cascade in a query: draws rows, has them scored and labelled."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BinaryType, BooleanType, DoubleType, StructField, StructType
from pyspark.sql.udf import UserDefinedFunction

from eddyline import catalyst
from eddyline.cascades.calibration import Calibration, Label, calibrate
from eddyline.cascades.thresholds import ASK_ALL, Thresholds
from eddyline.catalyst import Plan
from eddyline.planner.declare.declared_cascades import CASCADES, Cascade
from eddyline.planner.read.chains import FilterLink, Link, ProjectLink, Tree, read_link
from eddyline.planner.rewrite.decided_cascades import CascadeCalls, Decide, argument_values
from eddyline.tasks.not_adapted import CascadeMark
from eddyline.tasks.verdicts import ProxyVerdict, Scored

_KEY: Final = "eddyline_drawn"
"""The column of random numbers by which rows are drawn."""

_SCORED: Final = StructType([StructField("score", DoubleType()), StructField("key", BinaryType())])

_EXPLAINED: Final = "nothing is asked before eddyline.adapt(df) is called"


@dataclass
class CascadesInQuery:
    """Decides the cascades of one query, each once, and knows what was found out about them.

    ``adapted`` is what makes DataFrames run in eddies; without it nothing may run, and oracles are
    asked for every row.
    """

    spark: SparkSession
    adapted: Callable[[DataFrame], DataFrame] | None
    calibrations: list[Calibration] = field(default_factory=list)
    _known: dict[object, CascadeCalls] = field(default_factory=dict)

    @property
    def decide(self) -> Decide:
        """What decides a cascade."""
        return self._calls

    def _calls(self, mark: CascadeMark, function: Tree, below: Plan) -> CascadeCalls:
        """Return the functions that decide a cascade; raise what its oracle raises."""
        known = self._known.get(function.result)  # another form of the same plan
        if known is not None:
            return known
        cascade = CASCADES.of(mark.number, mark.name)
        labelled: Mapping[bytes, bool] = {}
        if self.adapted is None:
            calibration = Calibration(cascade.name, cascade.targets, why=_EXPLAINED)
        else:
            calibration, labelled = _calibrated(self.spark, cascade, function, below, self.adapted)
        self.calibrations.append(calibration)
        calls = _deciding(cascade, calibration.thresholds, labelled)
        self._known[function.result] = calls
        return calls


def _deciding(
    cascade: Cascade, thresholds: Thresholds, labelled: Mapping[bytes, bool]
) -> CascadeCalls:
    verdict = ProxyVerdict(cascade.name, cascade.called, thresholds, labelled)
    by_column = cascade.called is None and thresholds.decides
    if cascade.called is None and not by_column:  # its scores would decide nothing
        verdict = ProxyVerdict(cascade.name, _no_score, ASK_ALL, labelled)
    kind = cascade.proxy.evalType if cascade.called is not None else _BY_ROWS
    name = f"{cascade.name}_proxy"
    return CascadeCalls(
        UserDefinedFunction(verdict, BooleanType(), name=name, evalType=kind),
        cascade.oracle,
        cascade.proxy if by_column else None,
    )


_BY_ROWS: Final = 100


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
    with _drawn(spark, function, below, cascade.labels, seed, adapted) as drawn:
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


def _columns(
    cascade: Cascade, given: list[Column], names: list[str | None]
) -> tuple[Column, Column]:
    """Return the label of a row, and its score with the key of its arguments."""
    plain = [column for column, name in zip(given, names, strict=True) if name is None]
    named = {name: column for column, name in zip(given, names, strict=True) if name is not None}
    scored: Any = Scored(cascade.name, cascade.called)
    if cascade.called is not None:
        kind = cascade.proxy.evalType
        udf = UserDefinedFunction(scored, _SCORED, name=f"{cascade.name}_proxy", evalType=kind)
        scores = udf(*plain, **named)
    else:
        udf = UserDefinedFunction(scored, _SCORED, name=f"{cascade.name}_proxy")
        scores = udf(cascade.proxy(*plain, **named), *given)
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
    everything = catalyst.dataframe_over(spark, base)
    drawn = everything.select("*", F.rand(seed).alias(_KEY)).orderBy(_KEY).limit(most)
    plan = catalyst.analyzed_plan(drawn)
    key = catalyst.outputs(plan)[-1]
    for link in reversed(between):
        if isinstance(link, ProjectLink):
            plan = catalyst.project_over(link.plan, plan, [key])
        elif isinstance(link, FilterLink):
            plan = catalyst.filtered(catalyst.condition(link.plan), plan)
        else:
            plan = catalyst.evaluation_of(link.plan, link.indexes, plan)
    values = [argument.handle for _, argument in argument_values(function)]
    items = [catalyst.named(value, f"argument{n}") for n, value in enumerate(values)]
    rows = adapted(catalyst.dataframe_over(spark, catalyst.projected([*items, key], plan))).cache()
    try:
        keys = sorted(row[0] for row in rows.select(_KEY).collect())
        # All of them, or as many as have the n-th smallest of their random numbers there: within
        # 1 % for n = 10,000. A filter in between leaves random numbers as they are.
        total = len(keys)
        if total > 1 and (total == most or any(isinstance(one, FilterLink) for one in between)):
            total = max(total, round((total - 1) / keys[-1]))
        yield _Drawn(rows, keys, total)
    finally:
        rows.unpersist()
