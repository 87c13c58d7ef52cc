"""When labelling ends, and what is said of it."""

from __future__ import annotations

import math

import pytest

from eddyline.cascades.calibration import Calibration, calibrate
from eddyline.cascades.label_plan import MOST_SHARE, label_plan
from eddyline.cascades.targets import Targets, checked_targets
from eddyline.cascades.thresholds import Thresholds

RECALL = Targets(0.95, None, 0.05)
BOTH = Targets(0.9, 0.9, 0.05)


def test_looks_double_up_to_a_share_of_the_rows() -> None:
    plan = label_plan(8_000, 10_000, RECALL)
    assert plan.looks == (400, 800, 1_600, 3_200)
    assert plan.looks[-1] == MOST_SHARE * 8_000


def test_no_more_labels_than_allowed() -> None:
    assert label_plan(1_000_000, 500, RECALL).looks[-1] == 500
    assert label_plan(1_000_000, 58, RECALL).looks == ()


def test_labelling_ends_with_enough_accepted_rows() -> None:
    plan = label_plan(100_000, 10_000, RECALL)
    assert plan.is_over(1_250, 4 * 59)
    assert not plan.is_over(1_250, 90)
    assert plan.is_over(10_000, 1)


def test_labelling_ends_where_too_few_are_accepted() -> None:
    plan = label_plan(100_000, 10_000, RECALL)
    assert plan.is_over(1_250, 1)
    assert not plan.is_over(1_250, 5)


def test_labels_are_asked_for_once_and_in_order() -> None:
    asked: list[tuple[int, int]] = []

    def label(start: int, stop: int) -> list[tuple[float | None, bool]]:
        asked.append((start, stop))
        return [(row % 7, row % 7 == 0) for row in range(start, stop)]

    found = calibrate("f", BOTH, 20_000, 10_000, 10_000, label)
    assert [start for start, _ in asked] == [0, *(stop for _, stop in asked[:-1])]
    assert found.labels == asked[-1][1]
    assert found.thresholds == Thresholds(6.0, 6.0) or found.thresholds.decides


def test_what_labels_raise_is_raised() -> None:
    def label(_start: int, _stop: int) -> list[tuple[float | None, bool]]:
        raise ConnectionError("no answer")

    with pytest.raises(ConnectionError, match="no answer"):
        calibrate("f", RECALL, 20_000, 10_000, 10_000, label)


def test_texts_say_what_was_found() -> None:
    found = Calibration("is_spam", BOTH, Thresholds(0.25, 0.75), 9_000, 900, 100, 0.6)
    assert str(found) == (
        "Cascade is_spam: recall 0.9 and precision 0.9 with probability 0.95\n"
        "  asked for 900 labels of about 9,000 rows drawn at random; 100 were accepted\n"
        "  scores above 0.75 accepted, scores below 0.25 dropped by the proxy (60% of the rows "
        "drawn); the oracle is asked for the rest"
    )
    assert "every score accepted" in str(Calibration("f", BOTH, Thresholds(0.2, -math.inf)))
    assert "asked for every row" in str(Calibration("f", BOTH, labels=10, rows=20))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((None, None, 0.05), ValueError),
        ((1.0, None, 0.05), ValueError),
        ((0.0, None, 0.05), ValueError),
        ((None, 1.5, 0.05), ValueError),
        ((0.9, None, 0.0), ValueError),
        ((0.9, None, math.nan), ValueError),
        (("0.9", None, 0.05), TypeError),
        ((True, None, 0.05), TypeError),
    ],
)
def test_targets_are_shares(given: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        checked_targets(*given)
