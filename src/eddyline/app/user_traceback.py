"""A traceback from a Python worker, reduced to the user's own part."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyspark

import eddyline

_FRAME = re.compile(r'\s*(?:\| )*File "(?P<file>.+?)", line (?P<line>\d+)')
_START = "Traceback (most recent call last):"

_OF_JAVA = "\n\nJVM stacktrace:"  # which PySpark 4.0 appends

_MACHINERY = tuple(
    f"{Path(file).parent}{os.sep}" for file in (str(eddyline.__file__), str(pyspark.__file__))
)


def user_traceback(text: str) -> str:
    """Return the traceback in a text without the frames of Spark and of Eddyline.

    Chained errors keep all their parts. Text without a traceback is returned
    stripped.

    >>> print(user_traceback('''An exception was thrown from the Python worker:
    ... Traceback (most recent call last):
    ...   File "/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    ...     process()
    ...   File "/home/me/rules.py", line 7, in score
    ...     return 1 / amount
    ... ZeroDivisionError: division by zero
    ... '''))
    Traceback (most recent call last):
      File "/home/me/rules.py", line 7, in score
        return 1 / amount
    ZeroDivisionError: division by zero
    """
    text, _, _ = text.partition(_OF_JAVA)
    _, start, rest = text.partition(_START)
    lines: list[str] = []
    dropping = False
    for line in (start + rest if start else text).strip().splitlines():
        if frame := _FRAME.match(line):
            dropping = _is_machinery(frame["file"])
        elif not line.startswith("    "):  # neither source nor markers below a frame
            dropping = False
        if not dropping and not line.startswith(" SQLSTATE"):
            lines.append(line)
    if not any(_FRAME.match(line) for line in lines):
        lines = [line for line in lines if line != _START]
    return "\n".join(lines).strip()


def innermost_place(told: str) -> str | None:
    """Return file and line of the last frame of a user's traceback; None where it has none.

    >>> innermost_place('  File "/home/me/rules.py", line 7, in score')
    '/home/me/rules.py, line 7'
    """
    frames = [frame for line in told.splitlines() if (frame := _FRAME.match(line))]
    return f"{frames[-1]['file']}, line {frames[-1]['line']}" if frames else None


def _is_machinery(file: str) -> bool:
    return file.startswith(_MACHINERY) or "pyspark.zip" in file
