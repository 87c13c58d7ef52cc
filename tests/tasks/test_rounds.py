"""How many rows a task with lookups takes at a time."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from eddyline.blocks.filter_block import SessionSettings
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.lookup_table import BlockLookup
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.tasks.rounds import PUSHED_ROWS, Rounds

BLOCK = JoinBlock(
    "b",
    JoinQuery((JoinRelation("r", (pa.int64(),)),)),
    (),
    SessionSettings(time_zone="UTC"),
    (0,),
    (),
    (("c",),),
)


@pytest.mark.parametrize(
    ("width", "keys_per_call", "limit", "expected"),
    [
        (16, 1, 0, [16, 64, 256, 1024, 4096]),
        (4, 500, 0, [2_000, 8_000, 32_000]),
        (16, 1, 5, [5, 10, 20, 40]),
        (4, 500, 5, [5, 500, 1_000, 2_000]),  # a call for ten keys costs what one for 500 does
    ],
)
def test_rounds_grow(width: int, keys_per_call: int, limit: int, expected: list[int]) -> None:
    lookup = BlockLookup("t", (0,), width, keys_per_call=keys_per_call)
    rounds = Rounds.of_join(replace(BLOCK, lookups=(lookup,), limit=limit))
    assert rounds.small
    assert [rounds.next(1 << 20) for _ in expected] == expected
    assert rounds.next(3) == 3
    for _ in range(20):
        rounds.next(1 << 20)
    assert rounds.next(1 << 20) == PUSHED_ROWS
    assert not rounds.small


def test_without_lookups_all_rows_come_next() -> None:
    rounds = Rounds.of_join(replace(BLOCK, limit=5))
    assert rounds.next(100_000) == 100_000
    assert not rounds.small
