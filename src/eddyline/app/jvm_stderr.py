"""Keeps lines that nobody asked for off the terminal.

Spark starts Java with an incubator module, and Java announces that on stderr
before it reads any setting; and the Python process that plans a query with state
prints each step that it takes. There is no option to silence them. So the JVM gets
a pipe for its stderr, and all that comes out of it except these lines is handed on.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from threading import Thread
from typing import Final

_OF_JAVA: Final = b"WARNING: Using incubator modules:"
_OF_PLANNING: Final = re.compile(
    rb"(Starting )?Streaming TransformWithStateInPandas Python worker\b"
)
_STDERR = 2


@contextmanager
def jvm_noise_dropped() -> Iterator[None]:
    """Give processes that start inside the block a stderr that drops these lines.

    This process goes on writing to its own stderr, inside the block and after.
    """
    own = os.dup(_STDERR)
    reader, writer = os.pipe()
    os.dup2(writer, _STDERR)
    os.close(writer)
    # A daemon, since the pipe stays open for as long as the JVM lives.
    Thread(target=_hand_on, args=(reader, os.dup(own)), daemon=True).start()
    encoding = sys.stderr.encoding
    with os.fdopen(own, "w", buffering=1, encoding=encoding, errors="backslashreplace") as mine:
        try:
            with redirect_stderr(mine):
                yield
        finally:
            mine.flush()
            os.dup2(own, _STDERR)


def _hand_on(reader: int, target: int) -> None:
    blank_too = False
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if line.startswith(_OF_JAVA) or (blank_too and not line.strip()):
                blank_too = False
                continue
            blank_too = _OF_PLANNING.match(line) is not None
            if blank_too:
                continue
            written = 0
            while written < len(line):
                written += os.write(target, line[written:])
