"""An axis: an attribute cut into cells, as the kernels of grouped filters take it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eddyline.standing.engine import filter_kernels as kernels
from eddyline.standing.engine.boxes import Integers


def axis_of(attribute: int, cuts: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Return the row of an axis that is alone, and its buckets; ``cuts`` ascend."""
    span = int(cuts[-1]) - int(cuts[0]) if len(cuts) else 0
    shift = max(span.bit_length() - (kernels.BUCKETS.bit_length() - 1), 0)
    buckets = np.zeros(kernels.BUCKETS + 1, np.int32)
    kernels.fill_buckets(cuts, shift, buckets)
    return np.array([attribute, 0, len(cuts), 0, shift], np.int64), buckets
