"""Functions of Python for whoever can only send SQL."""

from pyspark.sql.functions import udf


@udf("boolean")
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean")
def tenth(n: int) -> bool:
    return n % 10 == 0


@udf
def _hidden(n: int) -> int:
    return n
