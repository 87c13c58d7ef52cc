"""Ctrl-C of a command, and other signals that end it: raised where they do no harm.

Python raises KeyboardInterrupt wherever it happens to be. In the middle of making a folder, or of
deleting it, that leaves it behind; so such stretches put Ctrl-C off to their end. And two presses
in a row mean one: the second is not to cut off what the first began.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from eddyline.app.endings import RunError
from eddyline.app.file_errors import file_errors_explained

_IN_A_ROW: Final = 1.0
"""Seconds after a Ctrl-C in which another one is the same. Later ones count again: the first may
have been taken by somebody's ``except:``."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_AGAIN: Final = 0.05
"""Seconds after which one comes again that Python could not raise where it was."""


@dataclass(slots=True)
class _Interrupts:
    """What is known of Ctrl-C in this process; there is one keyboard, so there is one of these."""

    process: int = 0
    ended_by: int = signal.SIGINT  # the first that came
    raised: float = -math.inf
    waiting: bool = False
    putting_off: int = 0
    before_raising: list[Callable[[], None]] = field(default_factory=list)

    def arrive(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self.process:  # a child about to become another program
            return
        if time.monotonic() < self.raised + _IN_A_ROW:
            return
        self.ended_by = number
        if self.putting_off:
            self.waiting = True
        else:
            self.interrupt()

    def interrupt(self) -> NoReturn:
        self.raised, self.waiting = time.monotonic(), False
        for action in self.before_raising:
            action()
        raise KeyboardInterrupt


_interrupts = _Interrupts()


@contextmanager
def interrupts_handled() -> Iterator[None]:
    """Let Ctrl-C inside the block be handled here."""
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    hook = sys.unraisablehook
    _interrupts.raised, _interrupts.waiting = -math.inf, False
    _interrupts.ended_by = signal.SIGINT
    take_over()
    sys.unraisablehook = partial(_raise_again, hook)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


@contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Let Ctrl-C inside the block take effect when the block ends."""
    _interrupts.putting_off += 1
    try:
        yield
    finally:
        _interrupts.putting_off -= 1
    if _interrupts.waiting and not _interrupts.putting_off:
        _interrupts.interrupt()


@contextmanager
def temporary_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Make a folder that is gone after the block, however that ends.

    Raises :class:`RunError` if it cannot be made.
    """
    with interrupts_put_off(), file_errors_explained("a temporary folder", "made", RunError):
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=within, ignore_cleanup_errors=True)
    try:
        yield Path(folder.name)
    finally:
        with interrupts_put_off():
            folder.cleanup()


def take_over() -> None:
    """Handle Ctrl-C here from now on; others, such as PySpark, install handlers of their own."""
    if threading.current_thread() is threading.main_thread():
        _interrupts.process = os.getpid()
        signal.signal(signal.SIGINT, _interrupts.arrive)
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, _interrupts.arrive)


def exit_code() -> int:
    """Return the exit code that tells the shell which signal has ended a command."""
    return 128 + _interrupts.ended_by


def _raise_again(
    hook: Callable[[sys.UnraisableHookArgs], object], unraisable: sys.UnraisableHookArgs
) -> None:
    """Let Ctrl-C come again where Python could not raise it, as while it forks or finalizes."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        hook(unraisable)
        return
    _interrupts.raised = -math.inf
    again = threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()


@contextmanager
def before_interrupts(action: Callable[[], None]) -> Iterator[None]:
    """Call ``action`` before a Ctrl-C inside the block is raised."""
    _interrupts.before_raising.append(action)
    try:
        yield
    finally:
        _interrupts.before_raising.remove(action)
