"""How many examples a property draws: as many as it asks for, times what the profile says."""

from __future__ import annotations

import os
from typing import Any, Final

from hypothesis import settings

SHARES: Final = {"quick": 0.1, "usual": 1.0, "thorough": 20.0}
"""Examples of each profile, for one that a property asks for."""

PROFILE: Final = os.environ.get("EDDYLINE_EXAMPLES", "usual")
"""``EDDYLINE_EXAMPLES=thorough make test`` looks longer."""

_ALL: Final = 100
"""Examples of a property that does not say how many."""


def share(wanted: int) -> int:
    """Return how many cases the profile has of something, for so many that are usual.

    >>> share(40) == round(40 * SHARES[PROFILE])
    True
    """
    return max(1, round(wanted * SHARES[PROFILE]))


def examples(wanted: int = _ALL, **others: Any) -> settings:  # noqa: ANN401 - as Hypothesis takes them
    """Return the settings of a property that asks for so many examples; at least one is drawn.

    >>> examples(40).max_examples == round(40 * SHARES[PROFILE])
    True
    """
    return settings(max_examples=share(wanted), **others)


def register() -> None:
    """Have properties drawn so that only what a change did fails in CI."""
    # A machine that is busy with something else must not fail a property; and CI must fail for
    # what a change did, not for an example that it drew by chance.
    most = examples().max_examples
    derandomize = bool(os.environ.get("CI"))
    settings.register_profile("eddyline", deadline=None, derandomize=derandomize, max_examples=most)
    settings.load_profile("eddyline")
