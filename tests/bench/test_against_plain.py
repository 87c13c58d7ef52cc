"""What is said of targets: over the right opponent, of the right group, met or missed."""

from __future__ import annotations

from typing import cast

from pyspark.sql import DataFrame

from bench.against_plain import AUTO, BY_HAND, PLAIN, Query, Report, Result, Target
from bench.turns import Turns


def nothing() -> DataFrame:
    return cast("DataFrame", None)


def result(name: str, group: str, *, plain: float, auto: float, by_hand: float = 0.0) -> Result:
    opponents = {BY_HAND: nothing} if by_hand else {}
    seconds = {PLAIN: [plain], AUTO: [auto], **({BY_HAND: [by_hand]} if by_hand else {})}
    query = Query(name, nothing, group=group, opponents=opponents)
    return Result(query, Turns(seconds, [1]), {AUTO: True})


RESULTS = [
    result("one", "costly", plain=8.0, auto=2.0, by_hand=2.0),
    result("two", "costly", plain=4.0, auto=4.0, by_hand=1.0),
    result("three", "cheap", plain=1.0, auto=1.0),
]


def test_a_target_looks_at_its_group_and_its_opponent() -> None:
    lines = [
        "costly over plain: geometric mean 0.50, target 0.5",
        "costly over plain: greatest 1.00, target 0.9, missed (two)",
    ]
    assert Target(PLAIN, "costly", geometric_mean=0.5, greatest=0.9).verdict(RESULTS) == lines
    assert Target(BY_HAND, "cheap", greatest=1.0).verdict(RESULTS) == []


def test_means_are_over_the_queries_that_met_the_opponent() -> None:
    report = Report({}, RESULTS, [AUTO])
    assert report.opponents == [PLAIN, BY_HAND]
    assert report.groups(PLAIN) == ["costly", "cheap"]
    assert report.groups(BY_HAND) == []
    assert report.geometric_means(BY_HAND) == {AUTO: 2.0}
    assert report.table("T", BY_HAND).row_count == 3
