"""What went wrong in a user's Python file, and in which of its lines, in one line."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException

import eddyline
from eddyline.app.spark_errors import essence
from eddyline.app.user_traceback import innermost_place, user_traceback

_INSTALLED = (
    str(Path(eddyline.__file__).parent),
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    "<",  # frozen modules
)


def where_it_failed(error: BaseException, file: str | None = None) -> str:
    """Return the error, after the user's file and line that it came from.

    ``file`` stands in where the error itself names none.
    """
    if isinstance(error, SyntaxError) and error.lineno is not None:  # stands in no frame
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    message = _message(error)
    if isinstance(error, PythonException):  # a worker ran it, of which the text alone tells
        place = innermost_place(user_traceback(str(error)))
        if place is not None:
            return f"{place}: {message}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_INSTALLED):
            return f"{frame.filename}, line {frame.lineno}: {message}"
    return message if file is None else f"{file}: {message}"


def _message(error: BaseException) -> str:
    if isinstance(error, PythonException):  # of a Python function of the user's
        return user_traceback(str(error)).splitlines()[-1]
    if isinstance(error, (PySparkException, Py4JJavaError)):
        return essence(error)
    return " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
