"""PySpark's own worker code, run in this process: the oracle for what needs no JVM."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.serializers import CPickleSerializer
from pyspark.sql.types import StructField, StructType
from pyspark.worker import EvalConf, RunnerConf, read_udfs
from pyspark.worker_message import UDFInfo

from eddyline.blocks.column_types import spark_type
from eddyline.blocks.filter_block import SessionSettings, UserFunction


def spark_result(
    function: UserFunction, settings: SessionSettings, chunks: Sequence[Sequence[pa.Array]]
) -> list[pa.Array]:
    """Return what PySpark's worker sends back for chunks of columns; raises what it raises."""
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
    evaluate, _, _, _ = read_udfs(  # type: ignore[no-untyped-call]
        CPickleSerializer(),
        [info],
        int(function.kind),
        RunnerConf({key: str(value) for key, value in runner.items()}),
        EvalConf({"input_type": StructType(columns).json()}),
    )
    names = [column.name for column in columns]
    batches = (pa.RecordBatch.from_arrays(list(chunk), names) for chunk in chunks)
    return [batch.column(0) for batch in evaluate(0, batches)]
