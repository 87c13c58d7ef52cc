"""Concurrent functions as a block knows them: what calls have in common, and who makes them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Final

from pyspark.serializers import CPickleSerializer

from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import CalledByDriver, SessionSettings, UserFunction
from eddyline.tasks.not_adapted import ConcurrentMark

_NAME: Final = ConcurrentMark.__name__.encode()

_SEEN_AS: Final = {
    '"byte"': '"long"',
    '"short"': '"long"',
    '"integer"': '"long"',
    '"float"': '"double"',
}
"""Spark types, as JSON, whose values Python has in one type."""


def mark_of(command: bytes) -> ConcurrentMark | None:
    """Return the concurrent function that a pickled function stands for; None for any other."""
    if _NAME not in command:
        return None
    serializer = CPickleSerializer()
    loaded: Any = serializer.loads(command)  # type: ignore[no-untyped-call]  # PySpark's own is untyped
    mark = loaded[0] if isinstance(loaded, tuple) else None
    return mark if isinstance(mark, ConcurrentMark) else None


def called_together(
    function: UserFunction, mark: ConcurrentMark, settings: SessionSettings
) -> UserFunction:
    """Return a function whose calls are made together; DeclinedError where they cannot be.

    Calls of one function are told apart by what decides how values are converted: a function sees
    the same number whether a column has 32 or 64 bits.
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
