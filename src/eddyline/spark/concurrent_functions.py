"""The concurrent functions of this process, and how the server of lookups calls them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.conversion import ArrowTableToRowsConversion

from eddyline.errors import EddylineError
from eddyline.sources.limits import Limits
from eddyline.sources.price import Books, Price
from eddyline.spark.blocks.column_types import spark_type
from eddyline.spark.blocks.filter_block import FilterBlock, SessionSettings, UserFunction
from eddyline.spark.decline import LeftToSpark
from eddyline.spark.host.catalyst import Plan
from eddyline.spark.lookup_tables import LookupTables
from eddyline.spark.plan.concurrent_marks import marks_in
from eddyline.spark.worker.calling.arrow_values import ArrowWriter
from eddyline.spark.worker.calling.commands import bind_keywords

if TYPE_CHECKING:
    from eddyline.sources.shared_function import FunctionMethod


class FunctionPlaceError(EddylineError, ValueError):
    """A concurrent function stands where nobody could make its calls."""


@dataclass(frozen=True)
class Declaration:
    """A function as it was declared; ``batch`` is 0 where it takes one value a call."""

    name: str
    function: Callable[..., Any]
    limits: Limits
    batch: int
    price: Price


_NUMBERS: Final = itertools.count(1)
_declared: Final[dict[int, Declaration]] = {}


def declare(declaration: Declaration) -> int:
    """Take note of a function; return its number in this process."""
    number = next(_NUMBERS)
    _declared[number] = declaration
    return number


def any_declared() -> bool:
    """Whether there is any concurrent function."""
    return bool(_declared)


def require_all_placed(plan: Plan, left: Sequence[LeftToSpark]) -> None:
    """Raise FunctionPlaceError where a rewritten plan still calls a concurrent function."""
    for mark in marks_in(plan):
        why = "; ".join(str(each) for each in left if mark.name in each.text)
        raise FunctionPlaceError(
            f"{mark.name} is a concurrent function, and stands where its calls cannot be "
            f"made{f' ({why})' if why else ''}. Compute it in a select list first, as in "
            f'df.withColumn("value", {mark.name}(...)), and use that column.'
        )


def refuse_in_streams(plan: Plan) -> None:
    """Raise FunctionPlaceError where a stream calls a concurrent function."""
    for mark in marks_in(plan):
        raise FunctionPlaceError(
            f"{mark.name} is a concurrent function, which is called once a job for distinct "
            f"arguments; a stream is no job that ends. Call it in foreachBatch, on the batch."
        )


def served(block: FilterBlock, tables: LookupTables) -> FilterBlock:
    """Return a block whose tasks know whom to ask; its concurrent functions can be asked for."""
    concurrent = [each for each in block.functions if each.driver is not None]
    if not concurrent:
        return block
    for function in concurrent:
        if function.driver is not None:
            method = _method(function, function.driver.number, block.settings, tables.books)
            tables.serve(function.driver.method, method)
    return replace(block, server=tables.address)


def _method(
    function: UserFunction, number: int, settings: SessionSettings, books: Books
) -> FunctionMethod:
    # Only who has concurrent functions has what these need.
    from eddyline.sources.shared_function import FunctionMethod  # noqa: PLC0415

    declaration = _declared[number]
    write = ArrowWriter(spark_type(function.return_type), settings)
    return FunctionMethod(
        number,
        declaration.name,
        bind_keywords(declaration.function, function.keywords),
        tuple(
            ArrowTableToRowsConversion._create_converter(  # noqa: SLF001 - no public way
                spark_type(kind), none_on_identity=True, binary_as_bytes=settings.binary_as_bytes
            )
            for kind in function.argument_types
        ),
        write,
        write.arrow_type,
        declaration.limits,
        declaration.batch,
        declaration.price,
        books,
    )
