"""Reports as real runs would leave them, for tests and for looking at the pictures.

Run ``python -m tests.reports.samples FOLDER`` to write them as web pages.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import permutations
from pathlib import Path

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.block_report import BlockReport, JoinedBy, MeasuredInput
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.merging import merge
from eddyline.reports.records import (
    Change,
    FunctionRecord,
    JoinRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
)
from eddyline.reports.routing_report import RoutingReport
from eddyline.reports.sections import ReportSections, report_sections

START = 1_760_000_000.0  # 2025-10-09, 08:53:20 UTC

TEXTS = (
    "toxicity(comment_text) > 0.7",
    "language(comment_text) = 'en'",
    "is_known_customer(customer_id, region) OR trial_score(customer_id) >= 3",
)

LONG_TEXT = (
    "matches_any(concat_ws(' ', lower(title), lower(body), lower(coalesce(author, 'unknown'))),\n"
    "    array('alpha', 'beta', 'gamma', 'delta')) AND length(title) > 10"
)


def drifting_task(task: int, seed: int = 1) -> TaskRecord:
    """One of 48 tasks of a run in which the second predicate stops being selective halfway."""
    chance = random.Random(seed * 1000 + task)
    late = task >= 24
    rows = chance.randrange(23_000, 27_000)
    pass_language = 0.82 if late else 0.11
    pass_toxicity, pass_customer = 0.08, 0.46
    best: Order = (0, 1, 2) if late else (1, 0, 2)
    seconds = (22e-6, 4e-6, 48e-6)
    seen = [0, 0, 0]
    alive = rows
    for position in best:
        seen[position] = alive
        share = (pass_toxicity, pass_language, pass_customer)[position]
        alive = round(alive * share * chance.uniform(0.95, 1.05))
    explored = rows // 25
    begin = START + (task // 2) * 0.9 + chance.uniform(0, 0.1)
    slices = []
    for piece in range(4):
        part = rows // 4 if piece else rows - 3 * (rows // 4)
        wrong = part // (2 if task in (24, 25) and piece == 0 else 25)
        shares = [(best, part - 2 * (wrong // 2))]
        others = ((1, 0, 2) if late else (0, 1, 2), (2, 0, 1))
        shares += [(order, wrong // 2) for order in others]
        slices.append(
            OrderSlice(begin + piece * 0.2, begin + piece * 0.2 + 0.2, part, tuple(shares))
        )
    work = sum(number * cost for number, cost in zip(seen, seconds, strict=True))
    predicates = tuple(
        PredicateRecord(
            text=text,
            rows_in=number,
            passed=round(number * share),
            rejected=number - round(number * share) - number // 200 - errors,
            null=number // 200,
            errors_held=errors,
            errors_dropped=errors,
            seconds=number * cost,
        )
        for text, number, share, cost, errors in zip(
            TEXTS,
            seen,
            (pass_toxicity, pass_language, pass_customer),
            seconds,
            (3, 0, 0),
            strict=True,
        )
    )
    known = seen[2]
    trial = known * 3 // 5
    predicates = (
        *predicates[:2],
        replace(
            predicates[2],
            nested=(
                PredicateRecord(
                    text="is_known_customer(customer_id, region)",
                    rows_in=known,
                    passed=known - trial,
                    rejected=trial,
                    seconds=known * 12e-6,
                ),
                PredicateRecord(
                    text="trial_score(customer_id) >= 3",
                    rows_in=trial,
                    passed=trial // 4,
                    rejected=trial - trial // 4,
                    seconds=trial * 60e-6,
                ),
            ),
        ),
    )
    functions = tuple(
        FunctionRecord(name=name, calls=calls, calls_possible=rows, seconds=calls * cost)
        for name, calls, cost in (
            ("toxicity", seen[0] + explored, 21e-6),
            ("language", seen[1], 3.5e-6),
            ("is_known_customer", known, 11e-6),
            ("trial_score", trial, 58e-6),
        )
    )
    changes: tuple[Change, ...] = ()
    if task in (24, 25):
        changes = (Change(begin + 0.1, 1, ChangedQuantity.SELECTIVITY, 0.11, 0.79),)
    return TaskRecord(
        block="filter-1",
        rows_in=rows,
        rows_out=alive,
        seconds=work * 1.008,
        work_seconds=work,
        routing_seconds=work * 0.008,
        decisions=rows // 512,
        predicates=predicates,
        functions=functions,
        orders=tuple(slices),
        changes=changes,
        worker=f"worker-{task % 2}",
    )


def drifting() -> RoutingReport:
    """A run of 48 tasks whose best order changes halfway, beside parts left to Spark."""
    record = reduce(merge, (drifting_task(task) for task in range(48)))
    block = BlockReport("Filter over comments", "adaptive", 7, TEXTS, record)
    left = (
        ("sentiment(comment_text) in the select list", "only filters run in an eddy"),
        (
            "rand_sample(id) < 0.1",
            (
                "the function is declared non-deterministic, so calling it on other rows or in "
                "another order could change the answer"
            ),
        ),
    )
    return RoutingReport((block,), left)


def many_orders() -> RoutingReport:
    """Five predicates, thirty orders, long texts, many changes, and a pause of ten minutes."""
    chance = random.Random(3)
    texts = (
        'model_score("<b>title</b>", body) > 0.5 & flag',
        LONG_TEXT,
        "f3(a)",
        "f4(a, b)",
        "never_called(a)",
    )
    orders = list(permutations(range(5)))[::4][:30]
    slices = []
    for number in range(150):
        begin = START + number * 0.4 + (600 if number >= 60 else 0)
        favourite = orders[min(number // 22, 5)]
        shares = [(favourite, 3000)]
        shares += [(order, chance.randrange(10, 400)) for order in orders if order != favourite]
        slices.append(OrderSlice(begin, begin + 0.4, sum(n for _, n in shares), tuple(shares)))
    rows = sum(piece.rows for piece in slices)
    seen = (rows, rows // 3, rows // 9, rows // 20, 0)
    changes = tuple(
        Change(
            START + chance.uniform(0, 24) + chance.choice((0, 636)),
            chance.randrange(4),
            chance.choice(tuple(ChangedQuantity)),
            chance.uniform(0.001, 0.5),
            chance.uniform(0.001, 0.9),
        )
        for _ in range(40)
    )
    record = TaskRecord(
        block="filter-2",
        rows_in=rows,
        rows_out=rows // 50,
        seconds=2.1,
        work_seconds=2.0,
        routing_seconds=0.1,
        decisions=4000,
        predicates=tuple(
            PredicateRecord(
                text=text,
                rows_in=number,
                passed=number // 3,
                rejected=number - number // 3,
                seconds=number * 1e-6,
            )
            for text, number in zip(texts, seen, strict=True)
        ),
        functions=(
            FunctionRecord(name="<lambda>", calls=rows, calls_possible=3 * rows, seconds=1),
        ),
        orders=tuple(slices),
        changes=changes,
    )
    return RoutingReport(
        (BlockReport("Filter <script>alert(1)</script>", "lottery", None, texts, record),)
    )


LONG_NAMES = tuple(
    f"{what}_of_{whom}_is_{how}(customer_identifier, transaction_time) > 0.{place}"
    for place, (what, whom, how) in enumerate(
        (
            ("creditworthiness", "customer", "sufficient"),
            ("geography", "recent_transactions", "plausible"),
            ("sentiment", "support_conversations", "negative"),
            ("likelihood", "cancellation", "alarming"),
            ("similarity", "known_fraud_patterns", "high"),
            ("turnover", "previous_quarter", "exceptional"),
            ("toxicity", "public_comments", "tolerable"),
            ("readability", "product_descriptions", "poor"),
        )
    )
)


def long_names() -> RoutingReport:
    """Eight predicates with long names, and a join whose orders are as long as they get."""
    chance = random.Random(8)
    rows = 80_000
    orders = [tuple(chance.sample(range(8), 8)) for _ in range(5)]
    slices = tuple(
        OrderSlice(
            START + number,
            START + number + 1,
            rows // 10,
            tuple((order, rows // 50) for order in orders),
        )
        for number in range(10)
    )
    predicates = tuple(
        PredicateRecord(text=text, rows_in=rows >> place, passed=rows >> place + 1)
        for place, text in enumerate(LONG_NAMES)
    )
    record = TaskRecord(
        block="filter-8", rows_in=rows, rows_out=rows >> 8, seconds=9, work_seconds=8,
        predicates=predicates, orders=slices,
    )  # fmt: skip
    filtered = BlockReport("eight functions", "adaptive", 0, LONG_NAMES, record)
    joined_block = joined().blocks[0]
    assert joined_block.record is not None
    assert joined_block.record.join is not None
    inputs = ("transactions", "customers", "suppliers")
    renamed = replace(
        joined_block,
        title=" join ".join(inputs),
        predicates=(*JOIN_TEXTS, *(f"join {name}" for name in inputs)),
        inputs=inputs,
    )
    return RoutingReport((filtered, renamed))


def not_run() -> RoutingReport:
    """Two blocks, neither of which has got a row from an action."""
    empty = TaskRecord(
        block="b", predicates=tuple(PredicateRecord(text=text) for text in TEXTS[:2])
    )
    return RoutingReport(
        (
            BlockReport("Filter over orders", "adaptive", None, TEXTS[:2]),
            BlockReport("Filter over no rows", "static", 3, TEXTS[:2], empty),
        )
    )


def nothing() -> RoutingReport:
    """Nothing was claimed."""
    return RoutingReport((), (("f(x) > 1", "a single predicate has no order to choose"),))


JOIN_TEXTS = ("delayed(delay_minutes) > 0.5", "fits(seats, passengers)")
JOIN_INPUTS = ("flights", "planes", "ports")


def joined_task(task: int) -> TaskRecord:
    """One of 12 tasks over one shuffle, the first of which has most of the rows."""
    chance = random.Random(task)
    rows = 210_000 if task == 0 else chance.randrange(38_000, 52_000)
    planes, airports = rows // 30, 1_400
    flights = rows - planes - airports
    seen = flights - flights // 50
    late = seen // 5
    joined = late + flights // 50
    begin = START + (task // 4) * 2.5 + chance.uniform(0, 0.2)
    # Flights first through the cheap predicate, then past the planes; some the other way.
    shares = (((2, 0, 3, 1, 4), seen), ((2, 3, 0, 4, 1), flights - seen))
    if task >= 8:
        shares = (((2, 3, 0, 4, 1), seen), ((2, 0, 3, 1, 4), flights - seen))
    slices = tuple(
        OrderSlice(
            begin + piece * 0.5,
            begin + piece * 0.5 + 0.5,
            flights // 4,
            tuple((order, number // 4) for order, number in shares),
        )
        for piece in range(4)
    )
    predicates = (
        PredicateRecord(
            text=JOIN_TEXTS[0],
            rows_in=seen,
            passed=late,
            rejected=seen - late - 7,
            errors_held=7,
            seconds=seen * 6e-6,
        ),
        PredicateRecord(
            text=JOIN_TEXTS[1],
            rows_in=joined,
            passed=joined // 2,
            rejected=joined - joined // 2,
            seconds=joined * 11e-6,
        ),
    )
    stems = (
        SteMRecord(relation="flights"),
        SteMRecord(
            relation="planes",
            rows=planes,
            bytes=planes * 56,
            builds=planes,
            probes=joined,
            matches=joined,
            killed=planes // 10,
            seconds=joined * 3e-7,
        ),
        SteMRecord(
            relation="ports",
            rows=airports,
            bytes=airports * 48,
            builds=airports,
            probes=joined // 2,
            matches=joined // 2 - 300,
            seconds=joined * 2e-7,
        ),
    )
    work = sum(predicate.seconds for predicate in predicates) + joined * 5e-7
    return TaskRecord(
        block="join-1",
        rows_in=flights + planes + (airports if task == 0 else 0),
        rows_out=joined // 2 - 300,
        seconds=work * 1.02,
        work_seconds=work,
        routing_seconds=work * 0.01,
        decisions=rows // 2000,
        predicates=predicates,
        functions=(
            FunctionRecord(
                name="delayed", calls=seen, calls_possible=flights, seconds=seen * 5.5e-6
            ),
            FunctionRecord(
                name="fits", calls=joined, calls_possible=joined, seconds=joined * 10e-6
            ),
        ),
        orders=slices,
        worker=f"worker-{task % 4}",
        join=JoinRecord(
            stems=stems,
            read=(flights, planes, airports if task == 0 else 0),
            came=(flights, planes, airports),
            cells=(rows,),
            spilled_bytes=rows * 60 if task == 0 else 0,
            spilled_files=48 if task == 0 else 0,
        ),
    )


def joined() -> RoutingReport:
    """A join of three inputs over one shuffle: skewed, spilled, one input copied to all cells."""
    record = reduce(merge, (joined_task(task) for task in range(12)))
    steps = (*JOIN_TEXTS, *(f"join {name}" for name in JOIN_INPUTS))
    layout = "12 cells of one shuffle: 12 by flights.tail_number = planes.tail_number"
    title = " join ".join(JOIN_INPUTS)
    block = BlockReport(title, "adaptive", 0, steps, record, layout, JOIN_INPUTS)
    return RoutingReport((block,))


def broadcast() -> RoutingReport:
    """A table joined with itself in place: no predicates, and more calls than in a fixed plan."""
    names = ("a table of a very long name, as <some> people like them", "input 2", "input 2")
    stems = tuple(
        SteMRecord(relation=name, rows=9, bytes=900, builds=27, probes=50, matches=125, bounced=4)
        for name in names
    )
    record = TaskRecord(
        block="join-2",
        tasks=3,
        rows_in=68,
        rows_out=300,
        seconds=0.2,
        work_seconds=0.1,
        routing_seconds=0.01,
        functions=(FunctionRecord(name="label", calls=54, calls_possible=18, seconds=0.01),),
        orders=(OrderSlice(START, START + 0.2, 50, (((0, 1, 2), 30), ((0, 2, 1), 20))),),
        join=JoinRecord(stems=stems, read=(50, 9, 9), came=(50, 27, 27), cells=(50, 0, 0)),
    )
    steps = tuple(f"join {name}" for name in names)
    layout = f"no shuffle: {names[0]} stays in place, all other inputs are broadcast"
    block = BlockReport(" join ".join(names), "static", None, steps, record, layout, names)
    return RoutingReport((block,))


def away() -> RoutingReport:
    """Rows that were looked up, and functions called, where the driver is."""
    asked = (
        AskedTable("weather", 5_170, 5_214, 44, 32, (("HTTP service at <b>", 5_170),)),
        AskedTable("aircraft(tail)", 800, 800, 0, 8, (("register", 612), ("database", 188))),
    )
    called = (
        CalledFunction(
            "is_spam<b>",
            1_200,
            1_203,
            0,
            96.5,
            2.4,
            "USD",
            refusals=9,
            waited=4.5,
            waits=((START + 1.0, START + 2.5), (START + 4.0, START + 7.0)),
        ),
        CalledFunction("never", 0, 0, 0, 0.0),
    )
    return RoutingReport(joined().blocks, (), called, asked)


def waiting() -> RoutingReport:
    """A block for whose rows large inputs have waited, in every way in which that may end."""
    (block,) = drifting().blocks
    measured = tuple(
        MeasuredInput(f"input_{number}", rows, 40 * (rows or 1_000), joined, waited)
        for number, (rows, joined, waited) in enumerate(
            [
                (1_513, JoinedBy.BROADCAST, 0.84),
                (2_500_000, JoinedBy.SHUFFLED, 12.5),
                (None, JoinedBy.OTHER_BROADCAST, None),
                (0, JoinedBy.NOT_AT_ALL, 13.0),
            ]
        )
    )
    return RoutingReport((replace(block, measured=measured),))


def sections_of(report: RoutingReport) -> ReportSections:
    """What a report says, before it is text or a page."""
    return report_sections(report.blocks, report.left, report.called, report.asked)


SAMPLES: dict[str, Callable[[], RoutingReport]] = {
    "drifting": drifting,
    "many-orders": many_orders,
    "long-names": long_names,
    "not-run": not_run,
    "nothing": nothing,
    "joined": joined,
    "broadcast": broadcast,
    "away": away,
    "waiting": waiting,
}


if __name__ == "__main__":
    for name, sample in SAMPLES.items():
        sample().to_html(Path(sys.argv[1]) / f"{name}.html")
