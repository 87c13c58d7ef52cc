"""``eddyline demo lookups``: what it shows is what its services saw, and nothing is left of it."""

from __future__ import annotations

import io
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import eddyline
from eddyline_demos.lookups import beside_by_hand as comparison
from eddyline_demos.lookups import lookups_demo as program
from eddyline_demos.lookups import running
from eddyline_demos.lookups.beside_by_hand import LookupWay, Trial, differing
from eddyline_demos.lookups.by_hand import joined_by_hand
from eddyline_demos.lookups.lookups_display import outcome
from eddyline_demos.lookups.questions import COUNTED, STRONG, register_tables
from eddyline_demos.lookups.running import RequestsSeen, Rest, Services, running_services
from eddyline_demos.lookups.tables_and_services import create_views, read_data, write_register
from tests.app.conftest import Run

SAMPLE = 40
WEATHER = {"/weather/JFK/1/1/5": {"wind_speed": 20.0}}
AIRCRAFT = {"/aircraft/N1": {"tailnum": "N1", "seats": 7}}


def numbers_after(words: str, text: str) -> list[float]:
    """Numbers in the row of a table that starts with these words, without their units."""
    line = next(line for line in text.splitlines() if line.startswith(f"{words}  "))
    texts = re.findall(r"\d[\d,]*(?:\.\d+)?", line.removeprefix(words))
    return [float(text.replace(",", "")) for text in texts]


def status_of(url: str) -> int:
    return httpx.get(url).status_code


def test_what_is_shown_is_what_the_services_saw(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[RequestsSeen, RequestsSeen]] = []
    started: list[subprocess.Popen[str]] = []
    ask, end = Services.seen, running._end

    def noted(services: Services) -> tuple[RequestsSeen, RequestsSeen]:
        seen.append(ask(services))
        return seen[-1]

    def ended(process: subprocess.Popen[str]) -> None:
        end(process)
        started.append(process)

    monkeypatch.setattr(Services, "seen", noted)
    monkeypatch.setattr(running, "_end", ended)
    monkeypatch.setattr(program, "REST", Rest(3, 0.5))
    monkeypatch.setattr(program, "UNITS", 4)
    monkeypatch.setattr(program, "WATCHED_TIMES", 3)
    # They are uncounted, and take as long as what is counted here.
    monkeypatch.setattr(program, "warm_up", lambda *_: None)
    answer = run("demo", "lookups", "--sample", str(SAMPLE))
    assert answer.code == 0
    assert answer.err == ""

    (_, register), *trials = seen
    assert "After 3 requests the register answered nobody for 0.5 s." in answer.out
    http = numbers_after("HTTP register", answer.out)
    file = numbers_after("SQLite file", answer.out)
    assert http[2] == register.requests >= 3
    assert http[1] + file[1] == pytest.approx(100, abs=0.2)

    assert len(trials) == len(LookupWay)
    for name, (weather, aircraft) in zip(
        ("eddyline.watch", "eddyline.adapt", "hand"), trials, strict=True
    ):
        numbers = [weather.requests, aircraft.requests, weather.keys + aircraft.keys]
        assert numbers_after(name, answer.out)[2:5] == numbers
    for weather, aircraft in trials[:2]:  # Eddyline's
        assert (weather.requests, aircraft.requests) == (weather.keys, aircraft.keys)

    data = read_data(SAMPLE)
    windy = windy_flights(SAMPLE)
    assert f"the same {len(windy)} rows in every run" in answer.out
    assert f"The first {SAMPLE} of these flights" in answer.out
    assert f"Asked of {data.flights.num_rows * program.WATCHED_TIMES} real flights" in answer.out
    watched = windy_flights(SAMPLE * program.WATCHED_TIMES)
    assert http[0] + file[0] >= len({tailnum for _, _, _, tailnum, *_ in watched})
    delta = sum(carrier == "DL" for carrier, *_ in watched)
    assert numbers_after("Delta Air Lines", answer.out)[0] == delta

    assert len(started) == 1 + len(LookupWay)
    assert [process.returncode for process in started] == [0] * len(started)
    assert "\x1b" not in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100
    assert not any(line != line.rstrip() for line in answer.out.splitlines())


def windy_flights(sample: int) -> list[tuple[object, ...]]:
    """The rows of the query, from the data themselves."""
    data = read_data(sample)
    found = []
    for row in data.flights.to_pylist():
        weather = data.weather.get("/weather/{origin}/{month}/{day}/{hour}".format(**row))
        aircraft = data.aircraft.get(f"/aircraft/{row['tailnum']}")
        wind = weather["wind_speed"] if weather else None
        if wind is not None and wind > STRONG and aircraft:
            flight = [row[name] for name in ("carrier", "flight", "dest", "tailnum")]
            found.append((*flight, wind, aircraft["seats"]))
    return found


