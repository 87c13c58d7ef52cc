"""``eddyline demo lookups``: joins flights with services on loopback, and counts the requests."""

from __future__ import annotations

import eddyline
from eddyline.app.endings import ExitCode, UsageError
from eddyline.app.invocation import DemoLookupsInvocation


def run(invocation: DemoLookupsInvocation) -> ExitCode:
    """Run the command; raise :class:`~eddyline.app.endings.RunError` if rows differ."""
    _require_lookups()
    from eddyline_demos.lookups.lookups_demo import perform  # noqa: PLC0415 - needs what may be missing

    perform(invocation.sample, invocation.runs)
    return ExitCode.DONE


def _require_lookups() -> None:
    """Raise UsageError where the packages are missing that ask services and databases."""
    try:
        _ = eddyline.HttpLookup, eddyline.SqlLookup
    except ModuleNotFoundError as error:
        raise UsageError(
            f'the demo of lookups needs {error.name}: pip install "eddyline[lookups]"'
        ) from None
