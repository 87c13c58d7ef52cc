"""Texts of Java's floating-point numbers."""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

import numpy as np

SHORTEST_FROM: Final = 19
"""The version of Java from which a text has the fewest digits that tell a number apart."""

_FIRST_PLAIN: Final = 1e-3
_FIRST_WITH_EXPONENT: Final = 1e7


def double_text(value: float, version: int) -> str:
    """Return ``Double.toString(value)`` of a version of Java.

    >>> [double_text(number, 21) for number in (1.0, 1e7, -1.25e-7, float("nan"))]
    ['1.0', '1.0E7', '-1.25E-7', 'NaN']
    >>> double_text(5.097654563224752e18, 17), double_text(5.097654563224752e18, 21)
    ('5.0976545632247521E18', '5.097654563224752E18')
    """
    if value and math.isfinite(value):
        digits = _two_digits(value) if version >= SHORTEST_FROM else _digits(value, 53)
        return _written(value, digits)
    return _written(value, repr(value))


def single_text(value: float, version: int) -> str:
    """Return ``Float.toString(value)`` of a version of Java.

    >>> single_text(0.10000000149011612, 17)
    '0.1'
    """
    if value and math.isfinite(value) and version < SHORTEST_FROM:
        return _written(value, _digits(value, 24))
    return _written(value, str(np.float32(value)))


def _written(value: float, digits: str) -> str:
    """Return a number as Java writes it; ``digits`` are those that tell it apart."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(digits)
    if value == 0 or _FIRST_PLAIN <= abs(value) < _FIRST_WITH_EXPONENT:
        text = f"{shortest.normalize():f}"
        return text if "." in text else f"{text}.0"
    sign, places, _ = shortest.as_tuple()
    significant = "".join(map(str, places)).rstrip("0")
    rest = significant[1:] or "0"
    return f"{'-' if sign else ''}{significant[0]}.{rest}E{shortest.adjusted()}"


def _two_digits(value: float) -> str:
    """Return the fewest digits, but the two nearest where one is enough, as for 4.9E-324."""
    shortest = Decimal(repr(value))
    digits = shortest.as_tuple().digits
    if len(digits) > 1 and any(digits[1:]):
        return repr(value)
    exact = Decimal(value)
    nearest = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_HALF_EVEN)
    return str(nearest) if float(nearest) == value else repr(value)


_FRACTION: Final = 52
"""Bits of a double's fraction."""

_SMALL: Final = range(-21, 63)
"""Exponents of numbers that may be whole, of which Java writes the digits of the integer."""

_FIVES: Final = [5**power for power in range(27)]


def _digits(value: float, precision: int) -> str:
    """Return the digits that Java before 19 finds: mostly the fewest, sometimes one too many.

    Steele and White's method (1990) with an estimate of the exponent, and whole numbers
    below ``2^63`` apart. ``precision`` is 53, or 24 for a number of 32 bits.
    """
    bits = int.from_bytes(struct.pack(">d", value))
    exponent, fraction = bits >> _FRACTION & 0x7FF, bits & (1 << _FRACTION) - 1
    significant = precision
    if exponent:
        fraction |= 1 << _FRACTION
    else:
        significant = fraction.bit_length()
        shift = _FRACTION + 1 - significant
        fraction <<= shift
        exponent = 1 - shift
    exponent -= 1023
    trailing = (fraction & -fraction).bit_length() - 1
    used = _FRACTION + 1 - trailing
    behind_point = max(0, used - exponent - 1)
    sign = "-" if value < 0 else ""
    if exponent in _SMALL and not behind_point:
        return sign + _whole(fraction, exponent, significant)
    return sign + _steele_white(fraction >> trailing, exponent, used, behind_point, significant)


def _whole(fraction: int, exponent: int, significant: int) -> str:
    shift = exponent - _FRACTION
    number = fraction << shift if shift >= 0 else fraction >> -shift
    unsure = exponent - significant - 1
    places = int(unsure * math.log10(2)) if exponent > significant and unsure > 1 else 0
    whole, rest = divmod(number, 10**places)
    return str((whole + (places > 0 and 2 * rest >= 10**places)) * 10**places)


def _steele_white(
    fraction: int, exponent: int, used: int, behind_point: int, significant: int
) -> str:
    """Return the digits of ``fraction * 2^(exponent - used + 1)``, whose half unit is a bit's."""
    tens = _estimate(fraction / (1 << used - 1), exponent)
    fives_above, fives_below = max(0, -tens), max(0, tens)
    twos_above = fives_above + behind_point + exponent
    twos_below = fives_below + behind_point
    twos_unit = twos_above - significant
    twos_above -= used - 1
    common = min(twos_above, twos_below)
    twos_above, twos_below = twos_above - common, twos_below - common
    twos_unit -= common + (used == 1)
    lift = max(0, -twos_unit)
    above = (fraction * 5**fives_above) << twos_above + lift
    below = 5**fives_below << twos_below + lift
    unit = 5**fives_above << max(0, twos_unit)
    # Java computes in words where it can, and there asks for `>` instead of `>=`.
    size = max(
        used + twos_above + lift + _bits_of_five(fives_above),
        twos_below + lift + 1 + _bits_of_five(fives_below + 1),
    )
    limit = 10 * below + (size < _LONG)
    largest = 1 << (_INT if size < _INT else _LONG) - 1 if size < _LONG else math.inf

    digit, above, unit = above // below, above % below * 10, unit * 10
    low, high = above < unit, above + unit >= limit
    number, digits = digit, 1
    if not digit and not high:
        tens, digits = tens - 1, 0
    if tens not in _PLAIN:
        low = high = False
    while not (low or high):
        digit, above, unit = above // below, above % below * 10, unit * 10
        low, high = above < unit, limit <= above + unit < largest or unit >= largest
        number = number * 10 + digit
        digits += 1
    rest = 2 * above - 10 * below
    if high and (not low or rest > 0 or (rest == 0 and number % 2)):
        number += 1
    return f"{number}E{tens - digits + 1}"


_INT: Final = 32
_LONG: Final = 64

_PLAIN: Final = range(-3, 8)
"""Exponents of ten of numbers that are written without an exponent."""


def _estimate(mantissa: float, exponent: int) -> int:
    """Return the exponent of ten of ``mantissa * 2^exponent``, or one more."""
    return math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)


def _bits_of_five(power: int) -> int:
    """Return Java's bound for the bits of ``5^power``."""
    if power < len(_FIVES):
        return _FIVES[power].bit_length() if power else 0
    return 3 * power
