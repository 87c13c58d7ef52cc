"""Functions over Arrow's columns in a worker that knows only such over pandas' Series."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.serializers import SpecialLengths, read_int
from pyspark.sql.pandas import serializers

from eddyline.quirks import arrow_columns


class Serializer:
    """Stands for the one that goes by way of pandas."""

    def load_stream(self, _: object) -> str:
        return "pandas"

    dump_stream = load_stream


def doubled(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for column in columns:
        yield pc.multiply(column, 2)


def sums(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.add(one, other)


def negative(column: pa.Array) -> pa.Array:
    return pc.negate(column)


def unpickled(sent: bytes) -> Any:  # noqa: ANN401 - a function
    return pickle.loads(sent)  # noqa: S301 - made here


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module
    module: Any = ModuleType("pyspark.worker")
    module.wrap_pandas_batch_iter_udf = "by pandas"
    monkeypatch.setitem(sys.modules, "pyspark.worker", module)
    monkeypatch.setattr(serializers, "ArrowStreamPandasUDFSerializer", Serializer, raising=False)
    monkeypatch.setattr(arrow_columns, "KNOWN", False)
    return module


def stream_of(*batches: list[pa.Array]) -> io.BytesIO:
    stream = io.BytesIO()
    tables = [pa.RecordBatch.from_arrays(arrays, list("ab")[: len(arrays)]) for arrays in batches]
    with pa.ipc.new_stream(stream, tables[0].schema) as writer:
        for batch in tables:
            writer.write_batch(batch)
    return io.BytesIO(stream.getvalue())


def task(worker: Any, function: Any, *batches: list[pa.Array]) -> list[list[Any]]:  # noqa: ANN401
    """Do what PySpark's worker does once it has read the command of a task."""
    wrapped = worker.wrap_pandas_batch_iter_udf(function, "a type", {})
    columns = Serializer().load_stream(stream_of(*batches))
    arguments = (arrays[0] if len(arrays) == 1 else tuple(arrays) for arrays in columns)
    written = io.BytesIO()
    Serializer().dump_stream(wrapped(arguments), written)  # type: ignore[call-arg]
    written.seek(0)
    assert read_int(written) == SpecialLengths.START_ARROW_STREAM  # type: ignore[no-untyped-call]
    return [batch.column(0).to_pylist() for batch in pa.ipc.open_stream(written)]


def is_as_ever(worker: Any) -> bool:  # noqa: ANN401
    return worker.wrap_pandas_batch_iter_udf == "by pandas" and Serializer().load_stream(0) == (
        Serializer().dump_stream(0)
    )


def test_columns_go_through_as_they_are_for_one_task(worker: Any) -> None:  # noqa: ANN401
    sent = pickle.dumps(arrow_columns.by_task(doubled))
    assert is_as_ever(worker)
    # NULLs, which pandas would make floats of.
    assert task(worker, unpickled(sent), [pa.array([1, None])], [pa.array([2**62])]) == [
        [2, None],
        [-(2**63)],
    ]
    assert is_as_ever(worker)


def test_a_function_of_batches_is_called_for_each(worker: Any) -> None:  # noqa: ANN401
    sent = pickle.dumps(arrow_columns.by_batch(sums))
    batches = [[pa.array([1]), pa.array([2])], [pa.array([3]), pa.array([None], pa.int64())]]
    assert task(worker, unpickled(sent), *batches) == [[3], [None]]
    assert is_as_ever(worker)


def test_two_functions_that_spark_runs_in_one_go(worker: Any) -> None:  # noqa: ANN401
    first = unpickled(pickle.dumps(arrow_columns.by_batch(negative)))
    second = unpickled(pickle.dumps(arrow_columns.by_batch(negative)))
    assert task(worker, lambda columns: second(first(columns)), [pa.array([5])]) == [[5]]
    assert is_as_ever(worker)


def test_a_task_that_fails_leaves_the_worker_as_it_was(worker: Any) -> None:  # noqa: ANN401
    sent = pickle.dumps(arrow_columns.by_batch(sums))
    with pytest.raises(TypeError):
        task(worker, unpickled(sent), [pa.array([1])])
    assert is_as_ever(worker)


def test_the_worker_that_runs_is_armed_and_no_other(
    worker: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a daemon it is the main module; others may have imported it under its name."""
    main: Any = ModuleType("__main__")
    main.wrap_pandas_batch_iter_udf = "by pandas"
    monkeypatch.setitem(sys.modules, "__main__", main)
    # Pickled beforehand: functions of this module, not of the main one.
    sent = unpickled(pickle.dumps(arrow_columns.by_task(doubled)))
    assert worker.wrap_pandas_batch_iter_udf == "by pandas"
    assert task(main, sent, [pa.array([1])]) == [[2]]
    assert is_as_ever(main)
    assert is_as_ever(worker)


def test_where_spark_knows_them_nothing_is_done() -> None:
    if arrow_columns.KNOWN:
        assert arrow_columns.by_task(doubled) is doubled
        assert arrow_columns.by_batch(sums) is sums
