"""The report as dictionaries, lists, strings and numbers that JSON can carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from eddyline.cascades.calibration import Calibration
from eddyline.reports.advice import advice
from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.plain_spark import compared
from eddyline.reports.records import (
    Change,
    FunctionRecord,
    JoinRecord,
    Order,
    PredicateRecord,
    TaskRecord,
)

FORMAT = 1
"""Goes up when a key changes its meaning or vanishes; new keys may come without notice."""


def as_dict(
    blocks: Sequence[BlockReport],
    left: Sequence[tuple[str, str]],
    called: Sequence[CalledFunction] = (),
    asked: Sequence[AskedTable] = (),
    cascades: Sequence[Calibration] = (),
) -> dict[str, Any]:
    """Return the report as plain data; the keys are described at ``RoutingReport.to_dict``."""
    plain = compared(blocks)
    return {
        "format": FORMAT,
        "compared": None if plain is None else asdict(plain),
        "blocks": [
            {
                "title": block.title,
                "policy": block.policy,
                "seed": block.seed,
                "predicates": list(block.predicates),
                "inputs": list(block.inputs),
                "layout": block.layout,
                "reduced": block.reduced,
                "measured": [asdict(one) | {"joined": str(one.joined)} for one in block.measured],
                "run": None if block.record is None else _run(block.record),
            }
            for block in blocks
        ],
        "left": [{"what": what, "why": why} for what, why in left],
        "called": [asdict(function) | {"waits": _waits(function)} for function in called],
        "asked": [_asked(table) for table in asked],
        "cascades": [_cascade(cascade) for cascade in cascades],
        "advice": list(advice(blocks, called, asked)),
    }


def _cascade(cascade: Calibration) -> dict[str, Any]:
    low, high = cascade.thresholds.low, cascade.thresholds.high
    return {
        "name": cascade.name,
        **asdict(cascade.targets),
        "low": low if isfinite(low) else None,
        "high": high if isfinite(high) else None,
        "accepts_all": high < 0 and not isfinite(high),
        "rows": cascade.rows,
        "labels": cascade.labels,
        "accepted": cascade.accepted,
        "spared": cascade.spared,
    }


def _asked(table: AskedTable) -> dict[str, Any]:
    by_source = [{"source": source, "keys": keys} for source, keys in table.by_source]
    return asdict(table) | {"by_source": by_source, "waits": _waits(table)}


def _waits(waiting: AskedTable | CalledFunction) -> list[list[float]]:
    return [list(wait) for wait in waiting.waits]


def _run(record: TaskRecord) -> dict[str, Any]:
    return {
        "block": record.block,
        "tasks": record.tasks,
        "rows_in": record.rows_in,
        "rows_out": record.rows_out,
        "seconds": record.seconds,
        "work_seconds": record.work_seconds,
        "routing_seconds": record.routing_seconds,
        "output_seconds": record.output_seconds,
        "core_seconds": record.core_seconds,
        "answer_seconds": record.answer_seconds,
        "other_seconds": record.other_seconds,
        "decisions": record.decisions,
        "explored": record.explored,
        "policy_failures": record.policy_failures,
        "policy_error": record.policy_error,
        "told_apart": [asdict(rows) for rows in record.told_apart],
        "calls": record.calls,
        "calls_possible": record.calls_possible,
        "calls_avoided": record.calls_avoided,
        "seconds_spared": record.seconds_spared,
        "predicates": [_predicate(predicate) for predicate in record.predicates],
        "functions": [_function(function) for function in record.functions],
        "orders": _shares(record.order_rows),
        "slices": [
            {
                "start": piece.start,
                "end": piece.end,
                "rows": piece.rows,
                "orders": _shares(piece.shares),
            }
            for piece in record.orders
        ],
        "changes": [_change(change) for change in record.changes],
        "changes_dropped": record.changes_dropped,
        "join": None if record.join is None else _join(record.join),
    }


def _join(join: JoinRecord) -> dict[str, Any]:
    return {
        "stems": [
            asdict(stem) | {"read": read, "came": came, "fanout": stem.fanout}
            for stem, read, came in zip(join.stems, join.read, join.came, strict=True)
        ],
        "cells": list(join.cells),
        "skew": join.skew,
        "spilled_bytes": join.spilled_bytes,
        "spilled_files": join.spilled_files,
    }


def _predicate(predicate: PredicateRecord) -> dict[str, Any]:
    return asdict(predicate) | {
        "selectivity": predicate.selectivity,
        "seconds_per_row": predicate.seconds_per_row,
        "nested": [_predicate(disjunct) for disjunct in predicate.nested],
    }


def _function(function: FunctionRecord) -> dict[str, Any]:
    return asdict(function) | {
        "avoided": function.avoided,
        "seconds_spared": function.seconds_spared,
    }


def _shares(shares: Sequence[tuple[Order, int]]) -> list[dict[str, Any]]:
    return [{"order": list(order), "rows": rows} for order, rows in shares]


def _change(change: Change) -> dict[str, Any]:
    return {
        "when": change.when,
        "predicate": change.predicate,
        "quantity": change.quantity.value,
        "old": _finite(change.old),
        "new": _finite(change.new),
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None  # JSON has no infinity
