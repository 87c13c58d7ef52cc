"""The clock of eddies outside the simulator; the engine has none of its own."""

from __future__ import annotations

import time


class WallClock:
    """Real time in seconds, monotonic; the zero point means nothing."""

    now = staticmethod(time.perf_counter)
