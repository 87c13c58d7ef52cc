"""Iterator functions: set up once, then one result for each chunk."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

import eddyline
from eddyline.blocks.decline import DeclineReason
from eddyline.blocks.filter_block import FunctionKind, SessionSettings
from eddyline.errors import ReadAheadError
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.planner.adapt import adapt, explain
from eddyline.quirks.pyspark_at_hand import MINOR
from eddyline.tasks.calling import WorkerFunction, make_function
from tests.tasks.calling.probes import Pinned, user_function
from tests.tasks.calling.spark_worker import spark_result

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")

KINDS = [FunctionKind.ARROW_ITERATOR, FunctionKind.PANDAS_ITERATOR]

Chunks = Iterator[Any]
Code = Callable[[Chunks], Any]


def made(
    function: Code,
    kind: FunctionKind = FunctionKind.ARROW_ITERATOR,
    arguments: int = 1,
    keywords: tuple[str | None, ...] | None = None,
) -> WorkerFunction:
    types = ["bigint"] * arguments
    return make_function(user_function(function, kind, types, "bigint", keywords), SETTINGS)


def failure(vector: Vector) -> Exception:
    """Return the error that all rows of a vector share, of which any may be the cause."""
    shared = failure_of_all(vector)
    assert isinstance(shared, CollectiveFailure)
    return shared.error


def failure_of_all(vector: Vector) -> Exception:
    """Return the error that all rows of a vector share."""
    (shared,) = set(vector.errors.values())
    assert len(vector.errors) == len(vector)
    assert vector.values.null_count == len(vector)
    return shared


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


def said_by_spark(function: Code, *chunks: list[int], kind: FunctionKind = KINDS[0]) -> str:
    """Return the error that plain Spark's worker raises."""
    with pytest.raises(Exception, match=r"\S") as raised:
        spark_result(
            user_function(function, kind, ["bigint"], "bigint"),
            SETTINGS,
            [[pa.array(chunk)] for chunk in chunks],
        )
    return str(raised.value)


def test_what_is_closed_before_its_first_chunk_is_not_called() -> None:
    log: list[Chunks] = []
    function = made(Pinned(log.append))
    function([pa.array([], pa.int64())], 0)
    function.close()
    assert log == []


@pytest.mark.parametrize("kind", KINDS)
def test_one_argument_comes_by_itself_and_several_as_a_tuple(kind: FunctionKind) -> None:
    seen: list[Any] = []

    def noting(chunks: Chunks) -> Chunks:
        for chunk in chunks:
            seen.append(chunk)
            yield chunk[0] if isinstance(chunk, tuple) else chunk

    column = pa.array([5, 6])
    assert made(Pinned(noting), kind)([column], 2).values.to_pylist() == [5, 6]
    assert made(Pinned(noting), kind, 2)([column, column], 2).values.to_pylist() == [5, 6]
    single, (left, right) = seen
    assert type(single) is type(left) is type(right)
    assert list(single.to_numpy()) == [5, 6]


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


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_error_the_function_is_called_anew(kind: FunctionKind) -> None:
    starts: list[int] = []

    def careful(chunks: Chunks) -> Chunks:
        starts.append(len(starts))
        for number, chunk in enumerate(chunks):
            if chunk.to_numpy().min() < 0:
                raise ArithmeticError(number)
            yield chunk

    function = made(Pinned(careful), kind)
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    error = failure(function([pa.array([1, -1])], 2))
    assert isinstance(error, ArithmeticError)
    assert error.args == (1,)
    error = failure(function([pa.array([-1])], 1))  # the first chunk of the second iterator
    assert error.args == (0,)
    fine = function([pa.array([3])], 1)
    assert fine.values.to_pylist() == [3]
    assert not fine.errors
    assert starts == [0, 1, 2]


def test_what_raises_before_its_loop_is_tried_again() -> None:
    starts: list[int] = []

    def reluctant(chunks: Chunks) -> Chunks:
        starts.append(len(starts))
        if len(starts) == 1:
            raise ConnectionError("not yet")
        return iter(chunks)

    function = made(Pinned(reluctant))
    assert isinstance(failure(function([pa.array([1])], 1)), ConnectionError)
    assert function([pa.array([2])], 1).values.to_pylist() == [2]
    assert function([pa.array([3])], 1).values.to_pylist() == [3]
    assert starts == [0, 1]


