"""The eddy in a River: modules behind bounded queues, priorities, back-pressure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from eddyline.engine.policies.policy import Policy
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.engine.statistics import StatisticsTable

QUEUE = 2
"""Tuples that a module's queue holds unless told otherwise; the paper gives no length.

With 2 the share of tuples that the lottery sends to a selection first falls
steadily with its selectivity, as in Figure 6 of the paper. Longer queues smooth
back-pressure out: with 10 the share rises from 45 to 55 % where selectivities are
nearly equal, since there both selections always have work.
"""

BUFFER = 100
"""Unfinished tuples that the eddy answers for at a time, unless told otherwise."""


@dataclass(slots=True)
class Lane:
    """The tuples of one signature that wait in the eddy, oldest first.

    ``mask`` has the bits of ``candidates``. ``following`` are the lanes of the
    tuples that candidates return, None where these are finished; ``open_`` are
    candidates with room by mask. Both are here because a lane is looked at for
    every tuple, and hashing its signature each time would cost more than the rest.
    """

    signature: Signature
    candidates: tuple[int, ...]
    mask: int
    waiting: deque[int] = field(default_factory=deque)
    following: dict[int, Lane | None] = field(default_factory=dict)
    open_: dict[int, tuple[int, ...]] = field(default_factory=dict)


class River:
    """Routes single tuples to modules that work on their own, each behind a bounded queue.

    This is the eddy of Avnur and Hellerstein (2000, Sections 3.2 and 4): tuples
    come from an input, are handed to modules one by one and come back or do not.
    The eddy is a module among the others and has its turn when one of them is
    done with a tuple, and now and then when none is. It places the returned tuples
    that wait, those further on before others, and only when no more of these can
    be placed does it admit a new one: one a turn, and only while fewer than
    ``buffer`` are under way. A full queue is back-pressure: the policy is told which
    candidates have room, and a tuple for a module without room waits, at least
    until the next turn.

    One new tuple a turn is what lets a lottery be heard: were new tuples offered
    until every queue is full, each module would always have work, and the speeds
    of the modules alone would say how many tuples go where, whatever the policy
    prefers. With the lottery of Section 4.3 and Figure 5 at 10 % that costs 1.18
    times the better order, with one a turn it is 1.05 times.

    Against :class:`~eddyline.engine.eddy.Eddy`, which computes in vectors, there
    is no work here: whoever owns the modules takes tuples from :attr:`queues`
    and reports each by :meth:`settle`. A tuple keeps its place in the queue until
    then. Routes, policies, signatures and statistics are the same.

    The river does not change answers: a tuple goes only to candidates of
    :class:`~eddyline.engine.routes.Routes`, and is finished when there are none.
    """

    def __init__(
        self,
        routes: Routes,
        policy: Policy,
        generator: np.random.Generator,
        *,
        tuples: int,
        queue: int = QUEUE,
        buffer: int = BUFFER,
        quantum: int = 1,
    ) -> None:
        """Make a river over the modules of ``routes``; the input is tuples 0 to ``tuples`` - 1.

        ``queue`` is the room in each module's queue, ``quantum`` the most tuples
        that one decision stands for and that are admitted in one turn. ValueError
        if one of these or ``buffer`` is below 1.
        """
        if min(queue, buffer, quantum) < 1:
            raise ValueError(
                f"queue, buffer and quantum are numbers of tuples from 1 on, "
                f"not {queue}, {buffer} and {quantum}"
            )
        self.queues: tuple[deque[tuple[int, Lane]], ...] = tuple(
            deque() for _ in range(routes.modules)
        )
        self.statistics = StatisticsTable()
        self.finished: list[int] = []  # tuple numbers, in the order in which they left
        self.dropped: list[int] = []
        self.sent_tuples: list[int] = []  # every decision: which tuple …
        self.sent_to: list[int] = []  # … went to which module
        self.longest_queue = [0] * routes.modules
        self.most_inside = 0
        self._routes = routes
        self._policy = policy
        self._queue = queue
        self._buffer = buffer
        self._quantum = quantum
        self._room = (1 << routes.modules) - 1  # modules with room, as a mask
        self._inside = 0  # tuples that were admitted and are neither finished nor dropped
        self._lanes: dict[Signature, Lane] = {}
        self._returned: list[Lane] = []  # lanes of returned tuples, furthest on first
        policy.start(routes, generator, queued=True)
        entering = self._lane(ENTERING)
        if entering is None:
            self.finished.extend(range(tuples))
            entering = Lane(ENTERING, (), 0)
        else:
            entering.waiting.extend(range(tuples))
        self._entering = entering

    def dispatch(self) -> None:
        """Take a turn: place returned tuples, then admit a new one.

        Raises RuntimeError where tuples wait and no module has anything to do:
        nothing would ever change then.
        """
        for lane in self._returned:
            if lane.waiting:
                self._place(lane, len(lane.waiting))
        room = self._buffer - self._inside
        if room and self._entering.waiting:
            most = min(room, self._quantum, len(self._entering.waiting))
            self._inside += self._place(self._entering, most)
            self.most_inside = max(self.most_inside, self._inside)
        if not any(self.queues) and (self._inside or self._entering.waiting):
            raise RuntimeError(f"policy {self._policy.name} waits, but no module is busy")

    def settle(self, module: int, *, passed: bool, cost: float) -> None:
        """Take the first tuple of a module's queue as done; it goes on if it ``passed``."""
        tuple_, lane = self.queues[module].popleft()
        self._room |= 1 << module
        self.statistics.record(lane.signature, module, 1, passed, cost)
        self._policy.returned(lane.signature, module, 1, int(passed), cost)
        if not passed:
            self._inside -= 1
            self.dropped.append(tuple_)
            return
        try:
            following = lane.following[module]
        except KeyError:
            following = lane.following[module] = self._lane(
                self._routes.after(lane.signature, module)
            )
        if following is None:
            self._inside -= 1
            self.finished.append(tuple_)
        else:
            following.waiting.append(tuple_)

    def _place(self, lane: Lane, most: int) -> int:
        """Hand up to ``most`` tuples of a lane to modules with room; return how many."""
        policy, waiting = self._policy, lane.waiting
        left = most
        while left:
            room = lane.mask & self._room
            if not room:
                break
            open_ = lane.open_.get(room)
            if open_ is None:
                open_ = lane.open_[room] = tuple(m for m in lane.candidates if room >> m & 1)
            allotment = policy.route(lane.signature, lane.candidates, open_, len(waiting))
            if allotment is None or not room >> allotment.module & 1:
                self._require_candidate(lane, allotment and allotment.module)
                break
            module = allotment.module
            queue = self.queues[module]
            count = min(allotment.tuples, self._quantum, self._queue - len(queue), left)
            policy.sent(lane.signature, module, count)
            for _ in range(count):
                tuple_ = waiting.popleft()
                queue.append((tuple_, lane))
                self.sent_tuples.append(tuple_)
                self.sent_to.append(module)
            length = len(queue)
            self.longest_queue[module] = max(self.longest_queue[module], length)
            if length == self._queue:
                self._room &= ~(1 << module)
            left -= count
        return most - left

    def _require_candidate(self, lane: Lane, module: int | None) -> None:
        if module is not None and module not in lane.candidates:
            raise ValueError(
                f"policy {self._policy.name} chose module {module} for a tuple of "
                f"{lane.signature}, which may go only to {lane.candidates}"
            )

    def _lane(self, signature: Signature) -> Lane | None:
        """Return the lane of a signature, None where its tuples are finished."""
        lane = self._lanes.get(signature)
        if lane is None:
            candidates = self._routes.candidates(signature)
            if not candidates:
                return None
            lane = Lane(signature, candidates, sum(1 << module for module in candidates))
            self._lanes[signature] = lane
            if signature != ENTERING:
                self._returned.append(lane)
                self._returned.sort(key=lambda other: -other.signature.depth)
        return lane
