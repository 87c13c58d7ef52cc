"""Runs a user's code before Spark has started, and notices if it asks for Spark.

Spark takes seconds to start, and a mistake in a module should be reported before. Some modules ask
for Spark when they are imported, as by ``@udf("boolean")``, which reads a type there: they must
not start it, with settings of their own.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

_PYSPARK = str(Path(pyspark.__file__).parent)


class SparkAskedForError(BaseException):
    """Code wants Spark, which has not started; no ``except Exception`` of a user's takes it."""


@contextmanager
def spark_kept_from_starting() -> Iterator[None]:
    """Raise :class:`SparkAskedForError` where code in the block asks for Spark, if it is not there.

    Where Spark runs already the block uses it as always.
    """
    if SparkSession.getActiveSession() is not None:
        yield
        return
    with ExitStack() as patches:
        patches.enter_context(patch.object(SparkContext, "__init__", _asked))
        patches.enter_context(patch.object(SparkSession, "getActiveSession", _asked))
        patches.enter_context(patch.object(SparkSession, "active", _asked))
        yield


def needs_spark(error: BaseException) -> bool:
    """Whether an error comes out of PySpark because Spark has not started."""
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - no public way starts none
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_PYSPARK)


def _asked(*_: object, **__: object) -> NoReturn:
    raise SparkAskedForError
