"""Errors that stand for something in the engine instead of being raised."""

from __future__ import annotations


class CollectiveFailure(Exception):  # noqa: N818 - it is a mark on rows, not an error of ours
    """A function that works on whole vectors raised: any one row of the vector may be the cause.

    It stands in :attr:`~eddyline.expressions.vector.Vector.errors` for every row of
    the vector. Rows that turn out to be wanted are tried again without the others.
    """

    def __init__(self, error: Exception) -> None:
        """Keep the user's own error, with its traceback."""
        super().__init__(error)  # as its one argument, so that it can be pickled
        self.error = error


def hides(kept: Exception, other: Exception) -> bool:
    """Whether to keep one of a row's errors would hide a failure that may yet go away."""
    return isinstance(other, CollectiveFailure) and not isinstance(kept, CollectiveFailure)
