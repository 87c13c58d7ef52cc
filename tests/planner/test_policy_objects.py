"""Policies given as objects: the rows are those of plain Spark, and failures are told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline import policies
from eddyline.errors import UnknownPolicyError
from eddyline.reports.kept_report import kept_json, kept_report
from eddyline.reports.routing_report import RoutingReport

ROWS = 600

even = udf(lambda n: n % 2 == 0, BooleanType())
third = udf(lambda n: n % 3 == 0, BooleanType())
big = udf(lambda n: n > 90, BooleanType())


def mine(wrong: Callable[[int], object] | None = None) -> eddyline.Policy:
    """Return a policy of a class that no worker can import: the written order backwards.

    From its second decision on it says what ``wrong`` does.
    """

    class Backwards(eddyline.Policy):
        name = "mine"
        decisions = 0

        def start(self, routes: Any, *_: Any, **__: Any) -> None:  # noqa: ANN401
            self.routes = routes

        def route(self, _: Any, candidates: tuple[int, ...], *rest: Any) -> Any:  # noqa: ANN401
            self.decisions += 1
            if wrong is not None and self.decisions > 1:
                return wrong(rest[1])
            return candidates[-1], rest[1]

        def order(self, signature: Any) -> Any:  # noqa: ANN401
            return self.routes.remaining(signature)[::-1]

    return Backwards()


def query(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2).filter(even("id") & (third("id") | big("id")))


def joined(spark: SparkSession) -> DataFrame:
    left = spark.range(ROWS).selectExpr("id", "id % 7 AS k").filter(even("id"))
    right = spark.range(20).selectExpr("id AS other", "id % 7 AS k").filter(third("other"))
    return left.join(broadcast(right), "k")


def same_rows(plain: DataFrame, policy: Any) -> RoutingReport:  # noqa: ANN401
    adapted = eddyline.adapt(plain, policy=policy, joins="always", remember=False)
    assert sorted(adapted.collect()) == sorted(plain.collect())
    return eddyline.report(adapted)


def test_an_object_routes_and_gives_its_name_to_the_report(spark: SparkSession) -> None:
    report = same_rows(query(spark), mine())
    (block,) = report.blocks
    assert block.policy == "mine"
    assert block.record is not None
    assert block.record.policy_failures == 0
    assert (1, 0) in dict(block.record.order_rows), "backwards"
    assert "policy mine, seed 0" in str(report)
    assert "failed" not in str(report)


@pytest.mark.parametrize(
    "policy",
    [
        policies.Lottery(window=5),
        policies.Rank(every=10),
        policies.Adaptive(exploration=0.2),
        policies.Static(order=(1, 0)),
    ],
    ids=lambda policy: policy.name,
)
def test_ours_with_parameters(spark: SparkSession, policy: eddyline.Policy) -> None:
    (block,) = same_rows(query(spark), policy).blocks
    assert block.policy == policy.name


def test_objects_route_joins(spark: SparkSession) -> None:
    for policy in (mine(), policies.Lottery(window=5)):
        (block,) = same_rows(joined(spark), policy).blocks
        assert block.policy == policy.name
        assert block.record is not None
        assert block.record.policy_failures == 0


def test_one_that_fails_leaves_its_tasks_to_the_written_order(spark: SparkSession) -> None:
    def illegal(_: int) -> object:
        return 99, 1

    report = same_rows(query(spark), mine(illegal))
    (block,) = report.blocks
    record = block.record
    assert record is not None
    assert record.policy_failures == 2
    assert record.policy_error.startswith("ValueError: module 99 is none of the candidates")
    shown = "Policy mine failed in 2 of 2 tasks, where the written order went on: ValueError: mod"
    assert shown in " ".join(str(report).split())
    run = report.to_dict()["blocks"][0]["run"]
    assert (run["policy_failures"], run["policy_error"]) == (2, record.policy_error)
    kept = kept_json(report)
    assert kept is not None
    again = kept_report(json.loads(kept)).blocks[0].record
    assert again is not None
    assert (again.policy_failures, again.policy_error) == (2, record.policy_error)
    assert shown[:40] in report._repr_html_()


def test_one_that_raises_fails_in_joins_as_well(spark: SparkSession) -> None:
    (block,) = same_rows(joined(spark), mine(lambda n: n // 0)).blocks
    assert block.record is not None
    assert block.record.policy_failures >= 1
    assert block.record.policy_error.startswith("ZeroDivisionError: ")
    assert "(in route, line " in block.record.policy_error


def test_a_session_takes_an_object(spark: SparkSession) -> None:
    plain = sorted(query(spark).collect())
    with eddyline.enable(spark, policy=mine()):
        df = query(spark)
        assert sorted(df.collect()) == plain
        assert "policy mine" in str(eddyline.report(df))


def test_a_watch_takes_an_object(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    plain = joined(spark)
    for wrong in (None, lambda n: n // 0):
        rows = [
            tuple(row.values())
            for part in eddyline.watch(plain, policy=mine(wrong))
            for row in part.rows.to_pylist()
        ]
        assert sorted(rows) == sorted(map(tuple, plain.collect()))
        assert ("Policy mine has failed in route" in caplog.text) is (wrong is not None)


class NoRoute:
    name = "no route"

    def start(self, *_: object, **__: object) -> None: ...

    def sent(self, *_: object) -> None: ...

    def returned(self, *_: object) -> None: ...

    order = 3


def nameless() -> object:
    policy = policies.Naive()
    policy.name = 7  # type: ignore[assignment]
    return policy


def unpicklable() -> object:
    policy = policies.Naive()
    policy.lock = threading.Lock()  # type: ignore[attr-defined]
    return policy


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (policies.Lottery, r"policy is the class LotteryPolicy, not an object of it"),
        (NoRoute(), r"policy is a NoRoute, which lacks route, order: eddyline.Policy says"),
        (nameless(), r"a NaivePolicy, which lacks a name \(a string\)"),
        (None, r"a name or an object of eddyline.Policy, not None"),
        (unpicklable(), r"policy naive cannot be sent to the tasks, since it cannot be pickled"),
    ],
)
def test_what_is_no_policy_is_refused_at_once(
    spark: SparkSession,
    policy: Any,  # noqa: ANN401 - that is what is wrong
    told: str,
) -> None:
    df = query(spark)
    for verb in (eddyline.adapt, eddyline.watch):
        with pytest.raises(TypeError, match=told):
            verb(df, policy=policy)
    with pytest.raises(TypeError, match=told):
        eddyline.enable(spark, policy=policy)


def test_names_are_checked_as_before(spark: SparkSession) -> None:
    with pytest.raises(UnknownPolicyError, match="there is no routing policy 'mine'"):
        eddyline.adapt(query(spark), policy="mine")
