"""Numbers and texts are spelled so that they fit and mean what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.records import Change
from eddyline.reports.wording import (
    change_text,
    compact,
    count,
    duration,
    one_line,
    order_name,
    percent,
    shortened,
)


@given(st.integers(0, 10**14))
def test_compact_counts_are_short_and_right(number: int) -> None:
    text = compact(number)
    assert len(text) <= 6
    factors = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    value = float(text.rstrip("kMBT").replace(",", "")) * factors.get(text[-1], 1.0)
    assert value == pytest.approx(number, rel=0.006)


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_only_nothing_is_0_percent_and_only_all_is_100(part: int, whole: int) -> None:
    part = min(part, whole)
    text = percent(part, whole)
    assert (text == "0 %") == (part == 0)
    assert (text == "100 %") == (part == whole)
    assert text not in ("0.0 %", "100.0 %")


def test_more_than_all_is_said_plainly() -> None:
    assert percent(3, 2) == "150.0 %"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (3e-9, "3.00 ns"),
        (999.6e-6, "1000 us"),
        (0.25, "250 ms"),
        (1.0, "1.00 s"),
        (119.0, "119 s"),
        (120.0, "2 min 0 s"),
        (7199.9, "120 min 0 s"),
        (7200.0, "2 h 0 min"),
        (3.6e6, "1,000 h 0 min"),
        (float("inf"), "-"),
        (float("nan"), "-"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    assert duration(seconds).replace(",", "") == text.replace(",", "")


def test_orders_count_from_one() -> None:
    assert order_name((1, 0, 2), "→") == "2 → 1 → 3"
    assert order_name((0,)) == "1"


def test_changes() -> None:
    change = Change(0.0, 2, ChangedQuantity.COST, 0.0, 5e-6)
    assert change_text(change, "→") == "predicate 3: cost 0 s → 5.00 us"


@given(st.text(), st.integers(1, 40))
def test_shortened_texts_fit_on_one_line(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert short.isprintable()
    whole = one_line(text)
    assert short == whole or (short.endswith("…") and whole.startswith(short[:-1]))


def test_control_signs_do_not_reach_the_terminal() -> None:
    assert one_line("a\x1b[2Jb\r\n\tc\u202ed") == "a [2Jb c d"


def test_counts_in_full() -> None:
    assert count(12_345_678) == "12,345,678"
