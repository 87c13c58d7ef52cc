"""Which functions may remember what they have returned."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.chance import looks_non_deterministic
from eddyline.forgetful_mark import FORGETFUL


def may_remember(commands: Sequence[bytes]) -> bool:
    """Whether functions, given as they are pickled, are worth a block of their own for that.

    Not so where one is marked as forgetful. The mark of a function that is pickled by reference,
    as it is if it is imported from a package, is not among the bytes: it is found in the worker.
    Raises :class:`DeclinedError` where one looks non-deterministic, which people should know of.
    """
    mark = FORGETFUL.encode()
    if any(mark in command for command in commands):
        return False
    chance = looks_non_deterministic(commands)
    if chance is not None:
        raise DeclinedError(DeclineReason.CALLED_FOR_EVERY_ROW, chance)
    return True
