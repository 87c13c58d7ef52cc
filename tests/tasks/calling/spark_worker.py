"""PySpark's own worker code, run in this process: the oracle for what needs no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyspark import worker
from pyspark.serializers import CPickleSerializer, read_int, write_int, write_with_length
from pyspark.sql.types import StructField, StructType

from eddyline.blocks.column_types import spark_type
from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.quirks.pyspark_at_hand import MINOR
from eddyline.quirks.without_settings import ALWAYS_OFF, ALWAYS_ON
from tests.without_arrow_udf import require_arrow_udf

WORKER: Any = worker
"""Without types: its functions have others in each version of PySpark."""


def as_here(settings: SessionSettings) -> SessionSettings:
    """Return settings as the Spark at hand has them, where it lacks some."""
    always: dict[str, Any] = dict.fromkeys(ALWAYS_ON, True) | dict.fromkeys(ALWAYS_OFF, False)
    return replace(settings, **always)


def spark_result(
    function: UserFunction, settings: SessionSettings, chunks: Sequence[Sequence[pa.Array]]
) -> list[pa.Array]:
    """Return what PySpark's worker sends back for chunks of columns; raises what it raises."""
    if function.kind in {FunctionKind.ARROW, FunctionKind.ARROW_ITERATOR}:
        require_arrow_udf()
    runner = {
        "spark.sql.session.timeZone": settings.time_zone,
        "spark.sql.execution.pyspark.binaryAsBytes": settings.binary_as_bytes,
        "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled": (
            settings.legacy_pandas_conversion
        ),
        "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName": (
            settings.assign_columns_by_name
        ),
        "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled": (
            settings.int_to_decimal_coercion
        ),
        "spark.sql.execution.pandas.convertToArrowArraySafely": settings.safe_arrow_conversion,
    }
    texts = {key: str(value) for key, value in runner.items()}
    names = [f"_{i}" for i in range(len(function.argument_types))]
    batches = [pa.RecordBatch.from_arrays(list(chunk), names) for chunk in chunks]
    evaluated = _evaluated_from_a_stream if MINOR <= (4, 0) else _evaluated
    return [batch.column(0) for batch in evaluated(function, texts, batches)]


def _evaluated(
    function: UserFunction, runner: Mapping[str, str], batches: Sequence[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    from pyspark.worker_message import UDFInfo  # noqa: PLC0415 - PySpark 4.0 has none

    positions = range(len(function.argument_types))
    keywords = dict(zip(function.keywords, positions, strict=True))
    keywords.pop(None, None)
    info = UDFInfo(
        udfs=[memoryview(command) for command in function.commands],
        args=[i for i in positions if function.keywords[i] is None],
        kwargs={name: position for name, position in keywords.items() if name is not None},
        result_id=0,
    )
    columns = [StructField(f"_{i}", spark_type(function.argument_types[i])) for i in positions]
    evaluate, _, _, _ = WORKER.read_udfs(
        CPickleSerializer(),
        [info],
        int(function.kind),
        WORKER.RunnerConf(dict(runner)),
        WORKER.EvalConf({"input_type": StructType(columns).json()}),
    )
    yield from evaluate(0, iter(batches))


def _evaluated_from_a_stream(
    function: UserFunction, runner: Mapping[str, str], batches: Sequence[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do the same with PySpark 4.0, whose worker reads all of this from its stream."""
    said = BytesIO()
    _say(said, len(runner))
    for text in (text for pair in runner.items() for text in pair):
        _say(said, text)
    not_profiled, functions = False, 1
    _say(said, not_profiled)
    _say(said, functions)
    _say(said, len(function.keywords))
    for position, keyword in enumerate(function.keywords):
        _say(said, position)
        _say(said, keyword is not None)
        if keyword is not None:
            _say(said, keyword)
    _say(said, len(function.commands))
    for command in function.commands:
        _say(said, command)
    said.seek(0)
    evaluate, _, reader, writer = WORKER.read_udfs(CPickleSerializer(), said, int(function.kind))
    assert not said.read()
    given, answered = BytesIO(), BytesIO()
    with pa.ipc.new_stream(given, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    given.seek(0)
    writer.dump_stream(evaluate(0, reader.load_stream(given)), answered)
    answered.seek(0)
    if answered.getbuffer():
        read_int(answered)  # type: ignore[no-untyped-call]  # that a stream of Arrow's begins
        yield from pa.ipc.open_stream(answered)


def _say(stream: BytesIO, what: bool | int | str | bytes) -> None:  # noqa: FBT001 - as it is sent
    """Write something as the JVM does: a truth value as a byte, texts behind their lengths."""
    if isinstance(what, bool):
        stream.write(bytes([what]))
    elif isinstance(what, int):
        write_int(what, stream)  # type: ignore[no-untyped-call]
    else:
        content = what.encode() if isinstance(what, str) else what
        write_with_length(content, stream)  # type: ignore[no-untyped-call]
