"""Functions over Arrow's columns, also on a Spark that knows only such over pandas' Series.

A block is a function that gets an iterator of columns and yields columns. PySpark 4.1 is the first
with an evaluation type for it. The JVM of 4.0 would run any type, but its worker reads the command
of one that it does not know wrongly. It knows the same over Series, where only what stands around
the function differs; a conversion there and back would lose what pandas has no type for. So there
the function arms the worker when it is unpickled, which is after the worker has chosen how to read
and write rows and before it reads any: for this one task, columns go through as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeVar, cast

import pyarrow as pa
from pyspark.serializers import SpecialLengths, write_int
from pyspark.sql.pandas import serializers

from eddyline.quirks.pyspark_at_hand import MINOR

KNOWN: Final = MINOR >= (4, 1)
"""Whether this PySpark evaluates functions over Arrow's columns."""

_PANDAS, _PANDAS_ITERATOR, _ARROW, _ARROW_ITERATOR = 200, 204, 250, 251

BY_TASK: Final = _ARROW_ITERATOR if KNOWN else _PANDAS_ITERATOR
"""The evaluation type of a function that gets all columns of a task; see :func:`by_task`."""

BY_BATCH: Final = _ARROW if KNOWN else _PANDAS_ITERATOR
"""The evaluation type of a function that gets the columns of a batch; see :func:`by_batch`."""

STAND_IN: Final = _ARROW if KNOWN else _PANDAS
"""The evaluation type of a function that only stands for another, and is never run."""

ALONE_AT_MOST: Final = sys.maxsize if KNOWN else 2
"""How many functions of a select list may each get the columns of a batch.

Of those that Spark evaluates one at a time each takes a process of its own in every task.
"""

LIKE_USERS: Final = not KNOWN
"""Whether functions of users over other columns than Arrow's have the type :data:`BY_BATCH`, too.

Spark runs a function whose only argument is a call of the same type together with that one.
"""

ONE_AT_A_TIME: Final = frozenset({_PANDAS_ITERATOR, _ARROW_ITERATOR})
"""Evaluation types of which a node of Spark's evaluates one function."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def by_task(function: FunctionT) -> FunctionT:
    """Return a function from an iterator of columns to one, ready to be pickled.

    A single column comes as it is, several as a tuple.
    """
    return function if KNOWN else cast("FunctionT", _Arming(function))


def by_batch(function: FunctionT) -> FunctionT:
    """Return a function from columns to a column, ready to be pickled."""
    return function if KNOWN else cast("FunctionT", _Arming(_EachBatch(function)))


@dataclass(frozen=True, slots=True)
class _EachBatch:
    """A function over the columns of a batch, called for each batch of a task."""

    function: Callable[..., object]

    def __call__(self, batches: Iterator[Any]) -> Iterator[object]:
        for columns in batches:
            yield self.function(*(columns if isinstance(columns, tuple) else (columns,)))


@dataclass(frozen=True, slots=True)
class _Arming:
    """Stands for a function in a pickle: whoever unpickles it gets the function itself."""

    function: Callable[..., object]

    def __call__(self, *arguments: object) -> object:
        return self.function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _armed, (self.function,)


def _armed(function: FunctionT) -> FunctionT:
    """Return a function of the task that this worker has just begun.

    It is the only one of the task, but for others of ours: Spark evaluates functions of a single
    argument that is another such function's value in one go.
    """
    for name in ("__main__", "pyspark.worker"):  # the former where Spark has no daemon
        module = sys.modules.get(name)
        if isinstance(module, ModuleType) and hasattr(module, "wrap_pandas_batch_iter_udf"):
            _arm(module)
            break
    return function


class _AsItIs:
    """In place of what has the results of a function converted."""

    def __call__(
        self, function: Callable[..., Iterable[pa.Array]], *_: object
    ) -> Callable[..., Iterator[tuple[pa.Array, None]]]:
        return lambda columns: ((array, None) for array in function(columns))


def _arm(worker: Any) -> None:  # noqa: ANN401 - a module of PySpark's
    """Have the task take and give Arrow's columns.

    What is put in place is taken back by the last of the three to be called, once in a task; one
    that fails before ends its worker.
    """
    if isinstance(worker.wrap_pandas_batch_iter_udf, _AsItIs):
        return
    serializer: Any = getattr(serializers, "ArrowStreamPandasUDFSerializer")  # noqa: B009 - unknown to mypy
    usual = worker.wrap_pandas_batch_iter_udf, serializer.load_stream, serializer.dump_stream

    def loaded(_: object, stream: Any) -> Iterator[list[pa.Array]]:  # noqa: ANN401 - a file
        return (batch.columns for batch in pa.ipc.open_stream(stream))

    def dumped(_: object, results: Iterable[tuple[pa.Array, None]], stream: Any) -> None:  # noqa: ANN401 - a file
        worker.wrap_pandas_batch_iter_udf, serializer.load_stream, serializer.dump_stream = usual
        writer = None
        try:
            for array, _ in results:
                batch = pa.RecordBatch.from_arrays([array], ["_0"])
                if writer is None:
                    write_int(SpecialLengths.START_ARROW_STREAM, stream)  # type: ignore[no-untyped-call]
                    writer = pa.RecordBatchStreamWriter(stream, batch.schema)
                writer.write_batch(batch)
        finally:
            if writer is not None:
                writer.close()

    worker.wrap_pandas_batch_iter_udf = _AsItIs()
    serializer.load_stream, serializer.dump_stream = loaded, dumped
