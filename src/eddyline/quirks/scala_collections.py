"""Calls on Scala's sequences: up to Spark 3.5 they are those of Scala 2.12, which take builders.

What takes none there, in either of the two, are iterators and a few methods of lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from eddyline.quirks.pyspark_at_hand import MINOR

_KNOWN: Final = MINOR >= (4, 0)

ONCE: Final = "scala.collection." + ("IterableOnceOps" if _KNOWN else "TraversableOnce")
"""Where what can be gone through once has its methods."""

SEQUENCE: Final = "scala.collection." + ("SeqOps" if _KNOWN else "SeqLike")
"""Where sequences have theirs."""

MAPPED: Final = "scala.collection." + ("IterableOps" if _KNOWN else "Iterator")
"""What has a ``map`` of one argument."""

TO_MAPPED: Final = () if _KNOWN else (("scala.collection.IterableLike", "iterator"),)
"""The methods that lead from a sequence to it."""

TELL_THEIR_BUILDER: Final = _KNOWN
"""Whether Scala's builder of texts tells which one of Java's it has."""


def mapped(seq: Any, function: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return what a Scala function gives for each element."""
    return seq.map(function) if _KNOWN else seq.iterator().map(function).toList()


def joined(first: Any, second: Any) -> Any:  # noqa: ANN401 - likewise
    """Return the elements of one sequence, and then those of another."""
    if _KNOWN:
        return first.concat(second)
    return getattr(second.toList(), "$colon$colon$colon")(first.toList())


def flattened(seq: Any, static: Callable[[str, str], Any]) -> Any:  # noqa: ANN401 - likewise
    """Return the elements of all elements; ``static`` finds members of Scala's objects."""
    if _KNOWN:  # by the function that changes nothing
        return seq.flatten(static("scala.$less$colon$less$", "MODULE$").refl())
    same = getattr(static("scala.Predef$", "MODULE$"), "$conforms")()
    return seq.iterator().flatMap(same).toList()


def updated(seq: Any, index: int, element: Any) -> Any:  # noqa: ANN401 - likewise
    """Return a sequence with another element in one place."""
    if _KNOWN:
        return seq.updated(index, element)
    elements = seq.toList()
    behind = getattr(elements.drop(index + 1), "$colon$colon")(element)
    return getattr(behind, "$colon$colon$colon")(elements.take(index))


def zipped(first: Any, second: Any) -> Any:  # noqa: ANN401 - likewise
    """Return the pairs of elements in equal places."""
    return first.zip(second) if _KNOWN else first.iterator().zip(second.iterator()).toList()
