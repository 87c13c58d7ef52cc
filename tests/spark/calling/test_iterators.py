"""Iterator functions: set up once, then one result for each chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.engine.errors import CollectiveFailure
from eddyline.engine.vector import Vector
from eddyline.spark.calling import ReadAheadError, WorkerFunction, make_function
from eddyline.spark.filter_block import FunctionKind, SessionSettings
from tests.spark.calling.probes import user_function

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")

KINDS = [FunctionKind.ARROW_ITERATOR, FunctionKind.PANDAS_ITERATOR]

Chunks = Iterator[Any]


def made(
    function: Any,  # noqa: ANN401 - any callable
    kind: FunctionKind = FunctionKind.ARROW_ITERATOR,
    arguments: int = 1,
    keywords: tuple[str | None, ...] | None = None,
) -> WorkerFunction:
    types = ["bigint"] * arguments
    return make_function(user_function(function, kind, types, "bigint", keywords), SETTINGS)


def failure(vector: Vector) -> Exception:
    """Return the error that all rows of a vector share."""
    (shared,) = set(vector.errors.values())
    assert isinstance(shared, CollectiveFailure)
    assert len(vector.errors) == len(vector)
    assert vector.values.null_count == len(vector)
    return shared.error


@pytest.mark.parametrize("kind", KINDS)
def test_set_up_runs_once_and_state_lives_on(kind: FunctionKind) -> None:
    log: list[str] = []

    def numbered(chunks: Chunks) -> Chunks:
        log.append("set up")
        for number, chunk in enumerate(chunks):
            yield pc.add(chunk, number) if isinstance(chunk, pa.Array) else chunk + number
        log.append("finished")

    function = made(Pinned(numbered), kind)
    assert function.vectorized
    assert log == []
    assert function([pa.array([10, 20])], 2).values.to_pylist() == [10, 20]
    assert function([pa.array([], pa.int64())], 0).values.to_pylist() == []
    assert function([pa.array([10])], 1).values.to_pylist() == [11]
    assert log == ["set up"]
    function.close()
    assert log == ["set up", "finished"]
    function.close()  # nothing is open any more


def test_several_arguments_come_as_a_tuple_and_named_ones_do_not_come() -> None:
    def first_minus_second(chunks: Chunks) -> Chunks:
        for left, right in chunks:
            yield pc.subtract(left, right)

    columns = [pa.array([5]), pa.array([2]), pa.array([100])]
    function = made(first_minus_second, arguments=3, keywords=(None, None, "scale"))
    assert function(columns, 1).values.to_pylist() == [3]


def test_an_iterator_that_is_no_generator_works_as_well() -> None:
    function = made(lambda chunks: map(pc.negate, chunks))
    assert function([pa.array([1])], 1).values.to_pylist() == [-1]
    assert function([pa.array([2])], 1).values.to_pylist() == [-2]
    function.close()


def test_after_an_error_the_function_is_called_anew() -> None:
    starts: list[int] = []

    def careful(chunks: Chunks) -> Chunks:
        starts.append(len(starts))
        for chunk in chunks:
            if pc.min(chunk).as_py() < 0:
                raise ArithmeticError("negative")
            yield chunk

    function = made(Pinned(careful))
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    error = failure(function([pa.array([1, -1])], 2))
    assert isinstance(error, ArithmeticError)
    assert function([pa.array([3])], 1).values.to_pylist() == [3]
    assert starts == [0, 1]


def test_a_result_that_cannot_be_converted_does_not_end_the_iterator() -> None:
    starts: list[int] = []

    def mixed(chunks: Chunks) -> Chunks:
        starts.append(len(starts))
        for chunk in chunks:
            yield chunk if chunk[0].as_py() else pa.array(["x"])

    function = made(Pinned(mixed))
    assert "RESULT_COLUMN_TYPES_MISMATCH" in str(failure(function([pa.array([0])], 1)))
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    assert starts == [0]


def test_reading_ahead_is_an_error_and_no_hang() -> None:
    def pairs(chunks: Chunks) -> Chunks:
        for chunk in chunks:
            yield pa.concat_arrays([chunk, next(chunks)])

    error = failure(made(pairs)([pa.array([1])], 1))
    assert isinstance(error, ReadAheadError)
    assert "exactly one result for each input" in str(error)


def test_ending_early_is_sparks_error() -> None:
    def only_one(chunks: Chunks) -> Chunks:
        yield next(chunks)

    function = made(only_one)
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    assert "INPUT_NOT_FULLY_CONSUMED" in str(failure(function([pa.array([1])], 1)))


def test_reading_without_a_result_is_sparks_error() -> None:
    def nothing(chunks: Chunks) -> Chunks:
        for chunk in chunks:
            if chunk is None:
                yield chunk

    # Its loop asks for another input right away.
    assert isinstance(failure(made(nothing)([pa.array([1])], 1)), ReadAheadError)

    def silent(chunks: Chunks) -> Chunks:
        next(chunks)
        yield from ()

    assert "RESULT_ROWS_MISMATCH" in str(failure(made(silent)([pa.array([1])], 1)))


def test_a_result_before_any_input_is_sparks_error() -> None:
    def hasty(chunks: Chunks) -> Chunks:
        yield pa.array([1])
        yield from chunks

    assert "OUTPUT_EXCEEDS_INPUT_ROWS" in str(failure(made(hasty)([pa.array([1])], 1)))


def test_what_is_no_iterator_is_sparks_error() -> None:
    error = failure(made(lambda chunks: list(chunks)[:0])([pa.array([1])], 1))
    assert isinstance(error, ReadAheadError)
    assert "UDF_RETURN_TYPE" in str(failure(made(lambda _: 5)([pa.array([1])], 1)))


def test_rows_after_the_last_input_are_sparks_error() -> None:
    def trailing(chunks: Chunks) -> Chunks:
        yield from chunks
        yield pa.array([], pa.int64())
        yield pa.array([1])

    function = made(trailing)
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    with pytest.raises(Exception, match="OUTPUT_EXCEEDS_INPUT_ROWS"):
        function.close()


def test_what_the_users_code_raises_at_its_end_is_raised() -> None:
    def angry(chunks: Chunks) -> Chunks:
        yield from chunks
        raise LookupError("at the end")

    function = made(angry)
    function([pa.array([1])], 1)
    with pytest.raises(LookupError, match="at the end"):
        function.close()
