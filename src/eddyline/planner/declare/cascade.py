"""The public face of cascades: a cheap proxy decides what it can be trusted with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NoReturn

from pyspark.sql import Column
from pyspark.sql.types import BooleanType, DataType, DoubleType
from pyspark.sql.udf import UserDefinedFunction

from eddyline.blocks.filter_block import FunctionKind
from eddyline.cascades.targets import checked_targets
from eddyline.chance import chance_in
from eddyline.checked_values import whole_number
from eddyline.declaring.concurrent import concurrent
from eddyline.planner.declare.declared_cascades import CASCADES, Cascade
from eddyline.quirks import arrow_columns
from eddyline.tasks.not_adapted import CascadeMark, ConcurrentMark

_BY_ROW: Final = frozenset({FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED})


class CascadeUDF(UserDefinedFunction):
    """What :func:`cascade` returns: called with columns, as any UDF, it gives a column."""

    def __call__(self, *columns: Column | str, **named: Column | str) -> Column:
        """Return the column of the cascade's verdicts; TypeError where there is no argument."""
        if not columns and not named:
            raise TypeError(f"{self._name} is a cascade and needs an argument, by which it decides")
        return super().__call__(*columns, **named)

    def asNondeterministic(self) -> NoReturn:  # noqa: N802 - PySpark's name
        """Raise ValueError: what was proven holds for rows that are scored alike again."""
        raise ValueError(f"{self._name} decides by scores, so it must be deterministic")


def cascade(  # what users may set
    oracle: Callable[..., Any],
    *,
    proxy: Callable[..., Any],
    recall: float | None = None,
    precision: float | None = None,
    delta: float = 0.05,
    labels: int = 10_000,
    seed: int | None = None,
) -> CascadeUDF:
    """Return a predicate that a cheap proxy decides where it can be trusted, and an oracle else.

    The answer of a query may change by that, within what is promised here; nothing of this happens
    unless a query calls the result. It is called with columns, stands in filters and select lists,
    and in SQL after ``spark.udf.register(name, result)``; queries with it run through
    :func:`~eddyline.adapt`.

    - ``oracle``: what decides, at a price: the result of :func:`~eddyline.concurrent` that returns
      a boolean, or a function or udf that does, of which a concurrent function is made.
    - ``proxy``: a cheap function of the same arguments that gives a score, a number that is the
      greater the likelier the oracle accepts; it need not be a probability. A plain function, the
      result of ``udf``, ``pandas_udf`` or ``arrow_udf``, or a concurrent function. For None and NaN
      the oracle is asked.
    - ``recall``: of the rows that the oracle would accept, at least this share is accepted. Rows of
      low scores are then dropped unasked.
    - ``precision``: of the rows that are accepted, at least this share would the oracle accept.
      Rows of high scores are then accepted unasked. Without it none are, and precision is 1;
      without ``recall`` none are dropped, and recall is 1.
    - ``delta``: how often the targets may be missed: in at most this share of calibrations.
    - ``labels``: for how many rows the oracle is asked, at the most, to set the thresholds.
    - ``seed``: which rows these are; by default others each time.

    :func:`~eddyline.adapt` sets the thresholds: it draws rows at random from those that the other
    conditions of the filter accept, has the oracle label some of them, and proves what the proxy
    may decide, by tests that are exact for any number of rows and any scores, with the promises of
    SUPG (Kang et al., 2020) and BARGAIN (Zeighami, Shankar and Parameswaran, 2025). Where nothing
    can be proven, the oracle is asked for every row. Labels are not asked for again in the query.
    The thresholds stand for the adapted DataFrame; :func:`~eddyline.explain` shows them.

    Keep the result for as long as queries call it.

    Raises ``TypeError`` and ``ValueError`` for invalid arguments. A query with the cascade raises
    as one with a concurrent function does; so does ``adapt``, which makes calls of the oracle.
    """
    targets = checked_targets(recall, precision, delta)
    most = whole_number(labels, "labels", 1)
    if seed is not None:
        seed = whole_number(seed, "seed", 0)
    asked = _oracle(oracle)
    scored, called = _proxy(proxy)
    name = asked._name  # noqa: SLF001 - PySpark's, and it has no other
    declaration = Cascade(name, asked, scored, called, targets, most, seed)
    mark = CascadeMark(name, CASCADES.add(declaration), declaration)
    udf = CascadeUDF(mark, BooleanType(), name=name, evalType=arrow_columns.STAND_IN)
    functools.update_wrapper(udf, asked, updated=())
    return udf


def _oracle(oracle: Callable[..., Any]) -> UserDefinedFunction:
    """Return the oracle as a concurrent function."""
    given: Any = oracle
    if isinstance(getattr(given, "func", None), CascadeMark):
        raise TypeError(f"{given.func.name} is a cascade: it cannot be the oracle of another")
    if isinstance(given, UserDefinedFunction) and isinstance(given.func, ConcurrentMark):
        asked: Any = given
    elif hasattr(given, "evalType"):
        asked = concurrent(given)
    else:
        asked = concurrent(given, returns=BooleanType())
    returns: DataType | str = asked._returnType  # noqa: SLF001 - its property asks a session
    boolean = isinstance(returns, BooleanType) or str(returns).strip().lower() == "boolean"
    if not boolean:
        raise TypeError(f"an oracle returns a boolean, and {asked._name} returns {returns}")  # noqa: SLF001
    return asked  # type: ignore[no-any-return]


def _proxy(proxy: Callable[..., Any]) -> tuple[Any, Callable[..., Any] | None]:
    """Return the proxy as a UDF, and its function if it can be called row by row."""
    if not callable(proxy):
        raise TypeError(f"a proxy is a function, not {proxy!r}")
    given: Any = proxy
    kind = getattr(given, "evalType", None)
    if kind is None:
        if (chance := chance_in(given)) is not None:
            raise ValueError(
                f"what is proven of a proxy's scores holds where they come out again, and this one "
                f"{chance}; if its scores do not hang on that, mark it with @eddyline.deterministic"
            )
        return UserDefinedFunction(given, DoubleType()), given
    if isinstance(given.func, CascadeMark):
        raise TypeError(f"{given.func.name} is a cascade, which gives no score")
    given = getattr(given, "_unwrapped", given)  # what udf() gives stands for the UDF itself
    if not given.deterministic:
        raise ValueError("a proxy is deterministic: what is proven of its scores holds for these")
    if isinstance(given.func, ConcurrentMark) or kind not in _BY_ROW:
        return given, None
    return given, given.func
