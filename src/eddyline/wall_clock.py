"""The one place where Eddyline reads the time of day of the machine it runs on."""

from __future__ import annotations

import time


class WallClock:
    """Real time in seconds, monotonic; the zero point means nothing."""

    now = staticmethod(time.perf_counter)
