"""Many short tasks on the virtual clock: what they begin with tells in what they ask."""

from __future__ import annotations

from typing import Final

import pytest

from bench.shared_learning import Outcome, Stage, Work, run

STAGE: Final = Stage(tasks=20, rows=500, workers=10, launch=0.01)
AT_ONCE: Final = Stage(tasks=20, rows=500, workers=10, launch=0.0)


@pytest.fixture(scope="module")
def work() -> Work:
    return Work.of(1, 6, STAGE.tasks * STAGE.rows)


def cost(outcome: Outcome) -> float:
    return outcome.asked.cost


def test_tasks_that_ask_cost_what_one_long_task_does(work: Work) -> None:
    long = work.whole().asked
    outcome = run(work, STAGE, "asked")
    calls, costs = outcome.asked.over(long)
    assert calls < 1.03
    assert costs < 1.05  # the first of 20 tasks learns for itself
    assert cost(run(work, STAGE, "worker")) > 1.1 * cost(outcome)
    assert cost(run(work, STAGE, "alone")) > cost(run(work, STAGE, "worker"))


def test_tasks_that_all_begin_at_once_have_nobody_to_ask(work: Work) -> None:
    firsts = {run(work, AT_ONCE, way).first for way in ("alone", "asked")}
    assert len(firsts) == 1


def test_an_earlier_query_spares_the_first_looks(work: Work) -> None:
    assert cost(run(work, AT_ONCE, "before")) < cost(run(work, AT_ONCE, "asked"))


def test_a_stage_repeats_to_the_last_call(work: Work) -> None:
    assert run(work, STAGE, "asked") == run(work, STAGE, "asked")
