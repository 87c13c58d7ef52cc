"""Which columns a table has, and which of them give way, is decided once for text and pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import CalledFunction
from eddyline.reports.records import TaskRecord
from eddyline.reports.sections import ReportSections
from eddyline.reports.tables import (
    Room,
    TableSection,
    called_table,
    functions_table,
    inputs_table,
    predicates_table,
)
from tests.reports.samples import SAMPLES, drifting, joined, sections_of, waiting


def tables(sections: ReportSections) -> Iterator[TableSection]:
    for block in sections.blocks:
        if block.run is not None:
            run = block.run
            changes = None if run.changes is None else run.changes.table
            parts = (run.inputs, run.predicates, run.functions, run.measured, changes)
            yield from (table for table in parts if table is not None)
    yield from sections.beside


def names(table: TableSection, room: Room = Room.PAGE) -> list[str]:
    return [column.name for column in table.standing(room)]


def recorded(block: BlockReport) -> TaskRecord:
    assert block.record is not None
    return block.record


@pytest.mark.parametrize("name", SAMPLES)
def test_tables_are_whole_in_every_room(name: str) -> None:
    for table in tables(sections_of(SAMPLES[name]())):
        assert len({len(column.cells) for column in table.columns}) == 1
        rooms = [table.standing(room) for room in Room]
        assert all(set(narrow) <= set(wide) for narrow, wide in pairwise(rooms))
        assert rooms[0][0].kind != "figures"  # a terminal leaves out columns from the right


def test_inputs_that_have_waited_are_told_with_what_they_waited_for() -> None:
    text = str(waiting())
    (line,) = (line for line in text.splitlines() if "input_0" in line)
    assert line.split() == ["input_0", "1,513", "59.1", "KiB", "rows", "broadcast", "840", "ms"]
    (unknown,) = (line for line in text.splitlines() if "input_2" in line)
    assert unknown.split()[-1] == "-"
    assert "measured" not in str(drifting())


def test_rare_events_of_an_input_have_a_column_where_there_are_any() -> None:
    (block,) = joined().blocks
    join = recorded(block).join
    assert join is not None
    stems = tuple(replace(stem, killed=0, bounced=3) for stem in join.stems)
    rare = {"Arrived", "Killed", "Bounced"}
    assert rare & set(names(inputs_table(block, join))) == {"Arrived", "Killed"}
    changed = replace(join, stems=stems, came=join.read)
    assert rare & set(names(inputs_table(block, changed))) == {"Bounced"}
    assert not rare & set(names(inputs_table(block, join), Room.NARROW))


def test_what_became_of_rows_at_predicates() -> None:
    (block,) = drifting().blocks
    record = recorded(block)
    table = predicates_table(block, record)
    assert names(table, Room.WIDE)[3:] == ["TRUE", "NULL", "Errors", "Per row", "Time"]
    assert names(table)[3:5] == ["TRUE", "FALSE"]
    assert len(table.notes) == 1
    clean = tuple(replace(each, null=0, errors_held=0) for each in record.predicates)
    tidy = replace(block, record=replace(record, predicates=clean))
    table = predicates_table(tidy, recorded(tidy))
    assert names(table)[3:] == ["TRUE", "FALSE", "Per row", "Time"]
    assert table.notes == ()


def test_rows_without_a_call_are_told_in_columns_or_in_words() -> None:
    record = recorded(drifting().blocks[0])
    assert functions_table(record).in_words == ()
    remembered, shared, *others = record.functions
    functions = (
        replace(remembered, remembered=1, distinct=1, memory_bytes=2058),
        replace(shared, shared=2),
        *others,
    )
    table = functions_table(replace(record, functions=functions))
    assert table.in_words == (
        "toxicity: 1 row answered from memory (1 argument tuple cached, 2.01 KiB)",
        "language: 2 rows shared the call of another row",
    )
    columns = ["From memory", "Cached", "Size", "Shared"]
    assert names(table)[-4:] == columns
    assert not set(columns) & set(names(table, Room.WIDE))


def test_failures_and_prices_of_calls_have_columns_where_there_are_any() -> None:
    free = CalledFunction("f", 3, 3, 0, 1.5)
    assert names(called_table([free])) == ["Function", "Values", "Calls", "Per call"]
    paid = CalledFunction("g", 3, 4, 1, 1.5, 0.5, "USD")
    table = called_table([free, paid])
    assert names(table) == ["Function", "Values", "Calls", "Failed", "Per call", "Spent"]
    spent = next(column for column in table.columns if column.name == "Spent")
    assert spent.cells == (None, "0.5 USD")
    assert table.notes == ("Spent in all: 0.5 USD",)