def test_an_iterator_that_raised_is_left_even_if_it_could_go_on() -> None:
    log: list[str] = []

    def resumable(chunks: Chunks) -> Chunks:
        log.append("set up")

        def step(chunk: Any) -> Any:  # noqa: ANN401 - an array or None
            if chunk is None:
                log.append("finished")
                return pa.array([], pa.int64())
            return pc.subtract_checked(chunk, 2**63 - 1)

        return map(step, itertools.chain(chunks, [None]))

    function = made(Pinned(resumable))
    assert isinstance(failure(function([pa.array([-5])], 1)), pa.ArrowInvalid)
    function.close()
    assert log == ["set up"]  # nothing was open
    assert function([pa.array([2**63 - 1])], 1).values.to_pylist() == [0]
    function.close()
    assert log == ["set up", "set up", "finished"]


@pytest.mark.parametrize("order", [SystemExit, KeyboardInterrupt])
def test_an_order_to_stop_is_no_rows_error(order: type[BaseException]) -> None:
    def leaving(chunks: Chunks) -> Chunks:
        for _ in chunks:
            raise order
        yield

    with pytest.raises(order):
        made(leaving)([pa.array([1])], 1)


def test_a_result_that_cannot_be_converted_does_not_end_the_iterator() -> None:
    starts: list[int] = []

    def mixed(chunks: Chunks) -> Chunks:
        starts.append(len(starts))
        for chunk in chunks:
            yield chunk if chunk[0].as_py() else pa.array(["x"])

    function = made(Pinned(mixed))
    error = failure(function([pa.array([0])], 1))
    assert "RESULT_COLUMN_TYPES_MISMATCH" in str(error)
    assert str(error) == said_by_spark(mixed, [0])
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    assert starts == [0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda chunk: chunk[:1], "RESULT_ROWS_MISMATCH"),
        (lambda chunk: chunk.take([0, 0, 0]), "OUTPUT_EXCEEDS_INPUT_ROWS"),
        (lambda chunk: chunk.to_numpy(), "UDF_RETURN_TYPE"),
    ],
    ids=["shorter", "longer", "no vector"],
)
def test_results_are_checked_as_in_spark(
    kind: FunctionKind, result: Callable[[Any], Any], message: str
) -> None:
    def code(chunks: Chunks) -> Chunks:
        return map(result, chunks)

    vector = made(code, kind)([pa.array([1, 2])], 2)
    # A wrong number of results is no row's own fault, and no row is tried alone.
    error = failure(vector) if message == "UDF_RETURN_TYPE" else failure_of_all(vector)
    assert message in str(error)
    assert str(error) == said_by_spark(code, [1, 2], kind=kind)


def test_results_get_the_declared_type() -> None:
    def doubled(chunks: Chunks) -> Chunks:
        return (chunk * 2.0 for chunk in chunks)

    vector = made(doubled, FunctionKind.PANDAS_ITERATOR)([pa.array([1, 2])], 2)
    assert vector.values.equals(pa.array([2, 4]))


def test_reading_ahead_is_an_error_and_no_hang() -> None:
    def pairs(chunks: Chunks) -> Chunks:
        for chunk in chunks:
            yield pa.concat_arrays([chunk, next(chunks)])

    function = made(pairs)
    for _ in range(2):
        error = failure(function([pa.array([1])], 1))
        assert isinstance(error, ReadAheadError)
        assert "exactly one result for each input" in str(error)


def test_ending_early_is_sparks_error_and_the_next_chunk_is_tried_again() -> None:
    def only_one(chunks: Chunks) -> Chunks:
        yield next(chunks)

    function = made(only_one)
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    error = failure(function([pa.array([2])], 1))
    assert "INPUT_NOT_FULLY_CONSUMED" in str(error)
    assert str(error) == said_by_spark(only_one, [1], [2])
    assert function([pa.array([3])], 1).values.to_pylist() == [3]


def test_to_filter_chunks_is_to_read_ahead() -> None:
    def nothing(chunks: Chunks) -> Chunks:
        for chunk in chunks:
            if chunk is None:
                yield chunk

    # Its loop asks for another input right away.
    assert isinstance(failure(made(nothing)([pa.array([1])], 1)), ReadAheadError)


def test_reading_without_a_result_is_sparks_error() -> None:
    def silent(chunks: Chunks) -> Chunks:
        next(chunks)
        yield from ()

    error = failure(made(silent)([pa.array([1])], 1))
    assert "RESULT_ROWS_MISMATCH" in str(error)
    assert str(error) == said_by_spark(silent, [1])


