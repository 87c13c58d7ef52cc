"""``make bench ARGS=forecast``: what queries call and pay, beside what was forecast of that.

Twenty generated workloads, each with at least 20,000 rows: their price is asked for, then they
run. The functions count what they are called for.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import eddyline
from bench.forecast.workloads import Workload, workloads
from eddyline.reports.expected import NONE_AT_ALL, Expected

NEAR = 0.15
"""Part of the actual figure by which a forecast may be off."""

OF_ALL = 0.9
"""Part of the workloads that have to be near, and inside their intervals."""


def cell(expected: Expected) -> str:
    """Spell a forecast."""
    return f"{expected.likely:,.0f} ({expected.low:,.0f} to {expected.high:,.0f})"


def off(expected: Expected, actual: float) -> float:
    """Return by which part of the actual figure a forecast is off."""
    return abs(expected.likely - actual) / actual if actual else float(expected.likely > 0)


def main(arguments: Sequence[str]) -> int:
    """Compare forecasts with what happens; 1 where too many are off."""
    parser = argparse.ArgumentParser(prog="bench forecast", description=__doc__)
    parser.add_argument("--only", help="workloads with this in their names")
    chosen = parser.parse_args(arguments)
    console = Console(width=150)
    spark = eddyline.session("forecast", master="local[2]")
    table = Table("Workload", "Calls forecast", "Calls", "Off", "USD forecast", "USD", "Off")
    for name in ("Asked", "Seconds"):
        table.add_column(name, justify="right")
    near = inside = count = 0
    with tempfile.TemporaryDirectory(prefix="eddyline-forecast-") as folder:
        for workload in workloads(spark, Path(folder)):
            if chosen.only and chosen.only not in workload.name:
                continue
            is_near, is_inside = _run(workload, table)
            near, inside, count = near + is_near, inside + is_inside, count + 1
            console.print(f"{count:>3} {workload.name}", highlight=False)
    console.print(table)
    console.print(
        f"Within {NEAR:.0%}, calls and money of each function: {near} of {count}; "
        f"inside the interval of 95 %: {inside} of {count}",
        highlight=False,
    )
    spark.stop()
    return 0 if min(near, inside) >= OF_ALL * count else 1


def _run(workload: Workload, table: Table) -> tuple[bool, bool]:
    """Forecast and run; tell whether that was near, and inside the intervals."""
    workload.before()
    for service in workload.services:
        service.begin()
    began = time.perf_counter()
    forecast = eddyline.explain(workload.query, price=workload.calls).forecast
    took = time.perf_counter() - began
    if forecast is None or forecast.missing:
        raise AssertionError(f"{workload.name}: {forecast}")
    asked = sum(service.calls for service in workload.services)
    for service in workload.services:
        service.begin()
    eddyline.adapt(workload.query).collect()
    offs: list[float] = []
    holds: list[bool] = []
    for service in workload.services:
        of = next(each for each in forecast.functions if each.function.startswith(service.name))
        money = of.money or NONE_AT_ALL
        offs += [off(of.calls, service.calls), off(money, service.spent)]
        holds += [of.calls.holds(service.calls), money.holds(service.spent)]
        first = service is workload.services[0]
        table.add_row(
            workload.name if first else "",
            cell(of.calls),
            f"{service.calls:,}{'' if holds[-2] else ' !'}",
            f"{offs[-2]:.1%}",
            f"{money.likely:,.4g} ({money.low:,.4g} to {money.high:,.4g})",
            f"{service.spent:,.4g}{'' if holds[-1] else ' !'}",
            f"{offs[-1]:.1%}",
            f"{asked:,}" if first else "",
            f"{took:.1f}" if first else "",
        )
    return max(offs) <= NEAR, all(holds)
