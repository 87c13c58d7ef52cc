"""Which of the errors that tuples hold count: at the end of their way, when all else accepts them.

Errors are deferred. A predicate that fails for a tuple lets it pass, and the error counts only
if every other predicate accepts the tuple. Where a function sees whole vectors, any one row of a
vector may be the cause of its failure; the tuples that are wanted after all are then tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.expressions.vector import CollectiveFailure

Held: TypeAlias = "Exception | Literal[False]"
"""What is held of a tuple that has passed a predicate which failed for it: the error; or
False where the failure was only a vector's and the predicate, asked again, rejects the tuple."""

Verdict: TypeAlias = "bool | Exception"
"""What a predicate says of a tuple when it is asked again."""

AskAgain: TypeAlias = Callable[[int, Sequence[int]], Sequence[Verdict]]
"""Takes a predicate and positions of tuples; returns what it says of each of them now."""


def settle(
    held: Mapping[int, Mapping[int, Held]],
    ask_again: AskAgain,
    failed: dict[int, Exception] | None = None,
) -> set[int]:
    """Return the positions of the tuples that are rejected after all.

    ``held`` is what is held of tuples, by position and predicate. Raises the error of the
    first predicate of the first tuple that no predicate rejects, as the user's function raised
    it; where there is ``failed``, it takes the error of each such tuple, and nothing is raised.
    Once one predicate rejects a tuple, no other is asked about it.

    >>> settle({3: {0: ValueError("odd"), 1: False}}, lambda _, positions: [])
    {3}
    """
    now = {position: dict(of_tuple) for position, of_tuple in held.items()}
    _ask_together(now, ask_again, in_parts=failed is not None)
    rejected = set()
    for position in sorted(now):
        of_tuple = now[position]
        for predicate in sorted(of_tuple):
            if _is_rejected(of_tuple):
                break
            if isinstance(of_tuple[predicate], CollectiveFailure):
                _note(now, predicate, [position], ask_again(predicate, [position]))
        if _is_rejected(of_tuple):
            rejected.add(position)
        elif of_tuple:
            error = cause(of_tuple[min(of_tuple)])
            if failed is None:
                raise error
            failed[position] = error
    return rejected


def verdicts(true: npt.NDArray[np.bool_], errors: Mapping[int, Exception]) -> list[Verdict]:
    """Return what :func:`~eddyline.expressions.terms.decide` found, tuple by tuple.

    A tuple that fails alone is the cause itself.
    """
    outcomes: list[Verdict] = list(map(bool, true))
    for position, error in errors.items():
        outcomes[position] = cause(error) if len(outcomes) == 1 else error
    return outcomes


def cause(error: Held) -> Exception:
    """Return an error as the user's function raised it."""
    if isinstance(error, CollectiveFailure):
        return error.error
    if isinstance(error, Exception):
        return error
    raise TypeError("a tuple that is rejected has no error")


def _ask_together(now: dict[int, dict[int, Held]], ask_again: AskAgain, *, in_parts: bool) -> None:
    """Try all doubtful tuples of a predicate at once, which mostly clears them.

    Where all errors are wanted, then ``in_parts``: halves of those that are still in doubt.
    """
    doubtful: dict[int, list[int]] = {}
    for position, of_tuple in now.items():
        for predicate, outcome in of_tuple.items():
            if isinstance(outcome, CollectiveFailure):
                doubtful.setdefault(predicate, []).append(position)
    for predicate in sorted(doubtful):
        asked = [at for at in sorted(doubtful[predicate]) if not _is_rejected(now[at])]
        if asked:
            _ask(now, predicate, asked, ask_again, in_parts=in_parts)


def _ask(
    now: dict[int, dict[int, Held]],
    predicate: int,
    positions: Sequence[int],
    ask_again: AskAgain,
    *,
    in_parts: bool,
) -> None:
    """Ask about tuples; then, in parts, about those that still fail together.

    So one of many that fails takes as many calls as the tuples can be halved.
    """
    _note(now, predicate, positions, ask_again(predicate, positions))
    if not in_parts or len(positions) == 1:
        return
    doubtful = [at for at in positions if isinstance(now[at].get(predicate), CollectiveFailure)]
    middle = len(doubtful) // 2
    for part in (doubtful[:middle], doubtful[middle:]):
        if part:
            _ask(now, predicate, part, ask_again, in_parts=True)


def _is_rejected(of_tuple: Mapping[int, Held]) -> bool:
    # By identity: what a user's exception compares equal to is the user's affair.
    return any(outcome is False for outcome in of_tuple.values())


def _note(
    now: dict[int, dict[int, Held]],
    predicate: int,
    positions: Sequence[int],
    verdicts: Sequence[Verdict],
) -> None:
    for position, verdict in zip(positions, verdicts, strict=True):
        if verdict is True:
            del now[position][predicate]
        else:
            now[position][predicate] = verdict
