"""How often the JVM is asked for something: each time takes 0.2 ms."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME

from eddyline.catalyst.python_side import NAME
from tests.looked_up import FORGETFUL


def counted_calls(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """Return how many commands are sent to the JVM while an action runs.

    Those that give back handles are left out: earlier tests may have left some, which go at
    any time. So are those of threads that were there before and rewrite nothing, those with which
    an earlier test's lookups ask whether their jobs are over, and the one with which a thread that
    rewrites begins to serve, again where its connection was lost. What PySpark looks up is counted,
    as for a user, each time. All are printed, for a test that fails.
    """
    asked = 0
    send = JavaClient.send_command
    there = {*threading.enumerate()} - {threading.current_thread()}

    def counted(self: JavaClient, *arguments: object, **options: object) -> object:
        nonlocal asked
        command, thread = str(arguments[0]), threading.current_thread()
        begun = thread not in there and not thread.name.startswith("eddyline-stages")
        ours = begun or thread.name.startswith(NAME)
        if ours and "\nserve\n" not in command and not command.startswith(MEMORY_COMMAND_NAME):
            asked += 1
            sys.stdout.write(f"{thread.name}: {command[:200]!r}\n")
        return send(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(JavaClient, "send_command", counted)
        for kind, look_up in FORGETFUL.items():
            patch.setattr(kind, "__getattr__", look_up)
        action()
    return asked
