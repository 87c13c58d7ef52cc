"""``eddyline demo rules``: a thousand standing queries over flights, replayed as a stream."""

from __future__ import annotations

from eddyline.app.endings import ExitCode
from eddyline.app.invocation import DemoRulesInvocation
from eddyline_demos.rules.rules_demo import perform


def run(invocation: DemoRulesInvocation) -> ExitCode:
    """Run the command; raise :class:`~eddyline.app.endings.RunError` if results differ."""
    perform(invocation.sample)
    return ExitCode.DONE
