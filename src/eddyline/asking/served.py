"""What the server of lookups serves: methods that can be asked, and their answers for one job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from eddyline.asking.asked_once import Found
from eddyline.asking.lookup_source import Key
from eddyline.asking.shared_lookup import SharedLookupStatistics


class SharedMethod(Protocol):
    """What answers for a job: each key once."""

    def rows(self, keys: Sequence[Key], *, exact: bool = False) -> list[asyncio.Future[Found]]:
        """Return for each key its answer to come; from the event loop only.

        Where it is to be ``exact``, without rows that have the key in another spelling.
        """
        ...

    def expect_of(self, tasks: int, beginning: int = 0) -> None:
        """Know how many tasks may ask for more before they wait for answers alone.

        So many are ``beginning``: they may ask for the first time.
        """
        ...

    def give_up(self, keys: Sequence[Key]) -> None:
        """Forget keys that wait still to be asked for, of which nobody wants the answers."""
        ...

    def statistics(self) -> SharedLookupStatistics:
        """Return what was asked so far."""
        ...

    async def close(self) -> None:
        """Ask no more; keep the answers, and go on if it is asked again."""
        ...


class Method(Protocol):
    """What can be asked: an access method of a table, or a function."""

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedMethod:
        """Return what answers for one job."""
        ...
