"""Tasks of join blocks ask once what all tasks have learned, on either side of the shuffle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from eddyline.asking.driver_channel import Address, DriverChannel
from eddyline.blocks.chosen_policy import WRITTEN_ORDER
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.prior import Prior
from eddyline.latest import Latest
from eddyline.tasks import block_task, task_functions
from eddyline.tasks.calling import MadeFunction
from eddyline.tasks.early_selection import EarlySelection
from eddyline.tasks.join_task import JoinTask
from eddyline.tasks.others_learned import SHORT_TASK, Told
from tests.tasks.join_blocks import INPUT, Closed, block_of, conjuncts
from tests.tasks.telling_driver import TellingDriver

ROWS = 500

TELLING: Told = (Prior(1e4, 9_990.0, 1.0), Prior(1e4, 10.0, 1e-7))
"""The second predicate rejects all, and costs nothing."""

Task = Callable[[Address | None], int]


class Tasks:
    """Runs tasks of one block over two predicates; each tells which one it asked first."""

    rows = ROWS
    predicates = 2
    options = RoutingOptions(remember=False)
    priors: Told = ()

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def joins(self, driver: Address | None) -> int:
        """Run a task that joins."""
        asked = self._asked()
        task = JoinTask(self._block(driver), self.options)
        inputs = [self._input(columns=3), self._input(columns=2)]
        rows = sum(batch.num_rows for batch in task.results(task.eddy.run(inputs)))
        assert rows == sum(n % 10 == 9 for n in range(self.rows))
        task.end(None)
        return asked[0]

    def checks(self, driver: Address | None) -> int:
        """Run a task that checks the rows of one input, all of which are copied."""
        asked = self._asked()
        early = EarlySelection(self._block(driver), INPUT, self.options)
        numbers = pa.array(range(self.rows))
        columns = pa.record_batch([numbers, numbers], names=["c0", "c1"])
        left = [checked.batch.num_rows for checked in early.check(columns, copied=True)]
        assert sum(left) == sum(n % 10 == 9 for n in range(self.rows))
        early.end(None)
        return asked[0]

    def _asked(self) -> list[int]:
        """Make functions of which the first rejects nine tenths; return a list of their calls."""
        asked: list[int] = []

        def function(number: int) -> Closed:
            def result(value: int) -> bool:
                asked.append(number)
                return number > 0 or value % 10 == 9

            return Closed(result)

        functions = [function(number) for number in range(self.predicates)]
        made = partial(MadeFunction, forgetful=True)
        self._monkeypatch.setattr(
            task_functions, "made_function", lambda each, *_: made(functions[int(each.name[1:])])
        )
        return asked

    def _block(self, driver: Address | None) -> JoinBlock:
        block = block_of(conjuncts(*range(self.predicates)), self.predicates)
        return replace(block.with_priors(self.priors), learned_at=driver)

    def _input(self, columns: int) -> HeldScan:
        numbers = pa.array(range(self.rows))
        return HeldScan([Arrival((numbers,) * columns, self.rows)])


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    """Tasks of a worker that remembers nothing of other tests."""
    memory = block_task.WorkerMemory(Latest(64), Latest(4), Latest(64))
    monkeypatch.setattr(block_task, "MEMORY", memory)
    return Tasks(monkeypatch)


@pytest.fixture(params=["joins", "checks"])
def run(request: pytest.FixtureRequest, tasks: Tasks) -> Task:
    task: Task = getattr(tasks, request.param)
    return task


def test_the_second_short_task_asks_about_the_block_and_no_other_does(
    channel: DriverChannel, run: Task
) -> None:
    driver = TellingDriver(channel, TELLING)
    counts = []
    for _ in range(4):
        run(driver.address)
        counts.append(len(driver.asked))
    assert counts == [0, 1, 1, 1]
    assert driver.asked == ["0/block"]


def test_what_is_told_is_where_the_task_begins(channel: DriverChannel, run: Task) -> None:
    """Here the first predicate rejects most; elsewhere the second has rejected all."""
    run(None)
    assert run(None) == 0
    assert run(TellingDriver(channel, TELLING).address) == 1


def test_the_first_task_asks_where_the_stage_has_many(
    channel: DriverChannel, run: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = TellingDriver(channel, TELLING)
    monkeypatch.setattr(block_task, "FEW_TASKS", 0)
    run(driver.address)
    run(driver.address)
    assert len(driver.asked) == 1


def test_an_answer_of_another_block_is_none(channel: DriverChannel, run: Task) -> None:
    driver = TellingDriver(channel, TELLING[:1])
    run(None)
    assert run(driver.address) == 0
    assert driver.asked


def test_who_has_nothing_to_learn_asks_nobody(
    channel: DriverChannel, run: Task, tasks: Tasks
) -> None:
    driver = TellingDriver(channel, TELLING)
    tasks.priors = TELLING
    for _ in range(2):
        run(driver.address)
    tasks.priors = ()
    tasks.options = RoutingOptions(WRITTEN_ORDER, remember=False)
    for _ in range(2):
        run(driver.address)
    assert driver.asked == []


def test_a_long_task_needs_no_news(channel: DriverChannel, run: Task, tasks: Tasks) -> None:
    driver = TellingDriver(channel, TELLING)
    tasks.rows = SHORT_TASK + 1
    run(driver.address)
    tasks.rows = ROWS
    run(driver.address)
    assert driver.asked == []


def test_one_predicate_has_an_order_only_among_joins(channel: DriverChannel, tasks: Tasks) -> None:
    tasks.predicates = 1
    driver = TellingDriver(channel, TELLING[:1])
    for _ in range(2):
        tasks.checks(driver.address)
    assert driver.asked == []
    for _ in range(2):
        tasks.joins(driver.address)
    assert driver.asked == ["0/block"]
