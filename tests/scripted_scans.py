"""Inputs of a join that give rows by a script."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.engine.modules.scan_access import Arrival
from tests.joins import INT, arrival


def rows(*values: int) -> Arrival:
    return arrival([(value,) for value in values], [INT])


def values(came: Arrival | None) -> list[int] | None:
    return None if came is None else came.columns[0].to_pylist()


class Scripted:
    """An input that gives what it is told to, None where it stalls."""

    def __init__(self, script: Sequence[Arrival | None], expected: float | None = None) -> None:
        self._script = list(script)
        self.expected_rows = expected

    @property
    def ended(self) -> bool:
        return not self._script

    def poll(self) -> Arrival | None:
        return self._script.pop(0) if self._script else None
