"""Functions from an iterator of chunks to an iterator of results, fed chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkRuntimeError

from eddyline.errors import ReadAheadError
from eddyline.expressions.vector import Vector
from eddyline.quirks.pyspark_errors import error_of, rows_mismatch
from eddyline.quirks.returned_iterators import as_iterator
from eddyline.tasks.calling.pickled_functions import UserCode
from eddyline.tasks.calling.vector_function import (
    Pack,
    Unpack,
    all_failed,
    require_type,
    unpacked,
)

_NOTHING: Final = object()


class _Feed(Iterator[Any]):
    """The iterator that the user's function reads: one chunk at a time, when there is one."""

    def __init__(self) -> None:
        self._chunk: Any = _NOTHING
        self._ended = False

    def offer(self, chunk: Any) -> None:  # noqa: ANN401 - a Series, an array, a tuple of them
        self._chunk = chunk

    def end(self) -> None:
        self._ended = True

    @property
    def is_taken(self) -> bool:
        return self._chunk is _NOTHING

    def __next__(self) -> Any:  # noqa: ANN401 - likewise
        chunk, self._chunk = self._chunk, _NOTHING
        if chunk is not _NOTHING:
            return chunk
        if self._ended:
            raise StopIteration
        raise ReadAheadError(
            "The iterator function asked for another input before it yielded a result for the "
            "last one. Let it yield exactly one result for each input, as in "
            "`for batch in batches: yield transform(batch)`."
        )


class IteratorFunction:
    """A function called once, whose iterator then gives one result for each chunk.

    It is called with the first chunk, so what it sets up before its loop is set
    up once. If its iterator raises or ends early, it is called anew for the next
    chunk; :func:`eddyline.chance.iterator_state.iterator_is_stateless` tells of
    which functions that changes no answer.
    """

    vectorized = True

    def __init__(
        self,
        function: UserCode,
        pack: Pack,
        unpack: Unpack,
        arrow_type: pa.DataType,
        wanted: str,
    ) -> None:
        """Make it of its parts; ``wanted`` is Spark's name for what ``function`` must return."""
        self._function = function
        self._pack = pack
        self._unpack = unpack
        self._arrow_type = arrow_type
        self._wanted = wanted
        self._feed = _Feed()
        self._results: Iterator[Any] | None = None

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Feed a chunk and take its result; an exception counts for every row of the chunk."""
        if rows == 0:  # Spark sends no empty chunk
            return Vector(pa.nulls(0, self._arrow_type))
        try:
            chunk = self._pack(columns)
            result = self._next_result(chunk[0] if len(chunk) == 1 else tuple(chunk), rows)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            return all_failed(error, rows, self._arrow_type)
        return unpacked(self._unpack, result, rows, self._arrow_type)

    def _next_result(self, chunk: Any, rows: int) -> Any:  # noqa: ANN401 - as in `_Feed`
        results, self._results = self._results, None
        if results is None:
            self._feed = _Feed()
            self._feed.offer(chunk)
            results = as_iterator(self._function(self._feed))
            require_type(results, Iterator, self._wanted, type(results).__name__)
        else:
            self._feed.offer(chunk)
        result = next(results, _NOTHING)
        if not self._feed.is_taken:
            error_class = (
                "INPUT_NOT_FULLY_CONSUMED" if result is _NOTHING else "OUTPUT_EXCEEDS_INPUT_ROWS"
            )
            raise error_of(PySparkRuntimeError, error_class)
        if result is _NOTHING:
            raise rows_mismatch(0, rows)
        self._results = results  # it got here without an error, so it can go on
        return result

    def close(self) -> None:
        """Tell the user's iterator that there is no more input, and let it finish.

        Raises what the user's code raises then, and Spark's error if it yields
        further rows, or anything that is no result.
        """
        results, self._results = self._results, None
        if results is None:
            return
        self._feed.end()
        for result in results:
            self._unpack(result, 0)
