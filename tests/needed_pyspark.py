"""Tests of what came with a later PySpark than the oldest that runs them all."""

from __future__ import annotations

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR


def needs_pyspark(major: int, minor: int, what: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where PySpark is older, and says what is not there."""
    reason = f"PySpark {MINOR[0]}.{MINOR[1]} has no {what}, which came with {major}.{minor}"
    return pytest.mark.skipif((major, minor) > MINOR, reason=reason)
