"""Reports as JSON of a bounded size, and back: how they outlive their applications."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.as_dict import FORMAT
from eddyline.reports.block_report import BlockReport, JoinedBy, MeasuredInput
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.records import (
    Change,
    FunctionRecord,
    JoinRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
    ToldApartRecord,
)
from eddyline.reports.routing_report import RoutingReport

LARGEST: Final = 100_000
"""Characters of a report that is kept.

One block takes 2 to 30 thousand, of which most are orders over time; Spark's own events about an
action with one block take some 40 thousand.
"""

REDACTED: Final = "*********(redacted)"
"""What Spark puts in the place of what is not to be seen."""

_SLICES: Final = 48  # of time, where there is little room: two letters of a terminal each
_CELLS: Final = 101  # tasks of a join whose rows are kept where there is little room: percentiles
_TEXT: Final = 200  # letters of a predicate, likewise
_BLOCKS: Final = 16  # likewise
_LEFT: Final = 32  # parts that were left to Spark, likewise


def kept_json(report: RoutingReport, redaction: re.Pattern[str] | None = None) -> str | None:
    """Return a report as JSON of at most :data:`LARGEST` characters; None where none is so short.

    Where it would be longer, orders over time become coarser, then go; then texts are shortened,
    then blocks go from the end. In all texts, what a pattern for ``redaction`` finds is replaced as
    Spark replaces it in the texts of plans.
    """
    if redaction is not None:  # before a text is cut where the pattern would not know it any more
        report = kept_report(_redacted(report.to_dict(), redaction))
    for shorter in (_as_it_is, _coarser, _without_time, _with_short_texts, _with_few_blocks):
        report = shorter(report)
        text = json.dumps(report.to_dict(), separators=(",", ":"), allow_nan=False)
        if len(text) <= LARGEST:
            return text
    return None


def kept_report(data: Mapping[str, Any]) -> RoutingReport:
    """Return the report that ``to_dict`` has given as plain data.

    ValueError, TypeError or KeyError for what is no such data, or of another format.
    """
    if data["format"] != FORMAT:
        raise ValueError(f"reports of format {data['format']!r} are not known, only of {FORMAT}")
    return RoutingReport(
        tuple(map(_block, data["blocks"])),
        tuple((part["what"], part["why"]) for part in data["left"]),
        tuple(map(_called, data["called"])),
        tuple(map(_asked, data["asked"])),
    )


def _as_it_is(report: RoutingReport) -> RoutingReport:
    return report


def _coarser(report: RoutingReport) -> RoutingReport:
    return _with_records(
        report, lambda record: replace(record, orders=_joined(record.orders, _SLICES))
    )


def _joined(slices: Sequence[OrderSlice], most: int) -> tuple[OrderSlice, ...]:
    """Join neighbouring slices of time such that there are at most so many."""
    width = max(1, -(-len(slices) // most))
    return tuple(_whole(slices[start : start + width]) for start in range(0, len(slices), width))


def _whole(slices: Sequence[OrderSlice]) -> OrderSlice:
    rows: Counter[Order] = Counter()
    for piece in slices:
        rows.update(dict(piece.shares))
    return OrderSlice(
        min(piece.start for piece in slices),
        max(piece.end for piece in slices),
        sum(piece.rows for piece in slices),
        tuple(sorted(rows.items(), key=lambda share: (-share[1], share[0]))),
    )


def _without_time(report: RoutingReport) -> RoutingReport:
    def thinned(record: TaskRecord) -> TaskRecord:
        join = record.join
        return replace(
            record,
            orders=_joined(record.orders, 1),
            changes=(),
            changes_dropped=record.changes_dropped + len(record.changes),
            join=None if join is None else replace(join, cells=_percentiles(join.cells)),
        )

    return replace(
        _with_records(report, thinned),
        called=tuple(replace(function, waits=()) for function in report.called),
        asked=tuple(replace(table, waits=()) for table in report.asked),
    )


def _percentiles(cells: tuple[int, ...]) -> tuple[int, ...]:
    """Return fewer numbers with the same first and median one."""
    if len(cells) <= _CELLS:
        return cells
    last = len(cells) - 1
    return tuple(cells[round(part * last / (_CELLS - 1))] for part in range(_CELLS))


def _with_short_texts(report: RoutingReport) -> RoutingReport:
    def shortened(predicate: PredicateRecord) -> PredicateRecord:
        nested = tuple(map(shortened, predicate.nested))
        return replace(predicate, text=_short(predicate.text), nested=nested)

    report = _with_records(
        report,
        lambda record: replace(record, predicates=tuple(map(shortened, record.predicates))),
    )
    blocks = tuple(
        replace(
            block,
            title=_short(block.title),
            layout=_short(block.layout),
            predicates=tuple(map(_short, block.predicates)),
        )
        for block in report.blocks
    )
    left = tuple((_short(what), _short(why)) for what, why in report.left)
    return replace(report, blocks=blocks, left=left)


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"


def _with_few_blocks(report: RoutingReport) -> RoutingReport:
    return replace(report, blocks=report.blocks[:_BLOCKS], left=report.left[:_LEFT])


def _with_records(
    report: RoutingReport, changed: Callable[[TaskRecord], TaskRecord]
) -> RoutingReport:
    blocks = tuple(
        block if block.record is None else replace(block, record=changed(block.record))
        for block in report.blocks
    )
    return replace(report, blocks=blocks)


def _redacted(data: Any, pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - plain data, any of it
    if isinstance(data, str):
        return pattern.sub(REDACTED, data)
    if isinstance(data, Mapping):
        return {key: _redacted(value, pattern) for key, value in data.items()}
    if isinstance(data, list):
        return [_redacted(value, pattern) for value in data]
    return data


def _asked(data: Mapping[str, Any]) -> AskedTable:
    by_source = tuple((part["source"], part["keys"]) for part in data["by_source"])
    return AskedTable(**dict(data) | {"by_source": by_source, "waits": _waits(data)})


def _called(data: Mapping[str, Any]) -> CalledFunction:
    return CalledFunction(**dict(data) | {"waits": _waits(data)})


def _waits(data: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    """Return the waits for quota, of which reports of former versions have none."""
    return tuple((began, ended) for began, ended in data.get("waits", ()))


def _block(data: Mapping[str, Any]) -> BlockReport:
    run = data["run"]
    return BlockReport(
        data["title"],
        data["policy"],
        data["seed"],
        tuple(data["predicates"]),
        None if run is None else _record(run),
        data["layout"],
        tuple(data["inputs"]),
        data["reduced"],
        tuple(map(_measured, data.get("measured", ()))),  # of which earlier versions knew nothing
    )


def _measured(data: Mapping[str, Any]) -> MeasuredInput:
    return MeasuredInput(**dict(data) | {"joined": JoinedBy(data["joined"])})


def _record(run: Mapping[str, Any]) -> TaskRecord:
    counted = (
        "block",
        "tasks",
        "rows_in",
        "rows_out",
        "seconds",
        "work_seconds",
        "routing_seconds",
        "output_seconds",
        "core_seconds",
        "decisions",
        "explored",
        "changes_dropped",
    )
    return TaskRecord(
        **{name: run[name] for name in counted},
        answer_seconds=run.get("answer_seconds", 0.0),  # of which earlier versions knew nothing
        policy_failures=run.get("policy_failures", 0),  # likewise
        policy_error=run.get("policy_error", ""),
        told_apart=tuple(ToldApartRecord(**rows) for rows in run.get("told_apart", ())),  # likewise
        predicates=tuple(map(_predicate, run["predicates"])),
        functions=tuple(
            FunctionRecord(**_without(function, "avoided", "seconds_spared"))
            for function in run["functions"]
        ),
        orders=tuple(
            OrderSlice(piece["start"], piece["end"], piece["rows"], _shares(piece["orders"]))
            for piece in run["slices"]
        ),
        changes=tuple(
            Change(
                change["when"],
                change["predicate"],
                ChangedQuantity(change["quantity"]),
                _number(change["old"]),
                _number(change["new"]),
            )
            for change in run["changes"]
        ),
        join=None if run["join"] is None else _join(run["join"]),
    )


def _predicate(data: Mapping[str, Any]) -> PredicateRecord:
    own = _without(data, "selectivity", "seconds_per_row")
    return PredicateRecord(**own | {"nested": tuple(map(_predicate, data["nested"]))})


def _join(data: Mapping[str, Any]) -> JoinRecord:
    stems = data["stems"]
    return JoinRecord(
        stems=tuple(SteMRecord(**_without(stem, "read", "came", "fanout")) for stem in stems),
        read=tuple(stem["read"] for stem in stems),
        came=tuple(stem["came"] for stem in stems),
        cells=tuple(data["cells"]),
        spilled_bytes=data["spilled_bytes"],
        spilled_files=data["spilled_files"],
    )


def _without(data: Mapping[str, Any], *computed: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in computed}


def _shares(orders: Sequence[Mapping[str, Any]]) -> tuple[tuple[tuple[int, ...], int], ...]:
    return tuple((tuple(share["order"]), share["rows"]) for share in orders)


def _number(value: float | None) -> float:
    return float("inf") if value is None else value  # JSON has no infinity
