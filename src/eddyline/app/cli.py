"""The command ``eddyline``: hands over to a command, and tells the user what ended it.

Nothing of Spark is imported before the arguments are known to be in order.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from eddyline.app.endings import ExitCode, OutputError, UsageError
from eddyline.app.file_errors import file_errors_explained, printing
from eddyline.app.interrupts import exit_code, interrupts_handled
from eddyline.app.invocation import (
    DemoInvocation,
    DemoLookupsInvocation,
    DemoRulesInvocation,
    ExplainInvocation,
    Invocation,
    JarInvocation,
    ReportInvocation,
    RulesAskInvocation,
    RulesRunInvocation,
    SqlInvocation,
)
from eddyline.app.parser import parse
from eddyline.errors import EddylineError

_COMMANDS: Final[dict[type[Invocation], str]] = {
    DemoInvocation: "eddyline_demos.commands.demo",
    DemoLookupsInvocation: "eddyline_demos.commands.demo_lookups",
    DemoRulesInvocation: "eddyline_demos.commands.demo_rules",
    ExplainInvocation: "eddyline.app.commands.explain",
    JarInvocation: "eddyline.app.commands.jar",
    ReportInvocation: "eddyline.app.commands.report",
    RulesAskInvocation: "eddyline.app.commands.rules_ask",
    RulesRunInvocation: "eddyline.app.commands.rules_run",
    SqlInvocation: "eddyline.app.commands.sql",
}


def program() -> int:
    """Run the command line of this process, which ends then: Ctrl-C counts in :func:`main` only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of this process, and return its exit code.

    Raises SystemExit where there is nothing to run: for ``--help``,
    ``--version`` and arguments that are not understood.
    """
    if sys.stdout is None:  # the shell's `>&-`
        return _complain("standard output cannot be written: it is closed", ExitCode.FAILED)
    with interrupts_handled():
        return _answered(arguments)


def _answered(arguments: Sequence[str] | None) -> int:
    try:
        return _run(arguments)
    except EddylineError as error:
        if isinstance(error, OutputError):
            _drop_output()
        misused = isinstance(error, UsageError)
        return _complain(str(error), ExitCode.MISUSED if misused else ExitCode.FAILED)
    except KeyboardInterrupt:
        return exit_code()
    except BrokenPipeError:
        _drop_output()
        return ExitCode.NO_READER


def _run(arguments: Sequence[str] | None) -> ExitCode:
    with printing():
        try:
            invocation = parse(arguments)
        finally:
            sys.stdout.flush()  # what `--help` printed
    _require_surroundings(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that know few signs
    if not isinstance(invocation, JarInvocation | ReportInvocation):  # which need no Spark
        importlib.import_module("eddyline.host.versions").require_tested_version()
    command = importlib.import_module(_COMMANDS[type(invocation)])
    code: ExitCode = command.run(invocation)
    with printing():
        sys.stdout.flush()
    return code


def _require_surroundings(arguments: Sequence[str]) -> None:
    """Raise :class:`UsageError` for what no command could work with."""
    with file_errors_explained("the current folder", "read"):
        os.getcwd()  # noqa: PTH109 - it may be gone
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                "an argument holds letters that this locale does not know; set LC_ALL=C.UTF-8, "
                "or PYTHONUTF8=1"
            ) from error


def _drop_output() -> None:
    """Let what is still buffered go nowhere, or Python would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, code: ExitCode) -> ExitCode:
    from eddyline.app.terminal import complain  # noqa: PLC0415 - `--help` needs no rich

    complain(message)
    return code
