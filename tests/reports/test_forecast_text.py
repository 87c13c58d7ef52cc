"""Forecasts as people and programs read them."""

from __future__ import annotations

import json

import pytest

from eddyline.reports.expected import Expected, exactly
from eddyline.reports.forecast import CallForecast, Forecast, Measured, hours

SCORE = CallForecast(
    "score(text)",
    Expected(11_800, 12_400, 13_000),
    Expected(17_000, 17_200, 17_400),
    40_000,
    known=0.25,
    money=Expected(23.6, 24.8, 26.0),
    unit="USD",
    budget=25.0,
    seconds=Expected(5_900, 6_200, 6_500),
    limit="at 2 calls a second",
    measured=Measured(4_000, 9_300, 8, 0.016, kept=True),
)


def test_a_forecast_says_what_it_was_measured_on() -> None:
    assert str(Forecast((SCORE,), ("other: it is made by a join",))) == (
        "score(text): 12,400 calls (11,800 to 13,000), 24.8 USD (23.6 to 26)\n"
        "  1.72 h (1.64 to 1.81) at 2 calls a second\n"
        "  of about 17,200 distinct arguments in 40,000 rows; 25 % of those needed are kept\n"
        "  measured on 4,000 arguments in 9,300 rows, with 8 calls for 0.016 USD, whose answers "
        "are kept\n"
        "  the budget of 25 USD may not suffice\n"
        "No forecast: other: it is made by a join"
    )


def test_nothing_to_ask_is_said() -> None:
    assert str(Forecast(())) == "Nothing is asked at the driver."
    assert Forecast(()).calls == exactly(0)
    assert Forecast(()).money == exactly(0)
    assert Forecast(()).seconds is None


def test_sums_are_of_all_functions() -> None:
    tokens = CallForecast("count(text)", exactly(100), exactly(100), 100, seconds=exactly(3.0))
    both = Forecast((SCORE, tokens))
    assert both.calls == Expected(11_900, 12_500, 13_100)
    assert both.money == SCORE.money
    assert both.seconds == SCORE.seconds
    assert "In all: 12,500 calls (11,900 to 13,100), 24.8 USD (23.6 to 26), 1.72 h" in str(both)


def test_money_of_two_units_is_not_added() -> None:
    euros = CallForecast("a", exactly(1), exactly(1), 1, money=exactly(2.0), unit="EUR")
    both = Forecast((SCORE, euros))
    assert both.costs == {"USD": SCORE.money, "EUR": exactly(2.0)}
    with pytest.raises(ValueError, match="USD and EUR"):
        _ = both.money


def test_a_forecast_is_plain_data() -> None:
    plain = json.loads(json.dumps(Forecast((SCORE,), ("why",)).to_dict()))
    assert plain["calls"] == {"low": 11_800, "likely": 12_400, "high": 13_000}
    assert plain["costs"]["USD"]["likely"] == 24.8
    assert plain["functions"][0]["measured"]["keys"] == 4_000
    assert plain["missing"] == ["why"]


def test_the_slower_of_two_limits_counts() -> None:
    calls = Expected(900, 1_000, 1_100)
    assert hours(calls, None, 10, exactly(2.0))[0] == Expected(180, 200, 220)
    assert hours(calls, 100.0, 10, exactly(2.0))[1].startswith("with 10 calls at a time of 2 s")
    assert hours(calls, 1.0, 10, exactly(2.0)) == (calls, "at 1 call a second")
    assert hours(calls, None, 10, None) == (None, "")
