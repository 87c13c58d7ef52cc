"""How often the JVM is asked for something: each time takes 0.2 ms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME

from tests.looked_up import FORGETFUL


def counted_calls(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """Return how many commands are sent to the JVM while an action runs.

    Those that give back handles are left out: earlier tests may have left some, which go at
    any time. What PySpark looks up is counted, as for a user, each time.
    """
    asked = 0
    send = JavaClient.send_command

    def counted(self: JavaClient, *arguments: object, **options: object) -> object:
        nonlocal asked
        asked += not str(arguments[0]).startswith(MEMORY_COMMAND_NAME)
        return send(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(JavaClient, "send_command", counted)
        for kind, look_up in FORGETFUL.items():
            patch.setattr(kind, "__getattr__", look_up)
        action()
    return asked
