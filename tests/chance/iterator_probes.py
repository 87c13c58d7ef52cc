"""Iterator functions as the driver gets them, and why they are declined."""

from __future__ import annotations

import linecache
import types
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import LongType

from eddyline.chance.iterator_state import iterator_is_stateless

Chunks = Iterator[Any]

ADVICE = "; mark it with eddyline.stateless if it carries nothing from batch to batch"

LIMITS = (1, 2)
SEEN: list[int] = []
NUMBERS = iter(range(1000))
MODULE = types.ModuleType("settings")
MODULE.CACHE = {}  # type: ignore[attr-defined]
MODULE.PI = 3  # type: ignore[attr-defined]


def packed(*functions: Callable[..., Any]) -> tuple[bytes, ...]:
    """Return a chain of functions as a block carries it."""
    dumps: Callable[[object], bytes] = CloudPickleSerializer().dumps  # type: ignore[no-untyped-call]
    return tuple(dumps((each, LongType())) for each in functions)


def reason(*functions: Callable[..., Any]) -> str | None:
    """Return why a chain of functions is declined; None if it is not."""
    return iterator_is_stateless(packed(*functions))


def compiled(body: str, name: str = "probe", **outer: object) -> Callable[..., Any]:
    """Return a function whose source can be found though it stands in no file."""
    source = f"def {name}(batches):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    file = f"<probe {len(linecache.cache)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace = {"SEEN": SEEN, "LIMITS": LIMITS, "MODULE": MODULE, "NUMBERS": NUMBERS, **outer}
    exec(compile(source, file, "exec"), namespace)  # noqa: S102 - the point of the helper
    function: Callable[..., Any] = namespace[name]  # type: ignore[assignment]
    return function
