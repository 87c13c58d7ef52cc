"""Values made comparable as join keys are: NaN is NaN, -0.0 is 0.0, structs can be hashed."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:  # noqa: ANN401 - any value of a column
    """Return a value that is equal, and hashes alike, where the other is equal as a key."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((name, plain(inner)) for name, inner in value.items())
    return value
