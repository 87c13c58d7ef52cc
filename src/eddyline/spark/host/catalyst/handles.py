"""Handles on Catalyst's immutable trees."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A node of a logical plan, with all that is below it."""

    java: Any
    told: dict[object, object] = field(default_factory=dict, init=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class CatalystExpression:
    """A Catalyst expression, with all that is below it."""

    java: Any
    told: dict[object, object] = field(default_factory=dict, init=False, repr=False)


_Handle = TypeVar("_Handle", Plan, CatalystExpression)
_Told = TypeVar("_Told")


def remembered(ask: Callable[[_Handle], _Told]) -> Callable[[_Handle], _Told]:
    """Ask the JVM once per handle: what is behind it never changes.

    A plan is walked several times, for lookup tables, for blocks and for what is left. A handle
    gives its children as the same handles again, so that only the first walk makes calls.
    """

    @functools.wraps(ask)
    def tell(handle: _Handle) -> _Told:
        if ask not in handle.told:
            handle.told[ask] = ask(handle)
        return cast("_Told", handle.told[ask])

    return tell


def foretell(tell: Callable[[_Handle], _Told], handle: _Handle, told: _Told) -> None:
    """Have an answer that is remembered before it is asked for, as it came along with others."""
    handle.told[inspect.unwrap(tell)] = told
