"""Concurrent functions in a block: whom its tasks ask for their values."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import CalledByDriver, SessionSettings, UserFunction
from eddyline.tasks.not_adapted import ConcurrentMark

_SEEN_AS: Final = {
    '"byte"': '"long"',
    '"short"': '"long"',
    '"integer"': '"long"',
    '"float"': '"double"',
}
"""Spark types, as JSON, whose values Python has in one type."""


def called_by_driver(
    function: UserFunction, mark: ConcurrentMark, settings: SessionSettings
) -> UserFunction:
    """Return a function that is called where the driver is; DeclinedError where it cannot be.

    The driver tells calls of one function apart by what decides how values are converted: a
    function sees the same number whether a column has 32 or 64 bits.
    """
    if not function.argument_types:
        detail = f"{function.name} is concurrent, and is given no argument"
        raise DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION, detail)
    types = tuple(_SEEN_AS.get(kind, kind) for kind in function.argument_types)
    converted = (types, function.keywords, function.return_type, settings)
    digest = hashlib.sha256(repr(converted).encode()).hexdigest()[:16]
    method = f"function/{mark.number}/{digest}"
    driver = CalledByDriver(
        mark.number, method, mark.width, mark.unit, mark.price, values=mark.values
    )
    return replace(function, driver=driver)
