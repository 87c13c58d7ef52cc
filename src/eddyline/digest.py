"""Short names for long functions."""

from __future__ import annotations

import hashlib


def digest(command: bytes) -> bytes:
    """Return what tells pickled functions apart, in 32 bytes."""
    return hashlib.sha256(command).digest()
