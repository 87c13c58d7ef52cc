"""The public face of slow functions: many calls at a time, within limits of the whole job."""

from __future__ import annotations

import datetime as dt
import functools
import importlib.util
import inspect
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Concatenate, Final, ParamSpec, Protocol, cast, overload

from pyspark.sql.types import DataType, StringType, StructField, StructType
from pyspark.sql.utils import is_remote

from eddyline.asking.batch_size import MOST
from eddyline.asking.declared_functions import DECLARED, Declaration
from eddyline.asking.limits import Limits, OnFailure
from eddyline.asking.price import Cost, Price
from eddyline.asking.quota_rules import OfAnswer, QuotaRules
from eddyline.asking.refusals import IsQuota
from eddyline.blocks.filter_block import FunctionKind
from eddyline.checked_values import whole_number
from eddyline.declaring.concurrent_udf import ConcurrentUDF
from eddyline.errors import ConnectNotSupportedError
from eddyline.keeping.function_version import version_of
from eddyline.keeping.keep import keep_in, span_of
from eddyline.quirks import arrow_columns
from eddyline.tasks.not_adapted import ConcurrentMark

AUTO: Final = "auto"
"""A batch that is as large as it pays."""


P = ParamSpec("P")


class AlsoDecorator(Protocol[P]):
    """What makes a UDF of a function; without a function, what makes one of any."""

    @overload
    def __call__(
        self, function: Callable[..., Any], *args: P.args, **options: P.kwargs
    ) -> ConcurrentUDF: ...

    @overload
    def __call__(
        self, function: None = None, *args: P.args, **options: P.kwargs
    ) -> Callable[[Callable[..., Any]], ConcurrentUDF]: ...


def _also_decorator(
    make: Callable[Concatenate[Callable[..., Any], P], ConcurrentUDF],
) -> AlsoDecorator[P]:
    @functools.wraps(make)
    def made(
        function: Callable[..., Any] | None = None, *args: P.args, **options: P.kwargs
    ) -> ConcurrentUDF | Callable[[Callable[..., Any]], ConcurrentUDF]:
        if function is None:
            return lambda given: make(given, *args, **options)
        return make(function, *args, **options)

    # To be checked it would need the overloads once more.
    return cast("AlsoDecorator[P]", made)


