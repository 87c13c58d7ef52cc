"""A driver that tells tasks what is known, for tests of who asks it."""

from __future__ import annotations

from eddyline.asking.driver_channel import DriverChannel
from eddyline.tasks.others_learned import Told, telling


class TellingDriver:
    """Tells what is known, and notes which blocks it is asked about."""

    def __init__(self, channel: DriverChannel, known: Told) -> None:
        self.asked: list[str] = []
        self._known = known
        self.address = channel.listen("learned", telling(self._told))

    def _told(self, block: str) -> Told:
        self.asked.append(block)
        return self._known
