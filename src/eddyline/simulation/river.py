"""The eddy in a River: modules behind bounded queues, priorities, back-pressure."""

from __future__ import annotations

from collections import deque
from numbers import Integral

import numpy as np

from eddyline.engine.lane import Lane
from eddyline.engine.modules.module import BoundedQueue
from eddyline.engine.policies.policy import Policy
from eddyline.engine.routes import Routes
from eddyline.engine.routing import Departure, Routing
from eddyline.engine.signature import ENTERING
from eddyline.engine.statistics import StatisticsTable
from eddyline.simulation.fixed_quantum import FixedQuantum

QUEUE = 2
"""Tuples that a module's queue holds unless told otherwise: the one at work, and one that waits.

The paper gives no length, but says that an operator is always given the tuple of highest priority
(Section 4), and returned tuples have a higher one than new ones. In a queue nobody goes first: of
so many tuples as wait in it, one that returns is behind as many new ones. So the queue that the
paper's priorities need is the shortest that there is.
"""

BUFFER = 100
"""Unfinished tuples that the eddy answers for at a time, unless told otherwise."""


def is_whole(number: object, least: int) -> bool:
    """Tell whether something is a whole number, and large enough.

    >>> is_whole(1, 1), is_whole(0, 1), is_whole(1.0, 1)
    (True, False, False)
    """
    return isinstance(number, Integral) and int(number) >= least


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

    That is a river in which routing takes no time. Where it takes some, the eddy is a thread like
    the modules, and :meth:`next_departure` is what it does next, as often as it has the processor;
    :meth:`place` is the end of it. Nothing limits new tuples then but room and the time it takes.

    What it decides is :class:`~eddyline.engine.routing.Routing`'s affair, as for
    :class:`~eddyline.engine.eddy.Eddy`. There is no work here: whoever owns the modules takes
    tuples from :attr:`queues` and says when one is done.
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
        if one of these or ``buffer`` is below 1, or ``tuples`` no whole number from 0 on.
        """
        if min(queue, buffer, quantum) < 1:
            raise ValueError(
                f"queue, buffer and quantum are numbers of tuples from 1 on, "
                f"not {queue}, {buffer} and {quantum}"
            )
        if not is_whole(tuples, 0):
            raise ValueError(f"tuples is a whole number from 0 on, not {tuples}")
        self.queues: tuple[deque[tuple[int, Lane[deque[int]]]], ...] = tuple(
            deque() for _ in range(routes.given)
        )
        self.finished: list[int] = []  # tuple numbers, in the order in which they left
        self.dropped: list[int] = []
        self.sent_tuples: list[int] = []  # every decision: which tuple …
        self.sent_to: list[int] = []  # … went to which module
        self.longest_queue = [0] * routes.given
        self.most_inside = 0
        self._routes = routes
        self._buffer = buffer
        self._quantum = quantum
        self._inside = 0  # tuples that were admitted and are neither finished nor dropped
        self._routing: Routing[deque[int]] = Routing(
            routes,
            policy,
            generator,
            deque,
            quantum=FixedQuantum(quantum),
            costs=None,
            queues=dict.fromkeys(range(routes.given), BoundedQueue(queue)),
        )
        self._outside = self._routing.lane(ENTERING)
        if self._outside is None:
            self.finished.extend(range(tuples))
        elif tuples:
            self._outside.contents.extend(range(tuples))
            self._routing.arrive(self._outside, tuples)

    @property
    def statistics(self) -> StatisticsTable:
        """What the modules have done, per signature."""
        return self._routing.table

    def dispatch(self) -> None:
        """Take a turn: place returned tuples, then admit a new one.

        Raises RuntimeError where tuples wait and no module has anything to do:
        nothing would ever change then.
        """
        routing, outside = self._routing, self._outside
        if outside is None:
            return
        routing.retry()
        if routing.waiting > bool(outside.tuples):  # saves a microsecond of four in most turns
            outside.held = True
            while (departure := routing.depart()) is not None:
                self.place(departure)
            outside.held = False
        admitted = self._buffer - self._inside
        if admitted and outside.tuples:
            admitted = min(admitted, self._quantum)
            while admitted and (departure := routing.depart(admitted)) is not None:
                self.place(departure)
                admitted -= departure.tuples
                self._admit(departure.tuples)
        if not routing.away:
            routing.require_work()

    def next_departure(self) -> Departure[deque[int]] | None:
        """Decide where a returned tuple goes, or else a new one; None where none can go now.

        The tuple keeps its place in the module's queue, where :meth:`place` puts it. Raises as
        :meth:`dispatch` does.
        """
        routing, outside = self._routing, self._outside
        if outside is None:
            return None
        routing.retry()
        outside.held = True
        departure = routing.depart(self._quantum)
        outside.held = False
        if departure is None and outside.tuples and self._inside < self._buffer:
            departure = routing.depart(min(self._quantum, self._buffer - self._inside))
            if departure is not None:
                self._admit(departure.tuples)
        if departure is None and not routing.away:
            routing.require_work()
        return departure

    def place(self, departure: Departure[deque[int]]) -> None:
        """Put the tuples that leave a lane into their module's queue."""
        lane, module, tuples, _ = departure
        queue, waiting = self.queues[module], lane.contents
        for _ in range(tuples):
            number = waiting.popleft()
            queue.append((number, lane))
            self.sent_tuples.append(number)
            self.sent_to.append(module)
        self.longest_queue[module] = max(self.longest_queue[module], len(queue))

    def settle(self, module: int, *, passed: bool, cost: float) -> None:
        """Take the first tuple of a module's queue as done; it goes on if it ``passed``."""
        number, lane = self.queues[module].popleft()
        self._routing.settle(lane, module, 1, 1, int(passed), cost)
        if not passed:
            self._inside -= 1
            self.dropped.append(number)
            return
        try:
            following = lane.following[module]
        except KeyError:
            following = lane.following[module] = self._routing.lane(
                self._routes.after(lane.signature, module)
            )
        if following is None:
            self._inside -= 1
            self.finished.append(number)
        else:
            following.contents.append(number)
            self._routing.arrive(following, 1)

    def _admit(self, tuples: int) -> None:
        self._inside += tuples
        self.most_inside = max(self.most_inside, self._inside)
