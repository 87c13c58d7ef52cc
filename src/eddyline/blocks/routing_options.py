"""How a block is routed."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.blocks.chosen_policy import DEFAULT_POLICY, ChosenPolicy

DEFAULT_MEMORY = 512 * 1024 * 1024
"""Bytes that a task of a join block may use where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """How a block is routed."""

    policy: ChosenPolicy = DEFAULT_POLICY
    seed: int = 0
    run: int = 0  # tells the records of one `adapt` from those of another
    memory: int = DEFAULT_MEMORY  # bytes that a task of a join block may use
    worth: tuple[tuple[str, float], ...] = ()  # seconds that a unit of money counts as
    remember: bool = True  # whether functions may be called once for each tuple of arguments