def test_a_result_before_any_input_is_sparks_error() -> None:
    def hasty(chunks: Chunks) -> Chunks:
        yield pa.array([1])
        yield from chunks

    error = failure(made(hasty)([pa.array([1])], 1))
    assert "OUTPUT_EXCEEDS_INPUT_ROWS" in str(error)
    assert str(error) == said_by_spark(hasty, [1])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_iterator_is_sparks_error(kind: FunctionKind) -> None:
    def number(_: Chunks) -> int:
        return 5

    error = failure(made(number, kind)([pa.array([1])], 1))
    assert "UDF_RETURN_TYPE" in str(error)
    assert str(error) == said_by_spark(number, [1], kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_an_iterator_where_it_is_one_to_spark(kind: FunctionKind) -> None:
    def listed(chunks: Chunks) -> list[Any]:
        return [next(chunks)]

    vector = made(listed, kind)([pa.array([1])], 1)
    if MINOR >= (4, 3):
        error = str(failure(vector))
        assert "UDF_RETURN_TYPE" in error
        assert error == said_by_spark(listed, [1], kind=kind)
        return
    function = user_function(listed, kind, ["bigint"], "bigint")
    (said,) = spark_result(function, SETTINGS, [[pa.array([1])]])
    assert vector.values.to_pylist() == said.to_pylist() == [1]
    assert not vector.errors


def test_rows_after_the_last_input_are_sparks_error() -> None:
    def trailing(chunks: Chunks) -> Chunks:
        yield from chunks
        yield pa.array([], pa.int64())
        yield pa.array([1])

    function = made(trailing)
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    with pytest.raises(Exception, match="OUTPUT_EXCEEDS_INPUT_ROWS") as raised:
        function.close()
    assert str(raised.value) == said_by_spark(trailing, [1])
    function.close()  # nothing is open any more


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last", [5, [], pa.array(["x"])], ids=["number", "list", "texts"])
def test_what_is_no_result_after_the_last_input_is_sparks_error(
    kind: FunctionKind, last: object
) -> None:
    def trailing(chunks: Chunks) -> Chunks:
        yield from chunks
        yield last

    function = made(trailing, kind)
    assert function([pa.array([1])], 1).values.to_pylist() == [1]
    with pytest.raises(Exception, match=r"UDF_RETURN_TYPE|RESULT_COLUMN") as raised:
        function.close()
    assert str(raised.value) == said_by_spark(trailing, [1], kind=kind)


def test_what_the_users_code_raises_at_its_end_is_raised() -> None:
    def angry(chunks: Chunks) -> Chunks:
        yield from chunks
        raise LookupError("at the end")

    function = made(angry)
    function([pa.array([1])], 1)
    with pytest.raises(LookupError, match="at the end"):
        function.close()


def test_a_failed_end_is_not_tried_again() -> None:
    def resumable(chunks: Chunks) -> Chunks:
        return map(pc.negate_checked, itertools.chain(chunks, ["no array", "no array"]))

    function = made(resumable)
    assert function([pa.array([1])], 1).values.to_pylist() == [-1]
    with pytest.raises(pa.ArrowNotImplementedError):
        function.close()
    function.close()


def test_a_marked_function_runs_in_an_eddy_and_an_unmarked_one_in_spark(
    spark: SparkSession,
) -> None:
    def no_third(chunks: Iterator[pa.Array]) -> Iterator[pa.Array]:
        known: dict[int, bool] = {}
        for chunk in chunks:
            yield pa.array([known.setdefault(n % 100, n % 100 % 3 > 0) for n in chunk.to_pylist()])

    def even(chunks: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for chunk in chunks:
            yield pc.equal(pc.bit_wise_and(chunk, 1), 0)

    numbers = spark.range(0, 1000, 1, 2)
    by_hints: Any = arrow_udf  # its own types ask for a kind, which PySpark then warns of
    is_even = by_hints(even, "boolean")
    by_memory = by_hints(no_third, "boolean")
    unmarked = numbers.filter(by_memory("id") & is_even("id"))
    assert adapt(unmarked) is unmarked
    (left,) = [e for e in explain(unmarked).left if e.reason is DeclineReason.STATEFUL_ITERATOR]
    assert left.text == "no_third(id)"
    assert "`known` exists before its loop" in left.why
    assert "mark it with eddyline.stateless" in left.why

    by_mark = by_hints(eddyline.stateless(no_third), "boolean")
    fast = adapt(numbers.filter(by_mark("id") & is_even("id")))
    (block,) = explain(fast).blocks
    assert set(block.predicates) == {"no_third(id)", "even(id)"}
    assert sorted(fast.collect()) == sorted(unmarked.collect())
