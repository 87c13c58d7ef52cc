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
from eddyline.reports.block_report import BlockReport
from eddyline.reports.merging import merge
from eddyline.reports.records import (
    Change,
    FunctionRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    TaskRecord,
)
from eddyline.reports.routing_report import RoutingReport

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


def not_run() -> RoutingReport:
    """Two blocks: no action on the first yet, no rows in the second."""
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


SAMPLES: dict[str, Callable[[], RoutingReport]] = {
    "drifting": drifting,
    "many-orders": many_orders,
    "not-run": not_run,
    "nothing": nothing,
}


if __name__ == "__main__":
    for name, sample in SAMPLES.items():
        sample().to_html(Path(sys.argv[1]) / f"{name}.html")
