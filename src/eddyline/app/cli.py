"""The command ``eddyline``: hands over to a command, and tells the user what ended it.

Nothing of Spark is imported before the arguments are known to be in order.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

from eddyline.app.failures import ExitCode, UsageError
from eddyline.app.invocation import (
    DemoInvocation,
    ExplainInvocation,
    Invocation,
    SqlInvocation,
)
from eddyline.app.parser import parse
from eddyline.errors import EddylineError

_COMMANDS: Final[dict[type[Invocation], str]] = {
    DemoInvocation: "eddyline.app.commands.demo",
    ExplainInvocation: "eddyline.app.commands.explain",
    SqlInvocation: "eddyline.app.commands.sql",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of this process, and return its exit code.

    Raises SystemExit where there is nothing to run: for ``--help``,
    ``--version`` and arguments that are not understood.
    """
    invocation = parse(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that know few signs
    try:
        command = importlib.import_module(_COMMANDS[type(invocation)])
        code: ExitCode = command.run(invocation)
        sys.stdout.flush()
    except UsageError as error:
        return _complain(str(error), ExitCode.MISUSED)
    except EddylineError as error:
        return _complain(str(error), ExitCode.FAILED)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # What is still buffered goes nowhere, or Python would complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.NO_READER
    return code


def _complain(message: str, code: ExitCode) -> ExitCode:
    from eddyline.app.terminal import complain  # noqa: PLC0415 - `--help` needs no rich

    complain(message)
    return code
