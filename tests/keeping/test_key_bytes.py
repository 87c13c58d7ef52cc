"""Keys: one for what a function cannot tell apart, and another for all else."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.wire import frozen
from eddyline.keeping.key_bytes import DIGEST, encoded, key_of
from tests.properties import examples

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(),
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


@examples(300)
@given(VALUES, VALUES)
def test_keys_are_equal_where_values_and_types_are(one: object, other: object) -> None:
    same = _typed(frozen(one)) == _typed(frozen(other))
    assert (encoded(one) == encoded(other)) == same


@examples(100)
@given(st.lists(PLAIN, max_size=4))
def test_a_key_is_that_of_equal_values_made_anew(values: list[object]) -> None:
    again = [value.encode().decode() if _is_text(value) else value for value in values]  # type: ignore[attr-defined]
    assert key_of(values) == key_of(tuple(again))
    assert len(key_of(values)) == DIGEST


def test_what_looks_alike_and_is_not() -> None:
    values: list[object] = [
        *(1, 1.0, True, "1", b"1", Decimal(1), None, "", b"", [], [None], [[]], {}, "None"),
        *(0.0, -0.0, math.nan, math.inf, -math.inf, ["a", "b"], ["ab"], ["a", ["b"]]),
        *(dt.date(2026, 1, 1), dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),  # noqa: DTZ001
        *({"a": 1}, {"a": 2}, {"b": 1}, "\ud800", "x" * 100_000, "x" * 100_001),
    ]
    assert len({key_of([value]) for value in values}) == len(values)
    assert len({key_of(["a", "b"]), key_of(["ab"]), key_of(["a"]), key_of([])}) == 4


def test_a_moment_is_the_same_in_every_zone() -> None:
    there = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert key_of([there]) == key_of([there.astimezone(dt.UTC)])


def test_numbers_of_another_scale_are_the_same() -> None:
    assert key_of([Decimal("1.50")]) == key_of([Decimal("1.5")])
    assert key_of([Decimal("0.00")]) == key_of([Decimal("-0")])
    assert key_of([Decimal("1E+2")]) == key_of([Decimal(100)])
    long = Decimal(12345678901234567890123456789012345678)
    assert len({key_of([long]), key_of([long + 1]), key_of([-long]), key_of([long / 10])}) == 4


def test_keys_stay_what_they_are() -> None:
    """A change of the way they are made forgets all that anybody has paid for."""
    values = (1, "a", None, -0.0, Decimal("1.5"), dt.date(2026, 1, 1), [b"x"], {"k": True})
    assert key_of(values).hex() == "2f44de08694e94c38e897341b0948302"


def test_what_no_column_holds_has_no_key() -> None:
    with pytest.raises(TypeError, match="no key: object"):
        key_of([object()])


def _typed(value: object) -> object:
    """Return a value beside its type, as 1 equals TRUE."""
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    return type(value).__name__, value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any(0xD800 <= ord(letter) < 0xE000 for letter in value)