@_also_decorator
def concurrent(  # noqa: PLR0913 - what users may set
    function: Callable[..., Any],
    *,
    returns: DataType | str | None = None,
    max_in_flight: int = 16,
    rate: float | None = None,
    batch: int | str | None = None,
    timeout: float = 30.0,
    retries: int = 3,
    cost: Cost | None = None,
    unit: str = "",
    budget: float | None = None,
    keep: str | os.PathLike[str] | None = None,
    version: str | None = None,
    valid: str | dt.timedelta | None = None,
    on_error: str = "fail",
    patience: str | dt.timedelta = "10 minutes",
    is_quota: IsQuota | None = None,
    tokens: OfAnswer | None = None,
    token_rate: float | None = None,
    price: OfAnswer | None = None,
    too_large: Callable[[Exception], bool] | None = None,
    prefix: Callable[..., Any] | None = None,
) -> ConcurrentUDF:
    """Return a slow function as a UDF that makes many calls at a time.

    It is meant for functions that wait: for a model server, a service, a language model. The result
    is called with columns, and stands in filters and select lists, and in SQL after
    ``spark.udf.register(name, result)``; queries with it run through :func:`~eddyline.adapt`. While
    calls are under way, an eddy goes on with other rows and other predicates (Avnur and
    Hellerstein, 2000, Section 2). Without a function this returns a decorator.

    - ``function``: an ``async def`` function, which runs on an event loop; a plain one, which runs
      in threads; or the result of ``pyspark.sql.functions.udf``. It runs where the driver is, and
      is called once in a job for each distinct tuple of arguments, so it must be deterministic.
      NULL is passed as None. Over Spark Connect it runs in the tasks, and is called once in each
      worker process of a job for each distinct tuple.
    - ``returns``: the type of its values, as for a UDF.
    - ``max_in_flight`` and ``rate``: the most calls under way at a time, and the most that begin in
      a second, for the whole job.
    - ``batch``: with n, the function takes a list of up to n values (tuples where it has several
      arguments), and returns as many. With "auto" n grows as long as a value takes less time in
      larger calls. An exception for which ``too_large(exception)`` is true halves the call, and
      those after it for a while. Of values that wait together those for which ``prefix(argument,
      …)`` is the same text stand next to each other, as caches of model providers like it.
    - ``timeout`` and ``retries``: a call takes at most ``timeout`` seconds; after that, or after an
      ``OSError`` such as a network's, up to ``retries`` further attempts are made. Anything else
      that the function raises is an error of its row, which counts if all other conjuncts accept
      the row.
    - ``on_error``: what becomes of a row for which there is no value. "fail": the query fails;
      "null": the value is NULL; "keep": values are structs of a ``value`` and an ``error``, a text,
      one of them NULL. A batch that fails is halved until only the bad rows have none.
    - ``patience`` and ``is_quota``: a refusal for quota is no failure. All calls of the job wait,
      as long as the service asks for or until it accepts one again, and learn how many it takes;
      only after ``patience``, as "2h", without any accepted call there is no value. Refusals are
      exceptions with status 429, or 503 and a ``Retry-After``, as HTTP clients and those of model
      providers raise them, and those for which ``is_quota(exception)`` is true; it may return
      seconds to wait instead.
    - ``tokens`` and ``token_rate``: ``tokens((argument, …), answer)`` tells how many tokens a value
      took; at most so many a second are taken, evenly.
    - ``cost``, ``unit`` and ``budget``: the cost of a value, a number or a function of the
      arguments, in ``unit``. A batch costs the sum of its values, and each attempt costs again. The
      report adds the costs up, and ``worth`` of :func:`~eddyline.adapt` lets routing consider them.
      A job never spends more than ``budget``. ``price((argument, …), answer)`` tells the cost from
      the answer, as from its usage; until it is known, ``cost`` is held back from the budget, or
      the price of the costliest value so far.
    - ``keep``, ``version`` and ``valid``: a folder in which answers are kept
      (:func:`~eddyline.ledger`), of the driver's machine, or with a URL on any file system that
      Hadoop knows, as "s3a://bucket/answers": arguments that were answered once are not asked for
      again, in this query, the next or another application, after whatever has ended this one.
      Each answer is there before a row has it; failures are not kept. Answers are those of the
      function's ``version``, by default of its code, with what it finds in its closure and its
      module; comments do not count. Those older than ``valid``, as "30 days", are asked for anew.

    Keep the result for as long as queries call it: of functions without any reference, the thousand
    declared or used last are known.

    Raises ``TypeError`` and ``ValueError`` for invalid arguments, and ``ConnectNotSupportedError``
    over Spark Connect for ``rate``, ``token_rate``, ``budget`` and ``keep``, which need one place
    for all calls. A query with the function raises:

    - ``NotAdaptedError``: it runs without ``adapt``.
    - ``FunctionFailedError``: the function raised, took too long, or returned another type, for a
      row that everything else accepts.
    - ``BudgetSpentError``: the next call would cost more than what is left of ``budget``.
    - ``CostError``: ``cost`` raised, or returned no amount.
    - ``FunctionForgottenError``, by ``adapt``: the result of ``concurrent`` was not kept, and a
      thousand others were declared or used since.
    - ``ServerGoneError``: a task cannot reach the driver.

    Errors inside a task reach the driver as Spark's ``PythonException``, with their text.
    """
    remote = is_remote()
    if remote:
        _require_no_limit_of_a_job(
            rate=rate, token_rate=token_rate, budget=budget, keep=keep, version=version, valid=valid
        )
    elif importlib.util.find_spec("aiolimiter") is None:
        message = 'eddyline.concurrent needs aiolimiter: pip install "eddyline[lookups]"'
        raise ModuleNotFoundError(message, name="aiolimiter")
    size = _batch_size(batch)
    limits = Limits(max_in_flight, rate, timeout, retries, patience=span_of(patience, "patience"))
    priced = Price(cost, unit, budget, price)
    failing = OnFailure.named(on_error)
    quota = QuotaRules(is_quota, tokens, token_rate, too_large)
    if prefix is not None and not callable(prefix):
        raise TypeError(f"prefix is a function, not {prefix!r}")
    code, kind = _code_and_type(function, returns)
    if failing is OnFailure.KEEP:
        kind = _with_error(kind)
    name = getattr(code, "__name__", type(code).__name__)
    keeping = keep_in(keep, version, valid)
    if keeping is not None and keeping.version is None:
        # Now: what it finds may change while it runs, as a list of what it was called for.
        keeping = replace(keeping, version=version_of(code))
    adapts = batch == AUTO
    declared = Declaration(
        name, code, limits, size, priced, keeping, failing, quota, adapts, prefix
    )
    number, declaration = DECLARED.add(declared)
    values = max(1, size)
    width = limits.max_in_flight * values
    mark = ConcurrentMark(name, number, width, unit, str(priced), values, declaration)
    udf = _kind_of_udf(remote=remote)(mark, kind, name=name, evalType=arrow_columns.STAND_IN)
    functools.update_wrapper(udf, code, updated=())
    return udf


