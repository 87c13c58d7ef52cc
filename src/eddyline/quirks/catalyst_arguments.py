"""Arguments that Catalyst's functions take in some versions of Spark."""

from __future__ import annotations

from typing import Final

from eddyline.quirks.pyspark_at_hand import MINOR

PRETTY_OPTIONS: Final[tuple[bool, ...]] = (True,) if MINOR >= (4, 1) else ()
"""What ``toPrettySQL`` takes beside an expression: whether to leave out unresolved columns."""

_LATER: Final = {
    "toPrettySQL(condition, true)": "toPrettySQL(condition)",
    "toPrettySQL(attribute, true)": "toPrettySQL(attribute)",
    "toPrettySQL(tree, true)": "toPrettySQL(tree)",
}
"""What our Java, which is written for the latest Spark, says, and what 4.0 would have it say."""


def java_as_known_here(text: str) -> str:
    """Return a source of ours as the Spark at hand compiles it."""
    if MINOR < (4, 1):
        for new, old in _LATER.items():
            text = text.replace(new, old)
    return text
