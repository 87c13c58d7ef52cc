"""How often the JVM is asked for something: each time takes 0.2 ms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME


def counted_calls(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """Return how many commands are sent to the JVM while an action runs.

    Those that give back handles are left out: earlier tests may have left some, which go at
    any time.
    """
    asked = 0
    send = JavaClient.send_command

    def counted(self: JavaClient, *arguments: object, **options: object) -> object:
        nonlocal asked
        asked += not str(arguments[0]).startswith(MEMORY_COMMAND_NAME)
        return send(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(JavaClient, "send_command", counted)
        action()
    return asked
