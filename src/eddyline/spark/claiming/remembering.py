"""Which functions may remember what they have returned."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.forgetful_mark import FORGETFUL


def may_remember(commands: Sequence[bytes]) -> bool:
    """Whether functions, given as they are pickled, are worth a block of their own for that.

    Not so where one is marked as forgetful. The mark of a function that is pickled by reference,
    as it is if it is imported from a package, is not among the bytes: it is found in the worker.
    """
    mark = FORGETFUL.encode()
    return not any(mark in command for command in commands)
