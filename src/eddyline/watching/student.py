"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math
from statistics import NormalDist


def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with so many degrees of freedom.

    Exact for 1 and 2 degrees; else by the expansion of Abramowitz and Stegun (1964, 26.7.5),
    whose error for 3 degrees at 97.5 % is 0.1 %, and less for more.

    ValueError for a probability outside of (0, 1), or no degree of freedom.

    >>> round(student_quantile(0.975, 1), 3), round(student_quantile(0.975, 10), 3)
    (12.706, 2.228)
    """
    if not 0.0 < probability < 1.0 or degrees < 1:
        raise ValueError(f"there is no quantile {probability} of {degrees} degrees of freedom")
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:  # noqa: PLR2004 - has a closed form as well
        centred = 2.0 * probability - 1.0
        return centred * math.sqrt(2.0 / (1.0 - centred * centred))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    more: float = sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))
    return z + more
