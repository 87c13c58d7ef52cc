"""What of Spark's errors a user needs: what happened and where, without plans and stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException

from eddyline.app.endings import RunError, UsageError
from eddyline.app.user_traceback import user_traceback
from eddyline.quirks.pyspark_errors import condition_of

_FAILURE_IN_TASK = re.compile(r".*most recent failure: Lost task [^:]*: ", re.DOTALL)
_JAVA_CLASS = re.compile(r"^\s*(?:[a-z]\w*\.)+([A-Z][\w$]*): ")
_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_END = re.compile(
    r"\s*(?:SQLSTATE: \w{5}|\n\s*at |\n== SQL|\n\nDriver stack|\n\nJVM stack).*", re.DOTALL
)
_POSITION = re.compile(r"line (\d+),? pos(ition)? (\d+)")


def essence(error: PySparkException | Py4JJavaError) -> str:
    """Return what happened, and where in the query if that is known, in one line."""
    return _what(error) + _place(error)


@contextmanager
def spark_errors_explained(tables: Sequence[str] = ()) -> Iterator[None]:
    """Raise an error of ours in place of Spark's.

    A query that Spark does not understand is the user's mistake, a
    :class:`UsageError`; all else went wrong while the query ran, and is a
    :class:`RunError`. ``tables`` are those that the query can name. What fails while a Ctrl-C is
    on its way, as PySpark's own clearing up may, is that Ctrl-C.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if comes_of_interrupt(error):
            raise KeyboardInterrupt from error
        raise _explained(error, tables) from error
    except (Py4JNetworkError, ConnectionError) as error:
        if comes_of_interrupt(error):
            raise KeyboardInterrupt from error
        if isinstance(error, BrokenPipeError):  # nobody reads what is printed
            raise
        raise RunError("Spark's Java process has ended; was there too little memory?") from error


def comes_of_interrupt(error: BaseException) -> bool:
    """Whether an error happened while a Ctrl-C was on its way."""
    before = error.__context__
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__context__
    return before is not None


def _explained(
    error: PySparkException | Py4JJavaError, tables: Sequence[str]
) -> UsageError | RunError:
    if isinstance(error, PythonException):
        told = user_traceback(str(error))
        if "\n" not in told:  # it has no line of the user's, as where a disk is full
            return RunError(f"the query failed in Python: {told}")
        return RunError(f"a Python function failed\n{told}")
    if isinstance(error, ParseException):
        return UsageError(f"the SQL does not parse: {essence(error)}")
    if isinstance(error, AnalysisException):
        return UsageError(_mistake(error, tables) + _place(error))
    return RunError(f"the query failed: {essence(error)}")


def _mistake(error: AnalysisException, tables: Sequence[str]) -> str:
    condition = condition_of(error)
    parameters = error.getMessageParameters() or {}
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = parameters["relationName"].replace("`", "")
        return f"there is no table {name}; {_tables_that_are(name, tables)}"
    if condition == "UNRESOLVED_ROUTINE":
        name = parameters["routineName"].replace("`", "")
        return f"there is no function {name}; name one of yours by --udf MODULE:FUNCTION"
    return _what(error)


def _tables_that_are(name: str, tables: Sequence[str]) -> str:
    if "." in name:
        return f"if it is a file, put it in quotes: FROM '{name}'"
    if tables:
        return f"the tables are {', '.join(tables)}"
    return f"name a file: FROM '{name}.csv', or --table {name}={name}.csv"


def essence_of(text: str) -> str:
    """Return what an error of Spark's says, given its text alone, in one line."""
    return _what_of(text) + _place_in(text)


def _what(error: PySparkException | Py4JJavaError) -> str:
    return _what_of(_text(error)) or type(error).__name__


def _what_of(text: str) -> str:
    java_class = ""
    for noise in (_FAILURE_IN_TASK, _JAVA_CLASS, _CONDITION, _END):
        if noise is _JAVA_CLASS and (match := noise.match(text)):
            java_class = match[1]
        text = noise.sub("", text, count=1)
    # What follows in further lines is advice on settings and on other statements.
    text = text.strip().partition("\n")[0].rstrip(". ")
    if java_class and " " not in text:  # such as the name of a host that is not known
        text = f"{java_class}: {text}"
    return text


def _place(error: PySparkException | Py4JJavaError) -> str:
    return _place_in(_text(error))


def _place_in(text: str) -> str:
    position = _POSITION.search(text)
    if position is None:
        return ""
    # "pos" counts from 0, "position" from 1
    column = int(position[3]) + (0 if position[2] else 1)
    return f" (line {position[1]}, column {column})"


def _text(error: PySparkException | Py4JJavaError) -> str:
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getMessage())
    return str(error)
