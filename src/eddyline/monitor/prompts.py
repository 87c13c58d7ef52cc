"""The prompts of interactive sessions, before which what was shown of an action has to go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


def before_prompts(action: Callable[[], None]) -> Callable[[], None]:
    """Call ``action`` before each prompt from now on; return what ends it.

    Python's own prompt and IPython's are known. Where there is none, nothing is called.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None:
        shell.events.register("post_execute", action)
        return lambda: shell.events.unregister("post_execute", action)
    if not hasattr(sys, "ps1"):
        return lambda: None
    prompt = _Prompt(sys.ps1, action)
    sys.ps1 = prompt

    def end() -> None:
        prompt.action = None
        if sys.ps1 is prompt:
            sys.ps1 = prompt.text

    return end


@dataclass(slots=True)
class _Prompt:
    """A prompt of Python's own, which asks for it as text whenever it shows it."""

    text: object
    action: Callable[[], None] | None

    def __str__(self) -> str:
        if self.action is not None:
            self.action()
        return str(self.text)
