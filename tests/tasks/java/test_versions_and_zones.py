"""What Java's versions and time zones change; what is expected here was printed by their JVMs."""

from __future__ import annotations

import datetime as dt

import pytest
import pytz

from eddyline.blocks.filter_block import JavaRuntime
from eddyline.tasks.java import Transfer, text_of

IN_NEW_YORK = JavaRuntime(
    zone="America/New_York", zone_text="offset=-18000000", zone_hash=1734991954
)


def told(value: object, version: int) -> str:
    return text_of(Transfer(JavaRuntime(version=version))(value), version)


@pytest.mark.parametrize(
    ("value", "by_17", "by_25"),
    [
        (
            [5e-324, 1e23, 5.097654563224752e18],
            "[4.9E-324, 9.999999999999999E22, 5.0976545632247521E18]",
            "[4.9E-324, 1.0E23, 5.097654563224752E18]",
        ),
        (  # a table for 24 entries has 64 places, or 32
            frozenset(range(0, 24 * 17, 17)),
            "0 19 4 23 8 12 16 1 20 5 9 13 17 2 21 6 10 14 18 3 22 7 11 15",
            "0 17 2 19 4 21 6 23 8 10 12 14 16 1 18 3 20 5 22 7 9 11 13 15",
        ),
        (
            {f"key {i}": None for i in range(24)},
            "20 19 18 15 14 17 16 11 10 13 12 4 3 2 1 8 7 6 5 9 22 0 21 23",
            "4 3 20 2 1 8 7 6 5 9 19 18 15 14 17 16 22 11 0 21 10 13 23 12",
        ),
    ],
)
def test_versions_of_java(value: object, by_17: str, by_25: str) -> None:
    for version, said in ((17, by_17), (18, by_17), (19, by_25), (25, by_25)):
        text = told(value, version)
        if isinstance(value, frozenset):
            text = " ".join(str(int(part) // 17) for part in text[1:-1].split(", "))
        if isinstance(value, dict):
            text = " ".join(part.split(" ")[1].split("=")[0] for part in text[1:-1].split(", "))
        assert text == said


def test_calendars_are_ordered_by_their_instants_in_the_jvms_zone() -> None:
    days: list[dt.date] = [dt.date(2020, 1, 1) + dt.timedelta(days=30 * i) for i in range(6)]
    days += [dt.date(1850, 6, 1), dt.date(1500, 3, 1)]  # before zones, and before Gregory
    days += [dt.datetime(2020, 11, 1, 1, 30), dt.datetime(2020, 3, 8, 2, 30)]  # noqa: DTZ001 - twice, never
    numbered = {day: place for place, day in enumerate(days)}
    for runtime, said in ((IN_NEW_YORK, "6217083594"), (JavaRuntime(), "4537629180")):
        table = Transfer(runtime)(numbered).table
        assert "".join(str(place) for _, place in table) == said


def test_another_zone_than_the_jvms_has_a_text_like_javas() -> None:
    noon = pytz.timezone("Europe/Paris").localize(dt.datetime(2020, 7, 2, 12))  # noqa: DTZ001
    text = told(noon, 17)
    assert 'ZoneInfo[id="Europe/Paris",offset=3600000,dstSavings=3600000,useDaylight=true,' in text
    assert "YEAR=2020,MONTH=6," in text
