"""What a cascade's proxy says of a row, in the tasks: dropped, accepted, or to be asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, SupportsFloat

from eddyline.cascades.thresholds import Thresholds
from eddyline.keeping.key_bytes import key_of


@dataclass(frozen=True, slots=True)
class ProxyVerdict:
    """Gives TRUE for a row that is accepted, FALSE for one that is dropped, NULL to ask the oracle.

    Without a ``proxy`` the first argument is its score, computed elsewhere. ``labelled`` is what
    the oracle has said when the thresholds were set, by the keys of arguments: it is not asked for
    that again.
    """

    name: str
    proxy: Callable[..., Any] | None
    thresholds: Thresholds
    labelled: Mapping[bytes, bool] = field(default_factory=dict, repr=False)

    def __call__(self, *arguments: Any, **named: Any) -> bool | None:  # noqa: ANN401 - any user's
        """Return what is decided about a row; raise what the proxy raises."""
        given = (*arguments, *named.values())
        if self.labelled:
            key = argument_key(given if self.proxy else given[1:])
            if key is not None and (label := self.labelled.get(key)) is not None:
                return label
        if not self.thresholds.decides:
            return None
        score = self.proxy(*arguments, **named) if self.proxy else arguments[0]
        return self.thresholds.verdict(score_of(score, self.name))


@dataclass(frozen=True, slots=True)
class Scored:
    """Gives the score of a row that is drawn, and the key of its arguments.

    Without a ``proxy`` the first argument is the score. A row for which the proxy raises has none:
    it raises again in the query, if the row comes to it.
    """

    name: str
    proxy: Callable[..., Any] | None

    def __call__(self, *arguments: Any, **named: Any) -> tuple[float | None, bytes | None]:  # noqa: ANN401
        """Return both; the key is None where the values of a type have none."""
        given = (*arguments, *named.values())
        if self.proxy is None:
            return score_of(arguments[0], self.name), argument_key(given[1:])
        score = None
        with suppress(Exception):
            score = score_of(self.proxy(*arguments, **named), self.name)
        return score, argument_key(given)


def argument_key(values: tuple[object, ...]) -> bytes | None:
    """Return the key of arguments; None where there is none for values of their types."""
    try:
        return key_of(values)
    except TypeError:
        return None


def score_of(value: SupportsFloat | None, name: str) -> float | None:
    """Return what a proxy gave as a number; TypeError where it is none."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is a proxy and returns a score, a number or None, not {value!r}")
    return float(value)
