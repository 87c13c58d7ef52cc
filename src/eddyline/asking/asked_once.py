"""Keys of which each is asked for once, however many want it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import Any, Final, Generic

from eddyline.asking.way_to_answers import Found, Wanted


class AskedOnce(Generic[Wanted]):
    """Answers to keys; each key is asked for once, its answer kept. For one event loop.

    Keys that nobody knows stand in ``waiting``; workers take them from there and give each
    its answer, or the failure.

    >>> import pyarrow as pa
    >>> async def shown() -> list[object]:
    ...     asked = AskedOnce[str]()
    ...     async def work() -> None:
    ...         while asked.waiting:
    ...             key = asked.waiting.popleft()
    ...             asked.answer(key, Found(pa.record_batch({"k": [key]}), 0.0))
    ...     answers = asked.answers("aba")
    ...     for _ in range(asked.workers_missing(width=4)):
    ...         asked.start(work())
    ...     found = await asyncio.gather(*answers)
    ...     return [asked.count, *(each.rows["k"][0].as_py() for each in found)]
    >>> asyncio.run(shown())
    [2, 'a', 'b', 'a']
    """

    def __init__(self) -> None:
        self.waiting: Final[deque[Wanted]] = deque()
        self._answers: dict[Wanted, asyncio.Future[Found]] = {}
        self._workers: dict[asyncio.Task[None], object] = {}
        self.done = 0
        """Keys that have their answer, or have failed."""

    @property
    def count(self) -> int:
        """Keys that were asked for so far."""
        return len(self._answers) - len(self.waiting)

    @property
    def known(self) -> int:
        """Keys that somebody wants to know of, asked for or not."""
        return len(self._answers)

    def answers(self, keys: Iterable[Wanted]) -> list[asyncio.Future[Found]]:
        """Return for each key its answer to come; new ones wait from now on."""
        loop = asyncio.get_running_loop()
        futures = []
        for key in keys:
            future = self._answers.get(key)
            if future is None:
                future = self._answers[key] = loop.create_future()
                self.waiting.append(key)
            futures.append(future)
        return futures

    def answered(self, key: Wanted) -> bool:
        """Tell whether a key has its answer, or has failed."""
        return self._answers[key].done()

    def answer(self, key: Wanted, found: Found) -> None:
        """Give everybody the answer to a key; it counts if there is none yet."""
        if not self.answered(key):
            self._answers[key].set_result(found)
            self.done += 1

    def fail(self, key: Wanted, error: Exception) -> None:
        """Raise an error for everybody who wants a key."""
        self._answers[key].set_exception(error)
        self.done += 1
        self._answers[key].exception()  # nobody may ask again, and need not

    def workers_missing(self, width: int, at: object = None, calls: int | None = None) -> int:
        """Return how many workers should start ``at`` one place, where ``width`` may work.

        There are ``calls`` to be made; by default one for each waiting key.
        """
        # A worker that has just ended is among them until the loop comes to it.
        busy = sum(not task.done() for task, place in self._workers.items() if place is at)
        return max(0, min(len(self.waiting) if calls is None else calls, width - busy))

    def give_up(self, keys: Iterable[Wanted]) -> None:
        """Forget those of these keys that still wait: nobody wants their answers any more."""
        gone = set(keys).intersection(self.waiting)
        if not gone:
            return
        left = [key for key in self.waiting if key not in gone]
        self.waiting.clear()
        self.waiting.extend(left)
        for key in gone:
            self._answers.pop(key).cancel()

    def start(self, work: Coroutine[Any, Any, None], at: object = None) -> None:
        """Begin to work at a place."""
        worker = asyncio.get_running_loop().create_task(work)
        self._workers[worker] = at
        worker.add_done_callback(self._workers.pop)

    async def close(self) -> None:
        """Stop the workers; keep the answers, and forget the keys that have none."""
        self.waiting.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for key, answer in list(self._answers.items()):
            if not answer.done():
                answer.cancel()
                del self._answers[key]
