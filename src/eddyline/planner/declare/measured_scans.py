"""What scans of lookup tables take, learned from those that were chosen while a query ran."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.lookup_table import AccessChoice
from eddyline.learning.learned_store import LearnedStore
from eddyline.planner.declare.lookup_tables import LookupTables
from eddyline.wall_clock import WallClock

if TYPE_CHECKING:
    from eddyline.asking.lookup_server import ScanBegun


def learn_scans(spark: SparkSession, tables: LookupTables, store: LearnedStore) -> None:
    """Learn what scans have taken that were chosen, and are over by now.

    Spark has counted it: nobody listens to queries for that, and who plans the next one asks.
    """
    open_ = [*tables.unmeasured, *tables.scans_begun()]
    tables.unmeasured.clear()
    for begun in open_:
        run, _, action = begun.job.partition("/")
        choice = tables.chosen_by(int(run), begun.methods) if action.isdecimal() else None
        if (
            choice is not None
            and choice.scan
            and not _learned(spark, store, choice, begun, int(action))
        ):
            tables.unmeasured.append(begun)


def _learned(
    spark: SparkSession, store: LearnedStore, choice: AccessChoice, begun: ScanBegun, action: int
) -> bool:
    """Learn what a scan has taken, if it is known; tell whether it needs no other look."""
    state = catalyst.action_state(spark, action)
    if state is None:
        return True
    if state.ended is None:
        return False
    ago = WallClock.now() - begun.at
    seconds = catalyst.seconds_of_reading(spark, action, time.time() - ago)
    if state.error is None and seconds is not None:
        store.scanned(choice.scan, choice.table, seconds)
    return True
