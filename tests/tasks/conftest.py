"""What tests of tasks share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eddyline.asking.driver_channel import DriverChannel


@pytest.fixture
def channel() -> Iterator[DriverChannel]:
    """Where a driver listens."""
    made = DriverChannel()
    yield made
    made.close()
