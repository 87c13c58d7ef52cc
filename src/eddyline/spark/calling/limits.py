"""What cannot be called here exactly as Spark would, so that a block leaves it to Spark."""

from __future__ import annotations

from pyspark.sql import types

from eddyline.spark.column_types import spark_type
from eddyline.spark.filter_block import FunctionKind, UserFunction
