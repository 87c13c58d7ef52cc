"""Handles on Catalyst's immutable trees."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast


class _Handle:
    __slots__ = ("_fetch", "_java", "told")

    def __init__(self, java: Any = None, fetch: Callable[[], Any] | None = None) -> None:  # noqa: ANN401
        """Take what it is in the JVM, or what fetches it, called when it is needed."""
        self._java = java
        self._fetch = fetch
        self.told: dict[str, object] = {}

    @property
    def java(self) -> Any:  # noqa: ANN401  # Py4J has no types
        """What it is in the JVM."""
        if self._java is None and self._fetch is not None:
            self._java = self._fetch()
        return self._java


class Plan(_Handle):
    """A node of a logical plan, with all that is below it."""

    __slots__ = ()


class CatalystExpression(_Handle):
    """A Catalyst expression, with all that is below it."""

    __slots__ = ()


_Asked = TypeVar("_Asked", Plan, CatalystExpression)
_Told = TypeVar("_Told")


def remembered(ask: Callable[[_Asked], _Told]) -> Callable[[_Asked], _Told]:
    """Ask the JVM once per handle: what is behind it never changes.

    A plan is walked several times, for lookup tables, for blocks and for what is left. A handle
    gives its children as the same handles again, so that only the first walk makes calls.
    """
    name = ask.__name__

    @functools.wraps(ask)
    def tell(handle: _Asked) -> _Told:
        if name not in handle.told:
            handle.told[name] = ask(handle)
        return cast("_Told", handle.told[name])

    return tell


def remember(ask: Callable[[_Asked], _Told], handle: _Asked, answer: _Told) -> None:
    """Have an answer of a function that is :func:`remembered` known before it is asked for."""
    handle.told[ask.__name__] = answer
