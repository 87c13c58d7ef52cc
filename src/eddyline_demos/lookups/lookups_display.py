"""What the demo of lookups shows: the question, who answered, and requests beside by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from eddyline.asking.shared_statistics import SharedLookupStatistics
from eddyline.reports.terminal_tables import FittingTable
from eddyline.reports.wording import count, duration, percent
from eddyline_demos.lookups.beside_by_hand import LookupWay, Trial
from eddyline_demos.lookups.questions import QUESTION, STRONG, WATCHED
from eddyline_demos.lookups.running import LATENCY, LIMIT, RequestsSeen, Rest


def introduction(flights: int) -> RenderableType:
    """Return the question, its query, and who is asked."""
    query = Syntax(
        WATCHED.strip(), "sql", theme="ansi_dark", background_color="default", word_wrap=True
    )
    return Group(
        Text(QUESTION, style="bold"),
        Text(f"Asked of {count(flights)} real flights that left New York City in 2013:"),
        Padding(query, (1, 2)),
        Text(
            "Neither weather nor aircraft is a table here. The weather is an HTTP service; the "
            "aircraft are in a register, another HTTP service, and in an SQLite file, which "
            "compete for the keys. The services run on 127.0.0.1, "
            f"take {LATENCY * 1000:.0f} ms for an answer and {LIMIT} requests at a time."
        ),
    )


def competition(asked: SharedLookupStatistics, seen: RequestsSeen, rest: Rest) -> RenderableType:
    """Return how many keys both registers were asked for; the HTTP one, the first, has ``seen``."""
    (_, http), (_, file) = asked.by_source
    table = FittingTable(["Aircraft asked for"], ["Keys", "Share", "Requests"])
    table.add_row("HTTP register", count(http), percent(http, http + file), count(seen.requests))
    table.add_row("SQLite file", count(file), percent(file, http + file), "")
    if seen.requests < rest.after:
        return table
    pause = f"{rest.seconds:g} s"
    said = f"After {count(rest.after)} requests the register answered nobody for {pause}."
    if twice := http + file - asked.keys:
        said += f" {count(twice)} keys were asked of both: what is overdue is asked of the other."
    return Group(table, Text(), Text(said))


def contest(flights: int) -> RenderableType:
    """Return what is compared."""
    return Group(
        Text("And by hand?", style="bold"),
        Text(
            f"The first {count(flights)} of these flights with wind above {STRONG} and their "
            "aircraft, from the two HTTP services alone. By hand that is a Python function "
            "that asks for each row, with httpx and an lru_cache in each worker process."
        ),
    )


def outcome(trials: Sequence[Trial]) -> RenderableType:
    """Return requests and times of each way, and what they say."""
    last = _last_trials(trials)
    table = FittingTable(["Joined by"], [*_TIMES, *_COUNTS])
    for way in LookupWay:
        own = [each for each in trials if each.way is way]
        times = (duration(median(map(seconds, own))) for seconds in _TIMES.values())
        table.add_row(_NAMES[way], *times, *(told(last[way]) for told in _COUNTS.values()))
    rows = sum(trials[0].rows.values())
    return Group(table, Text(), _verdict(trials, rows))


def _verdict(trials: Sequence[Trial], rows: int) -> Text:
    factor = _seconds(trials, LookupWay.BY_HAND) / _seconds(trials, LookupWay.ADAPTED)
    if factor >= 1:
        verdict = (f"eddyline.adapt was {factor:.1f} times as fast", "bold green")
    else:
        verdict = (f"By hand was {1 / factor:.1f} times as fast", "bold")
    last = _last_trials(trials)
    more = _keys(last[LookupWay.ADAPTED]) - _keys(last[LookupWay.BY_HAND])
    early = (
        ""
        if more <= 0
        else (
            f"It asked for {count(more)} aircraft that nobody needed: it had calls to spare, and "
            "did not wait for the weather. "
        )
    )
    return Text.assemble(
        verdict,
        f", with the same {count(rows)} rows in every run. {early}collect() gives the first row "
        "with the last; eddyline.watch gives it as it comes.",
    )


def _last_trials(trials: Sequence[Trial]) -> dict[LookupWay, Trial]:
    return {way: next(each for each in reversed(trials) if each.way is way) for way in LookupWay}


def _seconds(trials: Sequence[Trial], way: LookupWay) -> float:
    return median(each.seconds for each in trials if each.way is way)


def requests(trial: Trial) -> int:
    """Return the requests of both services, by their own logs."""
    return trial.weather.requests + trial.register.requests


def _keys(trial: Trial) -> int:
    return trial.weather.keys + trial.register.keys


_NAMES = {
    LookupWay.WATCHED: "eddyline.watch",
    LookupWay.ADAPTED: "eddyline.adapt",
    LookupWay.BY_HAND: "hand",
}

_TIMES: dict[str, Callable[[Trial], float]] = {
    "First row": lambda trial: trial.first,
    "All rows": lambda trial: trial.seconds,
}

_COUNTS: dict[str, Callable[[Trial], str]] = {
    "Weather asked": lambda trial: count(trial.weather.requests),
    "Register asked": lambda trial: count(trial.register.requests),
    "Keys": lambda trial: count(_keys(trial)),
    "Requests a key": lambda trial: f"{requests(trial) / max(_keys(trial), 1):.2f}",
}
