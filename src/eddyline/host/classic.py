"""What Eddyline needs to be of Spark Classic, whose plans live in the driver."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from eddyline import catalyst
from eddyline.errors import ConnectNotSupportedError
from eddyline.quirks.classic_frames import ClassicDataFrame


def classic(df: object) -> ClassicDataFrame:
    """Return a DataFrame; ConnectNotSupportedError or TypeError where it is not a classic one."""
    if catalyst.is_classic(df):
        return df
    if isinstance(df, DataFrame):
        raise _not_classic(df, DataFrame)
    raise TypeError(_expected(DataFrame, df))


def classic_session(spark: object) -> SparkSession:
    """Return a session; ConnectNotSupportedError or TypeError where it is not a classic one."""
    if isinstance(spark, SparkSession):
        return spark
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise _not_classic(spark, SparkSession)
    raise TypeError(_expected(SparkSession, spark))


def chosen_session(spark: SparkSession | None) -> SparkSession:
    """Return a session, by default the active one.

    Raises RuntimeError where there is none or it was stopped, and as :func:`classic_session` does.
    """
    session = SparkSession.getActiveSession() if spark is None else spark
    if session is None:
        raise RuntimeError("There is no active Spark session; create one, or pass one.")
    chosen = classic_session(session)
    if catalyst.is_stopped(chosen):
        raise RuntimeError("This Spark session has been stopped; create a new one.")
    return chosen


def _not_classic(given: object, wanted: type) -> ConnectNotSupportedError:
    return ConnectNotSupportedError(
        f"A {_name(wanted)} of Spark Classic is expected, not {_name(type(given))}. This needs "
        "Spark's driver, which Spark Connect does not let Eddyline reach; eddyline.adapt, explain, "
        "report, enable, disable, learned, progress and concurrent do without. Use a classic "
        "session: SparkSession.builder.master(…) without remote(…)."
    )


def _expected(wanted: type, given: object) -> str:
    return f"A {_name(wanted)} is expected, not {_name(type(given))}."


def _name(kind: type) -> str:
    """Return a type's name in full, as there are many called DataFrame.

    >>> _name(int), _name(SparkSession)
    ('int', 'pyspark.sql.SparkSession')
    """
    for known in (DataFrame, SparkSession):
        if kind is known:
            return f"pyspark.sql.{known.__name__}"
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
