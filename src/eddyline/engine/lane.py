"""Lanes: the tuples that wait in an eddy, by signature."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, Generic, TypeVar

from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature

Contents = TypeVar("Contents")
"""How a driver keeps the tuples of a lane: routing itself only counts them."""

NUMBERS: Final = 40
"""Bits for the number of a lane: more than will ever be made."""

UNLIMITED: Final = -1
"""The mask of a lane with a candidate that always has room: no set of full ones contains it."""

AHEAD: Final = 1 << 128
"""What being preferred adds to a lane's precedence: more than any depth."""

WITH_ROOM: Final = 256
"""Sets of full modules for which a lane remembers the candidates that are left."""


class Lane(Generic[Contents]):
    """The tuples of one signature that wait in the eddy.

    ``contents`` belong to the driver that runs the modules; ``tuples`` is their number, and
    ``enough`` how many of them are worth a visit. A lane is ``held`` where the policy waits,
    until something has changed. ``limits`` are its candidates as a mask, UNLIMITED where one
    always has room. ``precedence`` is greater the further on the tuples are, and of equals for
    the lane that was made first; it is greatest for those that go ``ahead`` of all others, any
    number of which is worth a visit. New tuples of several classes go ``in_turn``, so that what is
    seen at a time is of all of them. ``following`` may hold the lanes of tuples that come back,
    by module.
    """

    __slots__ = (
        "_with_room",
        "ahead",
        "builds",
        "candidates",
        "contents",
        "depth",
        "enough",
        "following",
        "held",
        "in_turn",
        "limits",
        "precedence",
        "signature",
        "tuples",
    )

    def __init__(self, signature: Signature, contents: Contents, number: int) -> None:
        """``number`` is that of the lanes made before it."""
        self.signature = signature
        self.contents = contents
        self.depth = signature.depth
        self.precedence = (self.depth << NUMBERS) - number
        self.ahead = False
        self.tuples = 0
        self.enough = 1
        self.held = False
        self.limits = UNLIMITED
        self.following: dict[int, Lane[Contents] | None] = {}
        self._with_room: dict[int, tuple[int, ...]] = {}

    def set_routes(self, routes: Routes, limited: Container[int]) -> None:
        """Take the candidates, and whether tuples are to be built."""
        self.candidates = routes.candidates(self.signature)
        self.builds = bool(self.candidates) and routes.is_build(self.signature, self.candidates[0])
        self._with_room.clear()
        self.in_turn = bool(self.signature.mark) and not self.signature.done and not routes.joins
        ahead = routes.is_ahead(self.signature)
        if ahead != self.ahead:
            self.precedence += AHEAD if ahead else -AHEAD
            self.ahead, self.enough = ahead, 1
        self.limits = UNLIMITED
        if all(module in limited for module in self.candidates):
            self.limits = sum(1 << module for module in self.candidates)

    def with_room(self, full: int) -> tuple[int, ...]:
        """Return the candidates that are not among the full modules, a mask."""
        known = self._with_room.get(full)
        if known is None:
            if len(self._with_room) >= WITH_ROOM:
                self._with_room.clear()
            known = tuple(module for module in self.candidates if not full >> module & 1)
            self._with_room[full] = known
        return known
