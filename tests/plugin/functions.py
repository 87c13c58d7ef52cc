"""Functions of Python for whoever can only send SQL; one knows what another session was asked."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

_here = SparkSession.getActiveSession()
assert _here is not None
_asked = _here.newSession().sql("SELECT 10 * id AS n FROM range(50)").collect()
_TENS = {row["n"] for row in _asked}


@udf("boolean")
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean")
def tenth(n: int) -> bool:
    return n in _TENS


@udf
def _hidden(n: int) -> int:
    return n