def kept(
    folder: str | os.PathLike[str],
    *,
    version: str | None = None,
    valid: str | dt.timedelta | None = None,
    **options: Any,  # noqa: ANN401 - those of concurrent
) -> Callable[[Callable[..., Any]], ConcurrentUDF]:
    """Return a decorator for functions whose answers are kept in a folder, also one with a URL.

    ``@eddyline.kept("answers/", version="prompt-3", returns="string")`` is
    :func:`~eddyline.concurrent` with ``keep="answers/"``, which has all further ``options``: the
    function runs where the driver is, and is called once for distinct arguments as long as their
    answers are kept.

    Raises as ``concurrent`` does.
    """
    made: Callable[[Callable[..., Any]], ConcurrentUDF]
    made = concurrent(None, keep=folder, version=version, valid=valid, **options)
    return made


def _kind_of_udf(*, remote: bool) -> type[ConcurrentUDF]:
    """Return what makes UDFs whose columns are those of the sessions at hand."""
    if not remote:
        return ConcurrentUDF
    from eddyline.declaring.client_udf import ConcurrentClientUDF  # noqa: PLC0415 - needs gRPC

    return cast("type[ConcurrentUDF]", ConcurrentClientUDF)


def _require_no_limit_of_a_job(**given: object) -> None:
    """Raise ConnectNotSupportedError for what no task can keep that knows of no other."""
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise ConnectNotSupportedError(
            f"{' and '.join(named)} cannot be kept over Spark Connect: there the tasks call a "
            "concurrent function themselves, each worker process for itself, and nobody knows of "
            "all calls of the job. max_in_flight, batch, timeout, retries, patience and on_error "
            "hold for each of these processes. For the others use a classic session."
        )


def _code_and_type(
    function: Callable[..., Any], returns: DataType | str | None
) -> tuple[Callable[..., Any], DataType | str]:
    if not callable(function):
        raise TypeError(f"a function is expected, not {function!r}")
    kind = getattr(function, "evalType", None)
    if kind is None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__name__} yields values; a function returns one")
        if returns is None:
            raise TypeError('returns= says the type of the values, as returns="double"')
        return function, returns
    udf: Any = function
    if isinstance(udf.func, ConcurrentMark):
        raise TypeError(f"{udf.func.name} is concurrent already")
    if kind not in {FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED}:
        raise TypeError("a plain udf is expected: one over vectors is a function with batch=")
    if not udf.deterministic:
        raise ValueError(
            f"{udf.func.__name__} is not deterministic; a concurrent function is called once "
            f"for each distinct arguments"
        )
    return udf.func, udf.returnType if returns is None else returns


def _with_error(kind: DataType | str) -> StructType | str:
    """Return the type of a value and an error, for values of a type.

    >>> _with_error("decimal(10, 2)")
    'struct<value: decimal(10, 2), error: string>'
    >>> _with_error("a int, b string")
    'struct<value: struct<a int, b string>, error: string>'
    """
    if isinstance(kind, DataType):
        return StructType([StructField("value", kind), StructField("error", StringType())])
    columns = re.match(r"\s*(`[^`]+`|\w+)\s*[:\s]\s*\w", kind) is not None
    text = (
        f"struct<{kind}>" if columns and not kind.strip().lower().startswith("interval") else kind
    )
    return f"struct<value: {text}, error: string>"


def _batch_size(batch: int | str | None) -> int:
    if batch is None:
        return 0
    if batch == AUTO:
        return MOST
    return whole_number(batch, "batch", 1)
