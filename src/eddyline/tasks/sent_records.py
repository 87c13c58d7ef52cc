"""Records of tasks on their way to a client of Spark Connect, which has no accumulator.

What a task adds to an accumulator of any number the server sends, as bytes, to the client whose
action it was: as metrics, under the name that Spark's own profilers use.
"""

from __future__ import annotations

import io
import logging
import pickle
from typing import Any, Final

from pyspark.accumulators import AccumulatorParam, _deserialize_accumulator

from eddyline.tasks.task_records import Records

NUMBER: Final = -7707
"""The number of our accumulator: Spark's own begin at 0, and its profilers have -1 and -2."""

METRICS: Final = "__python_accumulator__"
"""The name under which the server sends what tasks have added to accumulators."""

_log: Final = logging.getLogger("eddyline")

_SAFE: Final = frozenset(
    {
        ("eddyline.engine.policies.adaptive_window", "ChangedQuantity"),
        ("numpy", "dtype"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy.core.multiarray", "scalar"),
    }
)
_OF_RECORDS: Final = "eddyline.reports.records"


class _Appended(AccumulatorParam[list[bytes]]):
    """Adds up what the tasks of a worker process say, one after another."""

    def zero(self, value: list[bytes]) -> list[bytes]:  # noqa: ARG002 - the protocol's argument
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - PySpark's name
        value1.extend(value2)
        return value1


class RecordsToClient:
    """Takes the place of an accumulator in a function that a client has made."""

    def add(self, records: Records) -> None:
        """Send what a task has done along with the end of its stage."""
        sent = _deserialize_accumulator(NUMBER, list[bytes](), _Appended())
        sent.add([pickle.dumps(records, protocol=5)])


class _RecordsUnpickler(pickle.Unpickler):
    """Makes records and nothing else: what a server sends must not run code here."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in the standard library
        if module == _OF_RECORDS or (module, name) in _SAFE:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a record")


class _NumberUnpickler(pickle.Unpickler):
    """Makes numbers, texts, bytes and lists of these."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in the standard library
        raise pickle.UnpicklingError(f"{module}.{name} is not looked for")


def records_in(metric: bytes) -> list[Records] | None:
    """Return the records in a metric of the server's; None where it is somebody else's.

    What cannot be read is left out, and the logger ``eddyline`` says so.
    """
    try:
        number, update = _NumberUnpickler(io.BytesIO(metric)).load()
    except Exception:  # noqa: BLE001 - a profiler's, of whatever form
        return None
    if number != NUMBER:
        return None
    found: list[Records] = []
    for content in update:
        try:
            found.append(_RecordsUnpickler(io.BytesIO(content)).load())
        except Exception:  # noqa: BLE001 - a report is lost, and no query
            _log.warning("What a task has reported cannot be read", exc_info=True)
    return found
