"""The targets hold as often as promised, whatever the scores are like."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from eddyline.cascades.calibration import Calibration, calibrate
from eddyline.cascades.targets import Targets
from eddyline.cascades.thresholds import proven_thresholds

RUNS = 100
ROWS = 4_000

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]
Generator = np.random.Generator


def useless(random: Generator) -> Rows:
    """Scores that say nothing."""
    return random.random(ROWS), random.random(ROWS) < 0.3


def perfect(random: Generator) -> Rows:
    """Scores that are the answers."""
    accepted = random.random(ROWS) < 0.3
    return accepted.astype(float), accepted


def fair(random: Generator) -> Rows:
    """Scores that overlap."""
    accepted = random.random(ROWS) < 0.3
    return random.normal(2.0 * accepted), accepted


def reversed_scores(random: Generator) -> Rows:
    """Scores that say the opposite."""
    scores, accepted = fair(random)
    return -scores, accepted


def lost(random: Generator) -> Rows:
    """A few more rows than may be missed have the lowest scores, all others are told apart."""
    accepted = random.random(ROWS) < 0.3
    scores = accepted + random.normal(0, 0.1, ROWS)
    return np.where(accepted & (random.random(ROWS) < 0.058), -1.0, scores), accepted


def false_friends(random: Generator) -> Rows:
    """A few more rejected rows than may be accepted have the highest scores."""
    accepted = random.random(ROWS) < 0.3
    scores = accepted + random.normal(0, 0.1, ROWS)
    return np.where(~accepted & (random.random(ROWS) < 0.027), 5.0, scores), accepted


def ties(random: Generator) -> Rows:
    """Scores of five values."""
    scores, accepted = fair(random)
    return np.clip(np.round(scores), 0, 4), accepted


def rare(random: Generator) -> Rows:
    """Few accepted rows."""
    accepted = random.random(ROWS) < 0.04
    return random.normal(3.0 * accepted), accepted


def every(random: Generator) -> Rows:
    """All rows are accepted."""
    return random.random(ROWS), np.ones(ROWS, bool)


def none(random: Generator) -> Rows:
    """No row is accepted."""
    return random.random(ROWS), np.zeros(ROWS, bool)


def partly_unknown(random: Generator) -> Rows:
    """Scores that are missing where they would tell most."""
    scores, accepted = fair(random)
    return np.where(np.abs(scores - 1) > 2, np.nan, scores), accepted


KINDS = (
    useless,
    perfect,
    fair,
    reversed_scores,
    lost,
    false_friends,
    ties,
    rare,
    every,
    none,
    partly_unknown,
)
TARGETS = (
    Targets(0.95, None, 0.05),
    Targets(None, 0.95, 0.05),
    Targets(0.9, 0.9, 0.05),
    Targets(0.8, None, 0.3),
)


def calibrated(rows: Rows, targets: Targets, random: Generator) -> tuple[Calibration, set[int]]:
    """Return the calibration of some rows, and which of them were labelled."""
    scores, accepted = rows
    order = random.permutation(len(scores))

    def label(start: int, stop: int) -> list[tuple[float | None, bool]]:
        return [(float(scores[row]), bool(accepted[row])) for row in order[start:stop]]

    found = calibrate("cascade", targets, len(scores), len(scores), 10_000, label)
    return found, set(order[: found.labels].tolist())


def answered(
    rows: Rows, found: Calibration, labelled: set[int]
) -> tuple[npt.NDArray[np.bool_], int]:
    """Return which rows are in the answer, and for how many the oracle was asked."""
    scores, accepted = rows
    answer = accepted.copy()
    asked = len(labelled)
    for row, score in enumerate(scores):
        if row not in labelled:
            verdict = found.thresholds.verdict(float(score))
            answer[row] = accepted[row] if verdict is None else verdict
            asked += verdict is None
    return answer, asked


@cache
def missed(kind: Callable[[Generator], Rows], targets: Targets) -> tuple[int, float]:
    """Return in how many runs a target was missed, and the share of rows asked about."""
    random = np.random.default_rng(7)
    misses, asked = 0, 0
    for _ in range(RUNS):
        rows = kind(random)
        answer, asked_now = answered(rows, *calibrated(rows, targets, random))
        asked += asked_now
        right = int((answer & rows[1]).sum())
        recall = right / max(1, rows[1].sum()) if rows[1].any() else 1.0
        precision = right / answer.sum() if answer.any() else 1.0
        misses += recall < (targets.recall or 0) or precision < (targets.precision or 0)
    return misses, asked / RUNS / ROWS


@pytest.mark.statistical
@pytest.mark.parametrize("targets", TARGETS, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_targets_hold(kind: Callable[[Generator], Rows], targets: Targets) -> None:
    misses, _ = missed(kind, targets)
    # With delta missed on the average, more than three standard deviations above are no chance.
    delta = targets.delta
    assert misses <= RUNS * delta + 3 * (RUNS * delta * (1 - delta)) ** 0.5
    if delta == 0.05:
        assert misses <= 5


def test_the_test_is_not_idle() -> None:
    """Thresholds without a proof miss the target in about half of all runs."""
    random = np.random.default_rng(3)
    misses = 0
    for _ in range(RUNS):
        scores, accepted = rows = lost(random)
        drawn = random.permutation(ROWS)[:400]
        mine = np.sort(scores[drawn][accepted[drawn]])
        low = mine[int(0.05 * len(mine))]
        misses += np.mean(scores[rows[1]] >= low) < 0.95
    assert misses > 20


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "targets", "most"),
    [
        (perfect, TARGETS[0], 0.5),
        (perfect, TARGETS[2], 0.25),
        (false_friends, TARGETS[0], 0.5),
        (every, TARGETS[1], 0.1),
    ],
)
def test_a_good_proxy_spares_calls(
    kind: Callable[[Generator], Rows], targets: Targets, most: float
) -> None:
    _, asked = missed(kind, targets)
    assert asked <= most


@pytest.mark.parametrize("kind", [useless, none, every, reversed_scores])
def test_what_cannot_be_proven_is_asked(kind: Callable[[Generator], Rows]) -> None:
    rows = kind(np.random.default_rng(1))
    found, labelled = calibrated(rows, Targets(0.95, None, 0.05), np.random.default_rng(2))
    _, asked = answered(rows, found, labelled)
    assert asked > 0.85 * ROWS


def test_few_rows_are_not_labelled() -> None:
    found, labelled = calibrated(
        (np.arange(100.0), np.arange(100) > 50), Targets(0.95, None, 0.05), np.random.default_rng(0)
    )
    assert (found.labels, labelled) == (0, set())
    assert not found.thresholds.decides
    assert "100 rows are too few" in str(found)


@pytest.mark.parametrize("wanted", [Targets(0.9, None, 0.1), Targets(None, 0.9, 0.1)])
def test_equal_scores_are_not_taken_apart(wanted: Targets) -> None:
    labels = [row % 10 < 8 for row in range(500)]
    thresholds = proven_thresholds([1.0] * 500, labels, wanted)
    assert thresholds.verdict(1.0) is None
