"""Where a command writes: rows to stdout, everything else to stderr.

Both look the same without colours; colours and animation appear on terminals only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.text import Text

# A pipe has no width. Reports read well at this one; rows are never cut in a pipe.
_PIPED_WIDTH = 100


def chatter() -> Console:
    """Return the console on stderr: progress, reports, errors."""
    return _console(stderr=True)


def results() -> Console:
    """Return the console on stdout: rows and explanations."""
    return _console(stderr=False)


def show(console: Console, what: RenderableType) -> None:
    """Print something that can be several lines; without blanks at their ends in a pipe."""
    with without_blanks_in_a_pipe(console):
        console.print(what)


@contextmanager
def without_blanks_in_a_pipe(console: Console) -> Iterator[None]:
    """Let what is printed inside the block have no blanks at the ends of its lines in a pipe."""
    if console.is_terminal:
        yield
        return
    with console.capture() as captured:
        yield
    console.out("\n".join(line.rstrip() for line in captured.get().splitlines()), highlight=False)


def complain(message: str) -> None:
    """Print an error to stderr; a line is never broken, so that a script can read it."""
    first, _, rest = message.partition("\n")
    console = chatter()
    console.print(
        Text.assemble(("eddyline: error: ", "bold red"), first), soft_wrap=True, highlight=False
    )
    if rest:
        console.print(Text(rest), soft_wrap=True, highlight=False)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(stderr=stderr, width=width, highlight=False)
