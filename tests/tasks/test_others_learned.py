"""A worker asks once what all tasks have learned, where it is given many short ones."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import pyarrow as pa
import pytest

from eddyline.asking.driver_channel import Address, DriverChannel, Hello
from eddyline.blocks.chosen_policy import DEFAULT_POLICY, WRITTEN_ORDER, ChosenPolicy
from eddyline.blocks.filter_block import FilterBlock, FunctionKind, SessionSettings
from eddyline.blocks.filter_block import UserFunction as Described
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.prior import Prior
from eddyline.expressions import And, Argument, Call
from eddyline.expressions.vector import Vector
from eddyline.latest import Latest
from eddyline.tasks import block_task, others_learned, task_functions
from eddyline.tasks.calling import MadeFunction
from eddyline.tasks.filter_task import FilterTask
from eddyline.tasks.others_learned import ASKS, SHORT_TASK, Told, told_by
from tests.joins import BOOL, UserFunction
from tests.tasks.telling_driver import TellingDriver

KNOWN: Told = (
    Prior(1_000.0, 900.0, 1e-4),
    Prior(600.0, 60.0, 2e-4, (Prior(600.0, 30.0, 1e-4), None)),
)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that remembers nothing of other tests."""
    memory = block_task.WorkerMemory(Latest(64), Latest(4), Latest(64))
    monkeypatch.setattr(block_task, "MEMORY", memory)
    monkeypatch.setattr(others_learned, "_unreachable", Latest(2))


def test_what_is_told_arrives(channel: DriverChannel) -> None:
    driver = TellingDriver(channel, KNOWN)
    assert told_by(driver.address, "7/block") == KNOWN
    assert driver.asked == ["7/block"]


@pytest.mark.parametrize("known", [(), (None, None)])
def test_nothing_is_known(channel: DriverChannel, known: Told) -> None:
    assert told_by(TellingDriver(channel, known).address, "block") == ()


def test_who_cannot_be_reached_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []
    connect = socket.create_connection

    def counted(*arguments: object, **named: object) -> socket.socket:
        tries.append(arguments)
        return connect(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_connection", counted)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = Address("127.0.0.1", taken.getsockname()[1], "token", "learned/1")
    assert [told_by(nobody, "block") for _ in range(3)] == [()] * 3
    assert len(tries) == 1


@pytest.mark.parametrize(
    "answer",
    ["", "{", "7", '[["1", 0, 0, []]]', "[[1, 2, 0, []]]", "[[1, 0]]", "[[NaN, 0, 0, []]]"],
)
def test_what_is_no_answer_is_nothing(channel: DriverChannel, answer: str) -> None:
    def tell(_: Hello, connection: socket.socket) -> None:
        connection.sendall(answer.encode())

    assert told_by(channel.listen("learned", tell), "block") == ()


class Closable(UserFunction):
    """A function that can be closed; the first one that a task calls is noted."""

    first_called: ClassVar[int] = -1

    def __init__(self, number: int, share: int) -> None:
        super().__init__(lambda n: n % 10 < share)
        self._number = number

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        if Closable.first_called < 0:
            Closable.first_called = self._number
        return super().__call__(columns, rows)

    def close(self) -> None:
        pass


Run = Callable[..., list[int]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a task of two predicates; return how many rows each was asked about."""

    def task(
        driver: Address | None,
        rows: int = 500,
        policy: ChosenPolicy = DEFAULT_POLICY,
        priors: Told = (),
        shares: tuple[int, ...] = (9, 1),
    ) -> list[int]:
        Closable.first_called = -1
        functions = [Closable(n, share) for n, share in enumerate(shares)]
        names = [f"f{number}" for number in range(len(shares))]
        by_name = dict(zip(names, functions, strict=True))
        made = partial(MadeFunction, forgetful=True)
        monkeypatch.setattr(
            task_functions, "made_function", lambda each, *_: made(by_name[each.name])
        )
        column = Argument(0, pa.int64())
        block = FilterBlock(
            "block",
            And(tuple(Call(number, (column,), BOOL) for number in range(len(shares)))),
            tuple(names),
            tuple(
                Described(name, FunctionKind.ARROW_BATCHED, (), (), (), '"boolean"')
                for name in names
            ),
            (),
            SessionSettings("UTC"),
            priors=priors,
            learned_at=driver,
        )
        filtering = FilterTask(block, RoutingOptions(policy, remember=False))
        kept = filtering.filter([pa.array(range(rows))]).field(0).true_count
        assert kept == sum(all(n % 10 < share for share in shares) for n in range(rows))
        filtering.end(None)
        return [predicate.rows_in for predicate in filtering.record().predicates]

    return task


def test_the_second_short_task_asks_and_no_other(channel: DriverChannel, run: Run) -> None:
    driver = TellingDriver(channel, KNOWN)
    counts = []
    for _ in range(4):
        run(driver.address)
        counts.append(len(driver.asked))
    assert counts == [0, 1, 1, 1]
    assert driver.asked == ["0/block"]


def test_what_is_told_is_where_the_task_begins(channel: DriverChannel, run: Run) -> None:
    # Elsewhere the second predicate rejects all, where this worker has seen it of the first.
    contrary = (Prior(1e4, 9_990.0, 1.0), Prior(1e4, 10.0, 1e-7))
    run(None, shares=(1, 9))
    run(TellingDriver(channel, contrary).address, shares=(1, 9))
    assert Closable.first_called == 1


def test_who_is_not_told_goes_on(channel: DriverChannel, run: Run) -> None:
    run(None)
    run(TellingDriver(channel, ()).address)
    assert Closable.first_called == 1


def test_the_first_task_asks_where_the_stage_has_many(
    channel: DriverChannel, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = TellingDriver(channel, KNOWN)
    monkeypatch.setattr(block_task, "FEW_TASKS", 0)
    run(driver.address)
    run(driver.address)
    assert len(driver.asked) == 1


def test_who_is_told_nothing_asks_again_but_not_forever(channel: DriverChannel, run: Run) -> None:
    driver = TellingDriver(channel, ())
    for _ in range(ASKS + 3):
        run(driver.address)
    assert len(driver.asked) == ASKS


def test_a_long_task_needs_no_news(channel: DriverChannel, run: Run) -> None:
    driver = TellingDriver(channel, KNOWN)
    run(driver.address, rows=SHORT_TASK + 1)
    run(driver.address)
    assert driver.asked == []


def test_who_has_nothing_to_learn_asks_nobody(channel: DriverChannel, run: Run) -> None:
    driver = TellingDriver(channel, KNOWN)
    for _ in range(2):
        run(driver.address, policy=WRITTEN_ORDER)
    for _ in range(2):
        run(driver.address, priors=KNOWN)
    assert driver.asked == []


def test_one_predicate_has_no_order(channel: DriverChannel, run: Run) -> None:
    driver = TellingDriver(channel, KNOWN)
    for _ in range(2):
        run(driver.address, shares=(5,))
    assert driver.asked == []


def test_an_answer_of_another_block_is_none(channel: DriverChannel, run: Run) -> None:
    driver = TellingDriver(channel, KNOWN[:1])
    run(driver.address)
    first, second = run(driver.address)  # goes on with what it knows
    assert second > first
    assert json.dumps(driver.asked) == '["0/block"]'
