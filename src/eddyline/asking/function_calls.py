"""Calls a user's function with patience, within limits."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final

import eddyline
from eddyline.asking.circuit_breaker import CircuitBreaker
from eddyline.asking.gate import Gate
from eddyline.asking.limits import Limits
from eddyline.asking.no_answer import TryAgainError, described_error
from eddyline.asking.pauses import pause, tried
from eddyline.asking.users_function import ABANDONED, Outcome, UsersFunction

_SHOWN: Final = 60
"""Characters of an argument that an error shows."""

_OWN_FILES: Final = (str(Path(eddyline.__file__).parent), asyncio.__path__[0])


class FunctionCallError(Exception):
    """A function has raised, or not answered; it never leaves :mod:`eddyline.asking`."""

    def __init__(self, message: str, *, alone: bool) -> None:
        """Say what happened; ``alone`` tells that smaller batches would fare no better."""
        super().__init__(message)
        self.alone = alone


class FunctionCalls:
    """Makes the calls of one function, and tries again where that may help.

    An OSError, as of a network, and a call that takes too long may pass; nothing else.
    """

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        limits: Limits,
        random: Random,
        now: Callable[[], float],
    ) -> None:
        """Get ready; threads start when they are used."""
        self._name = name
        self._limits = limits
        self._random = random
        self._breaker = CircuitBreaker(now)
        self.gate = Gate(limits)
        self._function = UsersFunction(function, self.gate.width)

    async def call(self, arguments: Sequence[object], begins: Callable[[], None]) -> object:
        """Return what the function returns; ``begins`` is called before each try.

        FunctionCallError where there is no answer; what ``begins`` raises is raised.
        """
        if not self._breaker.lets_through():
            raise FunctionCallError(
                "is not called for a while, since calls before did not succeed", alone=True
            )
        outcome = await self._tried(arguments, begins)
        self._breaker.answered()
        if outcome.error is not None:
            raise FunctionCallError(raised_text(outcome.error), alone=False)
        return outcome.value

    async def close(self) -> None:
        """Let the threads end."""
        self._function.close()

    async def _tried(self, arguments: Sequence[object], begins: Callable[[], None]) -> Outcome:
        """Call until there is an outcome; FunctionCallError where there is none in all tries.

        A loop: what tenacity does for a call that succeeds at once takes 0.2 ms.
        """
        tries = 1
        while True:
            try:
                return await self._try(arguments, begins)
            except TryAgainError as error:
                if tries > self._limits.retries:
                    self._breaker.failed()
                    raise FunctionCallError(f"{error}, {tried(tries)}", alone=True) from None
            await asyncio.sleep(pause(tries, self._random))
            tries += 1

    async def _try(self, arguments: Sequence[object], begins: Callable[[], None]) -> Outcome:
        async with self.gate.request():
            if (refusal := ABANDONED.refusal()) is not None:
                raise FunctionCallError(refusal, alone=True)
            begins()
            outcome = await self._function.outcome(*arguments)
        if isinstance(outcome.error, OSError):
            error = outcome.error
            raise TryAgainError(f"raised {described_error(error)}") from error
        return outcome


def shown(name: str, arguments: Sequence[object]) -> str:
    """Return a call as people write it.

    >>> shown("score", ("a" * 100, None))
    "score('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..., None)"
    """
    texts = map(repr, arguments)
    short = (text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..." for text in texts)
    return f"{name}({', '.join(short)})"


def raised_text(error: Exception) -> str:
    """Return what was raised, and where in the user's code."""
    trace = _users_part(error.__traceback__)
    lines = "".join(traceback.format_tb(trace))
    where = f"\n{lines.rstrip()}" if lines else ""
    return f"raised {described_error(error)}{where}"


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        trace = trace.tb_next
    return trace
