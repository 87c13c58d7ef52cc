"""Settings with which a streaming query of standing queries starts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from eddyline import catalyst
from eddyline.quirks.checkpoint_files import RENAMED

_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_SETTINGS: Final = {
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

_CHECKPOINTS: Final = "spark.sql.streaming.checkpointFileManagerClass"


@contextmanager
def stream_settings(spark: SparkSession, cells: int) -> Iterator[None]:
    """Have a session's settings as a streaming query needs them, which copies them as it starts.

    Its checkpoint is on this machine, or mounted. Where Hadoop would start processes for its files
    they are renamed by Hadoop's older interface, whose files are ours: of 67 ms of a
    micro-batch that does nothing, 9 are left (medians of five turns).
    """
    wanted = {"spark.sql.shuffle.partitions": str(cells), **_SETTINGS}
    if catalyst.write_local_files_directly() and spark.conf.get(_CHECKPOINTS, None) is None:
        wanted[_CHECKPOINTS] = RENAMED
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            if known is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, known)


def cell_labels(spark: SparkSession, cells: int) -> list[int]:
    """Return for each of so many tasks a number that Spark's hash sends there."""
    labels: dict[int, int] = {}
    candidates = spark.range(64 * cells).select(
        F.col("id").cast("int").alias("label"),
        F.pmod(F.hash(F.col("id").cast("int")), F.lit(cells)).alias("task"),
    )
    for label, task in candidates.collect():
        labels.setdefault(task, label)
    return [labels[task] for task in range(cells)]


def require_protobuf() -> None:
    """Raise ModuleNotFoundError where what Spark's state store needs is missing."""
    try:
        importlib.import_module("google.protobuf")
    except ModuleNotFoundError as error:
        message = (
            'to join or aggregate streams Spark needs protobuf: pip install "eddyline[streaming]"'
        )
        raise ModuleNotFoundError(message, name=error.name) from error
