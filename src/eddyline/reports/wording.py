"""How the report spells numbers, times, orders, changes and the texts of predicates."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.records import OTHER_ORDERS, Change, Order

NOTHING = "-"
"""Stands where a figure does not exist, such as the selectivity of no rows."""

JAVA_CALLER = " at NativeMethodAccessorImpl.java:0"
"""What Spark says of an action where PySpark does not tell it who has called."""

_MANY_PREDICATES = 5  # an order of more predicates is spelled without blanks, to stay readable
_SHORT_LABEL = 2  # letters; longer ones need the blanks
_KIBI = 1024

_THOUSAND = 1000
_SIX_DIGITS = 100_000  # up to here a count takes no more room in full than shortened
_MINUTE = 60
_TWO_MINUTES = 2 * _MINUTE
_TWO_HOURS = 120 * _MINUTE


def count(number: int) -> str:
    """Spell a count in full.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """Spell a count with what is counted.

    >>> counted(1, "row"), counted(2_000, "row"), counted(0, "query", "queries")
    ('1 row', '2,000 rows', '0 queries')
    """
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def brief_count(number: float, one: str) -> str:
    """Spell a count as :func:`compact` does, with what is counted.

    >>> brief_count(1, "call"), brief_count(2_500_000, "call")
    ('1 call', '2.50M calls')
    """
    return f"{compact(number)} {one}{'' if number == 1 else 's'}"


def compact(number: float) -> str:
    """Spell a count in at most six characters, with three significant digits.

    >>> compact(99_999), compact(123_456), compact(2_500_000), compact(7_640_000_000)
    ('99,999', '123k', '2.50M', '7.64B')
    """
    if number < _SIX_DIGITS:
        return f"{number:,.0f}"
    value, suffix = number / _THOUSAND, "k"
    for wider in "MBT":
        if value < _THOUSAND - 0.5:
            break
        value, suffix = value / _THOUSAND, wider
    return f"{_three_digits(value)}{suffix}"


def percent(part: float, whole: float) -> str:
    """Spell a share, never rounded to nothing or to all.

    >>> percent(1, 3), percent(1, 10**6), percent(999_999, 10**6), percent(0, 7), percent(0, 0)
    ('33.3 %', '<0.1 %', '>99.9 %', '0 %', '-')
    """
    if not whole:
        return NOTHING
    share = 100 * part / whole
    if part in (0, whole):
        return f"{share:.0f} %"
    if 0 < share < 0.05:  # noqa: PLR2004  (what would be rounded to 0.0)
        return "<0.1 %"
    if 99.95 <= share < 100:  # noqa: PLR2004  (what would be rounded to 100.0)
        return ">99.9 %"
    return f"{share:.1f} %"


def duration(seconds: float) -> str:
    """Spell a time in the unit that suits it.

    >>> duration(12.34e-6), duration(0.0051), duration(41.23), duration(725), duration(11_520)
    ('12.3 us', '5.10 ms', '41.2 s', '12 min 5 s', '3 h 12 min')
    """
    if not isfinite(seconds):
        return NOTHING
    if seconds >= _TWO_HOURS:
        minutes = round(seconds / _MINUTE)
        return f"{minutes // _MINUTE:,} h {minutes % _MINUTE} min"
    if seconds >= _TWO_MINUTES:
        whole = round(seconds)
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds * 1e9)} ns" if seconds else "0 s"


def order_name(order: Order, arrow: str = "->", labels: Sequence[str] = ()) -> str:
    """Spell an order by the numbers of its predicates, counted from 1, or by other labels.

    >>> order_name((1, 0, 2)), order_name((5, 0, 1, 2, 3, 4)), order_name(())
    ('2 -> 1 -> 3', '6->1->2->3->4->5', 'other orders')
    >>> order_name((1, 0, 2), labels=("1", "flights", "planes"))
    'flights -> 1 -> planes'
    """
    if order == OTHER_ORDERS:
        return "other orders"
    names = [labels[step] if step < len(labels) else str(step + 1) for step in order]
    wide = len(names) <= _MANY_PREDICATES or any(len(name) > _SHORT_LABEL for name in names)
    return (f" {arrow} " if wide else arrow).join(names)


def size(number: float) -> str:
    """Spell a number of bytes.

    >>> size(0), size(900), size(331_968), size(5 * 2**30)
    ('0 B', '900 B', '324 KiB', '5.00 GiB')
    """
    if number < _KIBI:
        return f"{number:.0f} B"
    unit = "B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):  # noqa: B007 - the last one is used below
        number /= _KIBI
        if number < _KIBI - 0.5:
            break
    return f"{_three_digits(number)} {unit}"


def ratio(value: float | None) -> str:
    """Spell how many times something is.

    >>> ratio(1.0), ratio(12.34), ratio(None)
    ('1.00', '12.3', '-')
    """
    return NOTHING if value is None else _three_digits(value)


def change_text(change: Change, arrow: str = "->") -> str:
    """Say what changed, without when.

    >>> change_text(Change(0.0, 1, ChangedQuantity.SELECTIVITY, 0.12, 0.801))
    'predicate 2: selectivity 12.0 % -> 80.1 %'
    """
    old, new = (_quantity(change, value) for value in (change.old, change.new))
    return f"predicate {change.predicate + 1}: {change.quantity} {old} {arrow} {new}"


def one_line(text: str) -> str:
    r"""Turn line ends, runs of blanks and what cannot be printed into single blanks.

    >>> one_line("score(text)\n   > 0.5 \x1b[31m")
    'score(text) > 0.5 [31m'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def shortened(text: str, limit: int) -> str:
    """Cut a text to at most ``limit`` characters, with an ellipsis where it was cut.

    >>> shortened("is_spam(subject, body)", 12)
    'is_spam(sub…'
    """
    text = one_line(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _quantity(change: Change, value: float) -> str:
    selectivity = change.quantity is ChangedQuantity.SELECTIVITY
    return percent(value, 1.0) if selectivity else duration(value)


def _three_digits(value: float) -> str:
    if value < 9.995:  # noqa: PLR2004  (rounds to 9.99)
        return f"{value:.2f}"
    if value < 99.95:  # noqa: PLR2004  (rounds to 99.9)
        return f"{value:.1f}"
    return f"{value:,.0f}"
