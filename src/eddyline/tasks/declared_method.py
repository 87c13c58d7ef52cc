"""A concurrent function as what asks for its values calls it, at the driver or in a task."""

from __future__ import annotations

from pyspark.sql.types import StructType

from eddyline.asking.declared_functions import Declaration
from eddyline.asking.function_method import FunctionMethod
from eddyline.asking.limits import OnFailure
from eddyline.asking.price import Books
from eddyline.blocks.column_types import spark_type
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.keeping.kept_answers import KeptAnswers
from eddyline.quirks.row_converters import to_python
from eddyline.tasks.calling.arrow_values import ArrowWriter
from eddyline.tasks.calling.pickled_functions import bind_keywords


def value_writer(
    declaration: Declaration, function: UserFunction, settings: SessionSettings
) -> ArrowWriter:
    """Return what makes a column of a function's values."""
    kind = spark_type(function.return_type)
    if declaration.on_error is OnFailure.KEEP and isinstance(kind, StructType):
        kind = kind["value"].dataType
    return ArrowWriter(kind, settings)


def declared_method(
    declaration: Declaration,
    function: UserFunction,
    settings: SessionSettings,
    number: int,
    books: Books,
    kept: KeptAnswers | None = None,
) -> FunctionMethod:
    """Return how a function of a block is called, as it was declared.

    ``number`` tells functions of one name apart; ``books`` say what calls cost.
    """
    write = value_writer(declaration, function, settings)
    return FunctionMethod(
        number,
        declaration.name,
        bind_keywords(declaration.function, function.keywords),
        tuple(
            to_python(spark_type(kind), binary_as_bytes=settings.binary_as_bytes)
            for kind in function.argument_types
        ),
        write,
        write.arrow_type,
        declaration.limits,
        declaration.batch,
        declaration.price,
        books,
        kept,
        declaration.on_error,
        declaration.quota,
        declaration.batch_adapts,
        declaration.prefix,
    )
