"""What a page spells otherwise than a terminal: arrows, and the signs of units."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.records import Change, Order
from eddyline.reports.wording import change_text, duration, order_name, quantity_text

_ARROW = "→"


def time(seconds: float) -> str:
    """Spell a time.

    >>> time(12.34e-6)
    '12.3 µs'
    """
    return _signs(duration(seconds))


def quantity(kind: ChangedQuantity, value: float) -> str:
    """Spell a selectivity as a percentage and a cost as a time."""
    return _signs(quantity_text(kind, value))


def change(noticed: Change) -> str:
    """Say what changed, without when."""
    return _signs(change_text(noticed, _ARROW))


def order(steps: Order, labels: Sequence[str]) -> str:
    """Spell an order by the labels of its steps.

    >>> order((1, 0), ("1", "flights"))
    'flights → 1'
    """
    return order_name(steps, _ARROW, labels)


def _signs(words: str) -> str:
    return words.replace(" us", " µs")
