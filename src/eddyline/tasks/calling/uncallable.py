"""What cannot be called here exactly as Spark would, so that a block leaves it to Spark."""

from __future__ import annotations

from pyspark.sql import types

from eddyline.blocks.column_types import spark_type
from eddyline.blocks.filter_block import FunctionKind, UserFunction


def reason_not_to_call(function: UserFunction) -> str | None:
    """Return why a function's calls could differ from Spark's own; None if they cannot.

    A pickled map passes through a hash map of Java's, so a plain function sees
    its entries in Java's order, and its own maps come out in that order too.
    """
    if function.kind is FunctionKind.PICKLED:
        if any(_has_map(spark_type(text)) for text in function.argument_types):
            return "it takes a map, whose order Java decides while Spark pickles rows"
        if _has_map(spark_type(function.return_type)):
            return "it returns a map, whose order Java decides while Spark pickles rows"
    return None


def _has_map(kind: types.DataType) -> bool:
    if isinstance(kind, types.ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, types.StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, types.MapType)
