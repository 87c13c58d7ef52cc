"""Handles on Catalyst's immutable trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A node of a logical plan, with all that is below it."""

    java: Any


@dataclass(frozen=True, slots=True, eq=False)
class CatalystExpression:
    """A Catalyst expression, with all that is below it."""

    java: Any
