"""What a report says, once for all its faces: headlines, and tables of typed columns.

Which columns a table has, which of them give way where there is little room, and what the sentences
say is decided here. How figures are spelled and how tables look is up to the faces:
:mod:`eddyline.reports.text` and :mod:`eddyline.reports.html`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eddyline.cascades.calibration import Calibration
from eddyline.reports.advice import advice
from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.figures import Seconds
from eddyline.reports.headlines import Headline, headlines
from eddyline.reports.merging import largest_changes
from eddyline.reports.plain_spark import compared
from eddyline.reports.quota_waits import QuotaWaits, quota_waits
from eddyline.reports.records import Change, Order, OrderSlice, TaskRecord
from eddyline.reports.tables import (
    TableSection,
    asked_table,
    called_table,
    cascades_table,
    changes_table,
    functions_table,
    inputs_table,
    left_table,
    measured_table,
    predicates_table,
)
from eddyline.reports.timeline import BusyTime, Timeline, busy_time, timeline
from eddyline.reports.wording import counted

ADVICE: Final = "What may help"

WAITS: Final = "Waits for quota"

NO_BLOCKS: Final = "No part of this query runs in an eddy."

REPORTED: Final = (
    "Reports cover DataFrames that eddyline.adapt has returned, and all queries of a session under "
    "eddyline.enable or the plug-in."
)

_NO_ACTION: Final = (
    "No action has run yet. Collect, count, show or write the DataFrame, then ask for the report."
)
_NO_ROWS: Final = "An action ran, but no rows reached this block."

_TOP_ORDERS: Final = 6  # more bands than that cannot be told apart
_LISTED_CHANGES: Final = 12  # more marks than that hide the picture


@dataclass(frozen=True, slots=True)
class OrdersSection:
    """The orders that rows took in the course of the run, and the names of their steps."""

    labels: tuple[str, ...]
    slices: tuple[OrderSlice, ...]
    rows: tuple[tuple[Order, int], ...]

    def over(self, bins: int) -> Timeline:
        """Spread the run over so many bins."""
        return timeline(self.slices, self.rows, bins=bins, top=_TOP_ORDERS)


@dataclass(frozen=True, slots=True)
class ChangesSection:
    """The largest of the changes that the statistics noticed, by time."""

    noticed: int
    changes: tuple[Change, ...]
    busy: BusyTime

    def largest(self, most: int) -> ChangesSection:
        """Return a section of at most so many changes."""
        return ChangesSection(self.noticed, largest_changes(self.changes, most), self.busy)

    @property
    def heading(self) -> str:
        """How many there were, and how many of them stand here."""
        heading = counted(self.noticed, "change") + " noticed"
        listed = len(self.changes)
        return heading if listed == self.noticed else f"{heading}, the largest {listed}"

    @property
    def after(self) -> tuple[Seconds, ...]:
        """How long the block had been at work at each change."""
        return tuple(Seconds(self.busy.at(change.when)) for change in self.changes)

    @property
    def table(self) -> TableSection:
        """The changes by the marks that they have in a picture of the orders."""
        return changes_table(self.heading, self.changes, self.after)


@dataclass(frozen=True, slots=True)
class RunSections:
    """What a block did; a section that has nothing to say is None."""

    headlines: tuple[Headline, ...]
    inputs: TableSection | None
    measured: TableSection | None
    predicates: TableSection | None
    functions: TableSection | None
    orders: OrdersSection | None
    changes: ChangesSection | None


@dataclass(frozen=True, slots=True)
class BlockSections:
    """A block and its run, or a note that says why there is none."""

    block: BlockReport
    note: str
    run: RunSections | None


@dataclass(frozen=True, slots=True)
class ReportSections:
    """All that a report says: a comparison, the blocks, what is beside, and advice.

    The comparison and the advice may be empty; ``waits`` are None where nothing waited for quota.
    """

    compared: str
    blocks: tuple[BlockSections, ...]
    beside: tuple[TableSection, ...]
    advice: tuple[str, ...] = ()
    waits: QuotaWaits | None = None


def report_sections(
    blocks: Sequence[BlockReport],
    left: Sequence[tuple[str, str]],
    called: Sequence[CalledFunction] = (),
    asked: Sequence[AskedTable] = (),
    cascades: Sequence[Calibration] = (),
) -> ReportSections:
    """Return what there is to say of blocks, of what was left to Spark, and of the driver."""
    comparison = compared(blocks)
    beside = (
        asked_table(asked) if asked else None,
        called_table(called) if called else None,
        cascades_table(cascades) if cascades else None,
        left_table(left) if left else None,
    )
    ran = any(block.record is not None for block in blocks)
    return ReportSections(
        compared="" if comparison is None else str(comparison),
        blocks=tuple(_block(block, ran=ran) for block in blocks),
        beside=tuple(table for table in beside if table is not None),
        advice=advice(blocks, called, asked),
        waits=quota_waits(blocks, called, asked),
    )


def _block(block: BlockReport, *, ran: bool) -> BlockSections:
    record = block.record
    if record is None and not ran:
        return BlockSections(block, _NO_ACTION, None)
    if record is None or not record.rows_in:
        return BlockSections(block, _NO_ROWS, None)
    join = record.join
    run = RunSections(
        headlines=tuple(headlines(block, record)),
        inputs=None if join is None else inputs_table(block, join),
        measured=measured_table(block.measured) if block.measured else None,
        predicates=predicates_table(block, record) if record.predicates else None,
        functions=functions_table(record) if record.functions else None,
        orders=_orders(block, record),
        changes=_changes(record),
    )
    return BlockSections(block, "", run)


def _orders(block: BlockReport, record: TaskRecord) -> OrdersSection | None:
    rows = record.order_rows
    if not any(number for _, number in rows):
        return None
    return OrdersSection(block.labels, record.orders, rows)


def _changes(record: TaskRecord) -> ChangesSection | None:
    if not record.changes:
        return None
    noticed = len(record.changes) + record.changes_dropped
    listed = largest_changes(record.changes, _LISTED_CHANGES)
    return ChangesSection(noticed, listed, busy_time(record.orders))