def test_by_hand_and_eddyline_have_the_rows_of_the_data(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    data = read_data(SAMPLE)
    create_views(session, data, tmp_path / "views")
    with running_services(data.weather, data.aircraft) as services:
        register_tables(session, services)
        by_hand = joined_by_hand(session.table("flights"), services).collect()
        adapted = eddyline.adapt(session.sql(COUNTED)).collect()
    expected = Counter(windy_flights(SAMPLE))
    assert Counter(map(tuple, by_hand)) == Counter(map(tuple, adapted)) == expected
    assert 0 < len(by_hand) < SAMPLE


def test_the_file_has_what_the_register_answers(tmp_path: Path) -> None:
    data = read_data(1)
    write_register(data, tmp_path / "aircraft.db")
    with closing(sqlite3.connect(tmp_path / "aircraft.db")) as database:
        rows = database.execute("SELECT tailnum, manufacturer, seats FROM aircraft").fetchall()
    assert Counter(rows) == Counter(tuple(row.values()) for row in data.aircraft.values())


def test_services_count_what_they_are_asked() -> None:
    with running_services(WEATHER, AIRCRAFT) as services:
        assert status_of(services.weather + "/weather/JFK/1/1/5") == 200
        assert status_of(services.register + "/aircraft/N1") == 200
        assert status_of(services.register + "/aircraft/N1") == 200
        assert status_of(services.register + "/aircraft/N2") == 404
        assert services.seen() == (RequestsSeen(1, 1, 0), RequestsSeen(3, 2, 0))


def test_more_requests_at_a_time_than_the_limit_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "LIMIT", 0)
    with running_services(WEATHER, AIRCRAFT) as services:
        assert status_of(services.weather + "/weather/JFK/1/1/5") == 429
        assert services.seen()[0] == RequestsSeen(0, 0, 1)


def test_services_end_with_whoever_started_them() -> None:
    code = (
        "import os, signal\n"
        "from eddyline_demos.lookups import running\n"
        "with running.running_services({}, {}) as services:\n"
        "    print(services.weather, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    url = ended.stdout.strip()
    for _ in range(1000):
        try:
            httpx.get(url + "/log", timeout=1)
        except httpx.TransportError:
            return
    pytest.fail(f"{url} still answers")


def test_services_that_cannot_start_say_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "dumps", lambda _: '[{"answers": {}, "unknown": 1}]')
    answer = run("demo", "lookups", "--sample", "1")
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert "the services of the demo cannot be started: TypeError" in answer.err


def test_without_the_extra_one_line_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HttpLookup", "SqlLookup"):
        monkeypatch.delitem(vars(eddyline), name, raising=False)
    monkeypatch.delitem(sys.modules, "eddyline.asking.http_lookup", raising=False)
    monkeypatch.setitem(sys.modules, "jmespath", None)
    answer = run("demo", "lookups")
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err == (
        'eddyline: error: the demo of lookups needs jmespath: pip install "eddyline[lookups]"\n'
    )


def test_rows_that_differ_are_a_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def trial(_spark: object, _data: object, way: LookupWay) -> Trial:
        return Trial(way, Counter([(way,)]), 1.0, 1.0, RequestsSeen(1, 1, 0), RequestsSeen(1, 1, 0))

    monkeypatch.setattr(comparison, "try_out", trial)
    monkeypatch.setattr(program, "warm_up", lambda *_: None)
    monkeypatch.setattr(program, "_watch", lambda *_: None)
    answer = run("demo", "lookups", "--sample", "5")
    assert answer.code == 1
    assert answer.err == (
        "eddyline: error: the rows differ. This is a defect of Eddyline; please report it\n"
    )
    assert "times as fast" not in answer.out


def test_rows_are_compared_as_multisets() -> None:
    seen = RequestsSeen(1, 1, 0)
    one = Trial(LookupWay.WATCHED, Counter([(1,), (1,)]), 1.0, 1.0, seen, seen)
    assert not differing([one, replace(one, way=LookupWay.BY_HAND)])
    assert differing([one, replace(one, rows=Counter([(1,)]))])


@pytest.mark.parametrize(
    ("adapted", "by_hand", "sentence"),
    [
        (2.0, 5.0, "eddyline.adapt was 2.5 times as fast, with the same 3 rows"),
        (4.0, 1.0, "By hand was 4.0 times as fast, with the same 3 rows"),
    ],
)
def test_the_verdict_names_the_faster(adapted: float, by_hand: float, sentence: str) -> None:
    seen = RequestsSeen(1, 1, 0)
    seconds = {LookupWay.WATCHED: 1.0, LookupWay.ADAPTED: adapted, LookupWay.BY_HAND: by_hand}
    rows: Counter[tuple[object, ...]] = Counter({(1,): 3})
    trials = [Trial(way, rows, time, time, seen, seen) for way, time in seconds.items()]
    screen = io.StringIO()
    Console(file=screen, width=100).print(outcome(trials))
    assert sentence in screen.getvalue()
