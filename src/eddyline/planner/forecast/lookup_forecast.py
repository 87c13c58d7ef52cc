"""What a query will ask for a lookup table: by a sample of the keys that there may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from pyspark.sql import SparkSession

from eddyline.asking.access_method import AccessMethod
from eddyline.catalyst import Plan
from eddyline.planner.declare.lookup_tables import LookupTables
from eddyline.planner.forecast.growing_sample import as_large_as_pays
from eddyline.planner.forecast.lookup_keys import LookupSurveys, LookupUse, lookup_uses
from eddyline.planner.forecast.paid_blocks import UnreadBlock
from eddyline.planner.forecast.surveys import FAILURES, SampledArguments, first_line
from eddyline.planner.rewrite.block_walk import TableOf
from eddyline.reports.expected import Expected, exactly, product, share
from eddyline.reports.forecast import CallForecast, Measured, hours

PROBES: Final = 8
"""Keys that are looked up to learn what a request takes."""

EARLY: Final = 256
"""Keys that may be looked up before a predicate in Python would have dropped their rows.

The eddy of a join sends its first tuples anywhere, to learn what that costs: all of 200 rows were
looked up, and 7 of 4,000.
"""


def lookups_in(
    spark: SparkSession,
    plan: Plan,
    table_of: TableOf,
    tables: LookupTables,
    job: str,
    salt: int,
    time_zone: str,
    calls: int,
) -> tuple[list[CallForecast], list[str]]:
    """Return what the lookup tables of a plan will be asked for, and of which that is not known.

    The plan is that of before it was rewritten. Up to ``calls`` keys of a table are looked up.
    """
    found = list(lookup_uses(plan, table_of))
    missing = [f"{' and '.join(use.names)}: {use.why}" for use in _unread(found)]
    uses = [use for use in found if isinstance(use, LookupUse)]
    often = Counter(use.way.name for use in uses)
    forecasts = []
    for use in uses:
        if often[use.way.name] > 1:
            missing.append(f"{use.table.name}: it stands in several joins, which share its keys")
            continue
        surveys = LookupSurveys(spark, use, salt, time_zone)
        try:
            forecasts.append(_forecast(surveys, tables, job, calls))
        except FAILURES as error:
            missing.append(f"{use.table.name}: {first_line(error)}")
    return forecasts, list(dict.fromkeys(missing))


def _unread(found: Iterable[LookupUse | UnreadBlock]) -> list[UnreadBlock]:
    return [use for use in found if isinstance(use, UnreadBlock)]


def _forecast(surveys: LookupSurveys, tables: LookupTables, job: str, most: int) -> CallForecast:
    use = surveys.use
    counted = surveys.counted()
    part, (among, sample) = as_large_as_pays(counted, most, surveys.sampled, lambda taken: taken[0])
    whole = exactly(float(among)) if part.part >= 1.0 else counted.arguments
    method = tables.method(use.way.name)
    kept = getattr(method, "kept", None)
    values = sample.values(range(len(sample)))
    known = [False] * len(values) if kept is None else kept.known(values)
    open_ = [place for place, there in enumerate(known) if not there]
    calls = product(whole, share(len(open_), among, whole.likely))
    if use.base is not use.rows:
        calls = Expected(calls.low, calls.likely, min(calls.high + EARLY, whole.high))
    rate = method.limits.rate if isinstance(method, AccessMethod) else None
    made, seconds = _probed(tables, job, use, sample, open_[: min(PROBES, most)], rate)
    if kept is not None:
        calls = Expected(*(max(0.0, end - made) for end in (calls.low, calls.likely, calls.high)))
    requests = calls.times(1 / max(1, use.way.keys_per_call))
    took, limit = hours(requests, rate, use.way.width, seconds)
    price = use.way.price
    asked = tables.server.totals(job).get(use.way.name) if made else None
    spent = 0.0 if asked is None else asked.spent
    return CallForecast(
        use.text,
        calls,
        whole,
        counted.rows,
        sum(known) / len(known) if known else 0.0,
        money=requests.times(price.of(())) if price.known else None,
        unit=price.unit,
        seconds=took,
        limit=limit,
        measured=Measured(among, int(sample.rows.sum()), made, spent, kept is not None),
    )


def _probed(
    tables: LookupTables,
    job: str,
    use: LookupUse,
    sample: SampledArguments,
    places: list[int],
    rate: float | None,
) -> tuple[int, Expected | None]:
    """Look some keys up; return for how many that was done, and the seconds of a request."""
    if not places:
        return 0, None
    name, server = use.way.name, tables.server
    values = sample.values(places)
    server.ask(job, name, values[:1])  # which may open a connection
    before = server.totals(job)[name].calls
    found = server.ask(job, name, values[1:])
    took = [each.seconds for each in found if not isinstance(each, BaseException)]
    requests = server.totals(job)[name].calls - before
    if rate is not None and requests == len(took) > 0:  # all but the first waited for their turn
        return len(places), exactly(min(took))
    seconds = sum(took)
    return len(places), exactly(seconds / requests) if requests and seconds else None
