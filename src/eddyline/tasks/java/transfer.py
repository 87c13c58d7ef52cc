"""The way of a value to the JVM: pickled as PySpark pickles it, and unpickled there.

Values of common types take a short way to the same.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, Final

from pyspark.serializers import CPickleSerializer

from eddyline.blocks.filter_block import JavaRuntime
from eddyline.tasks.java.containers import JavaMap
from eddyline.tasks.java.hash_tables import HashTable
from eddyline.tasks.java.objects import Value, text_of, without_surrogates
from eddyline.tasks.java.unpickling import as_in_java, constructor, pickled_map

_ALIKE: Final = frozenset({type(None), bool, int, float, str})
"""Types whose values stand for themselves."""

_TIMES: Final = {
    dt.date: "datetime.date",
    dt.datetime: "datetime.datetime",
    dt.time: "datetime.time",
    dt.timedelta: "datetime.timedelta",
}

_DEEPEST: Final = 30
"""Containers in containers that take the short way; a list in itself is for the long one."""

_LARGEST: Final = 1000
"""Entries of a map that takes the short way: Python pickles so many at once."""

_RECORDS: Final = 1024
"""Orders of keys that are kept."""


class _LongWayError(Exception):
    """There is no short way for a value."""


class Transfer:
    """Sends values to a JVM.

    >>> send = Transfer(JavaRuntime())
    >>> text_of(send({"b": [1, None], "a": {2.5}}), 17)
    '{a=[2.5], b=[1, null]}'
    """

    def __init__(self, runtime: JavaRuntime) -> None:
        """Send to a JVM with these properties."""
        self._runtime = runtime
        self._serializer = CPickleSerializer()

    def __call__(self, value: Any) -> Value:  # noqa: ANN401 - anything may be returned
        """Return what becomes of a value; raises what pickling or unpickling raises."""
        if type(value) in _ALIKE:
            return value
        try:
            return self._by_short_way(value, 0)
        except _LongWayError:
            pickled: bytes = self._serializer.dumps(value)  # type: ignore[no-untyped-call]
            return as_in_java(pickled, self._runtime)

    def _by_short_way(self, value: Any, depth: int) -> Value:  # noqa: ANN401 - likewise
        kind = type(value)
        if kind in _ALIKE or kind is bytes:
            return value
        if depth < _DEEPEST:
            if kind is list:
                return [self._by_short_way(item, depth + 1) for item in value]
            if kind is tuple:
                return tuple(self._by_short_way(item, depth + 1) for item in value)
            if kind is dict:
                return self._record(value, depth + 1)
        if kind is Decimal:
            return constructor("decimal.Decimal", self._runtime)(str(value))
        if kind in _TIMES and getattr(value, "tzinfo", None) is None:
            return constructor(_TIMES[kind], self._runtime)(*value.__reduce_ex__(5)[1])
        raise _LongWayError

    def _record(self, value: dict[Any, Any], depth: int) -> Value:
        keys = tuple(value)
        if len(keys) > _LARGEST or not all(type(key) is str for key in keys):
            raise _LongWayError
        order = _order(keys, self._runtime.version)
        if order is None:
            raise _LongWayError
        values = {key: self._by_short_way(value[key], depth) for key in keys}
        return _Record(values, order, self._runtime.version)


class _Record(JavaMap):
    """A map whose keys are texts; often there are many with the same keys.

    Its table is made when somebody asks for more than its text.
    """

    def __init__(self, values: dict[str, Value], order: tuple[str, ...], version: int) -> None:
        self._values = values
        self._order = order
        self._version = version

    @cached_property
    def table(self) -> HashTable:
        return pickled_map(list(self._values.items()), self._version)

    def text(self, version: int) -> str:
        values = self._values
        told = [f"{key}={text_of(values[key], version)}" for key in self._order]
        return f"{{{', '.join(told)}}}"


@lru_cache(_RECORDS)
def _order(keys: tuple[str, ...], version: int) -> tuple[str, ...] | None:
    """Return keys in Java's order; None if Java does not tell them apart."""
    if any(without_surrogates(key) != key for key in keys):
        return None
    return tuple(key for key, _ in pickled_map([(key, None) for key in keys], version))
