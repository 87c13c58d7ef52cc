"""Calls users' functions inside a Python worker exactly as Spark's worker would.

Each file has one family: how rows or vectors are called, or how columns become
Python's values and results become columns again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Final, Protocol, TypeAlias, assert_never

import pyarrow as pa
from pyspark.sql.types import DataType

from eddyline.blocks.column_types import arrays_as_sent, spark_type
from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.errors import ReadAheadError, ResultNotTransferableError
from eddyline.expressions.vector import Function
from eddyline.latest import Latest
from eddyline.tasks.calling.arrow_values import ArrowWriter, arrow_reader
from eddyline.tasks.calling.iterator_function import IteratorFunction
from eddyline.tasks.calling.nest_function import NestFunction, Sharing, stretches_of
from eddyline.tasks.calling.pickled_functions import Loaded, bind_keywords, load
from eddyline.tasks.calling.pickled_values import PickledWriter, pickled_reader
from eddyline.tasks.calling.row_function import Reader, RowFunction, Writer
from eddyline.tasks.calling.uncallable import reason_not_to_call
from eddyline.tasks.calling.vector_function import (
    ArrowResults,
    Pack,
    VectorFunction,
)

__all__ = [
    "MadeFunction",
    "ReadAheadError",
    "ResultNotTransferableError",
    "WorkerFunction",
    "made_function",
    "make_function",
    "reason_not_to_call",
]


class WorkerFunction(Function, Protocol):
    """A user's function in a worker, which may hold something open between calls."""

    def close(self) -> None:
        """Finish it after the last call; raises what the user's code raises at its end."""
        ...


@dataclass(frozen=True, slots=True)
class MadeFunction:
    """A function as it is called; ``forgetful`` if its results are not to be remembered."""

    function: WorkerFunction
    forgetful: bool


def make_function(function: UserFunction, settings: SessionSettings) -> WorkerFunction:
    """Return the function that :func:`made_function` makes, without its word on remembering."""
    return made_function(function, settings).function


def made_function(
    function: UserFunction, settings: SessionSettings, sharing: Sharing | None = None
) -> MadeFunction:
    """Unpickle a user's function and make it callable over columns.

    Columns must come in the Arrow types in which Spark sends the function's
    argument types, in whatever time zone; the result has the Arrow type of its
    return type, timestamps in the session's time zone. With ``sharing`` it takes values of its
    parts that other functions have called for, unless it is forgetful.

    Raises what unpickling raises, for example ``ModuleNotFoundError``.
    """
    loaded = load(function.commands)
    if loaded.forgetful:
        sharing = None
    return MadeFunction(_made(function, loaded, settings, sharing), loaded.forgetful)


def _made(
    function: UserFunction, loaded: Loaded, settings: SessionSettings, sharing: Sharing | None
) -> WorkerFunction:
    code, return_type = loaded.code, loaded.return_type
    match function.kind:
        case FunctionKind.PICKLED | FunctionKind.ARROW_BATCHED:
            whole = bind_keywords(code, function.keywords)
            readers, write = _row_values(function, return_type, settings)
            # What pandas makes of a value depends on the others of its batch.
            legacy = settings.legacy_pandas_conversion
            if sharing is None or legacy or not function.shared:
                return RowFunction(whole, readers, write)
            stretches = stretches_of(function, loaded.functions, settings, sharing)
            return NestFunction(whole, stretches, readers, write, sharing.clock)
        case FunctionKind.ARROW:
            arrow = ArrowResults(return_type, settings)
            bound = bind_keywords(code, function.keywords)
            as_sent = _as_sent(settings)
            return VectorFunction(bound, as_sent, arrow.of_batch, arrow.arrow_type)
        case FunctionKind.ARROW_ITERATOR:
            arrow = ArrowResults(return_type, settings)
            pack = _positional_only(function, _as_sent(settings))
            return IteratorFunction(code, pack, arrow.of_iterator, arrow.arrow_type, arrow.iterated)
        case FunctionKind.PANDAS:
            values = _pandas_values()
            pandas = values.PandasResults(return_type, settings)
            bound = bind_keywords(code, function.keywords)
            arguments = values.PandasArguments(settings)
            return VectorFunction(bound, arguments, pandas.of_batch, pandas.arrow_type)
        case FunctionKind.PANDAS_ITERATOR:
            values = _pandas_values()
            pandas = values.PandasResults(return_type, settings)
            pack = _positional_only(function, values.PandasArguments(settings))
            return IteratorFunction(
                code, pack, pandas.of_iterator, pandas.arrow_type, pandas.iterated
            )
        case _:
            assert_never(function.kind)


def _row_values(
    function: UserFunction, return_type: DataType, settings: SessionSettings
) -> tuple[Sequence[Reader], Writer]:
    """Return what converts the arguments and results of a function that is called row by row."""
    kind, types = function.kind, function.argument_types
    if kind is FunctionKind.ARROW_BATCHED and not settings.legacy_pandas_conversion:
        return _arrow_values(types, return_type, settings)
    as_bytes = settings.binary_as_bytes
    kinds = map(spark_type, types)
    if kind is FunctionKind.PICKLED:
        read = [pickled_reader(kind, binary_as_bytes=as_bytes) for kind in kinds]
        return read, PickledWriter(return_type, settings)
    values = _pandas_values()
    read = [values.legacy_reader(kind, settings) for kind in kinds]
    return read, values.LegacyWriter(return_type, settings)


_ArrowValues: TypeAlias = tuple[tuple[Reader, ...], Writer]

_CONVERTERS: Final = Latest[Hashable, _ArrowValues](1_000)


def _as_sent(settings: SessionSettings) -> Callable[[Sequence[pa.Array]], list[pa.Array]]:
    """Return what gives columns the Arrow types in which Spark sends them under the settings."""
    return partial(arrays_as_sent, time_zone=settings.time_zone, large=settings.large_types)


def _arrow_values(
    argument_types: tuple[str, ...], return_type: DataType, settings: SessionSettings
) -> _ArrowValues:
    """Return what converts values by Arrow, for all tasks: to make it takes 50 us a function."""
    key = argument_types, return_type.json(), settings
    known = _CONVERTERS.get(key)
    if known is None:
        as_bytes = settings.binary_as_bytes
        kinds = map(spark_type, argument_types)
        readers = tuple(arrow_reader(kind, binary_as_bytes=as_bytes) for kind in kinds)
        known = readers, ArrowWriter(return_type, settings)
        _CONVERTERS.put(key, known)
    return known


def _pandas_values() -> ModuleType:
    """Return the module that calls functions over Series; pandas is imported only then."""
    from eddyline.tasks.calling import pandas_values  # noqa: PLC0415 - 0.2 to 0.4 s

    return pandas_values


def _positional_only(function: UserFunction, pack: Pack) -> Pack:
    """Leave out the arguments passed by keyword: Spark's worker does not pass them either."""
    positional = function.keywords.count(None)
    return lambda columns: pack(columns[:positional])
