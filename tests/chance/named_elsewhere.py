"""Functions of a module that is imported: they are pickled by reference."""

from __future__ import annotations

import random
import time
import uuid
from random import random as draw
from uuid import uuid4 as new

import numpy as np

GENERATOR = random.Random(4)
STATE = {"n": 0}
ROWS: list[object] = []


def make(_: object) -> str:
    return str(uuid.uuid4())


def by_helper(value: object) -> str:
    return _prefixed(value)


def _prefixed(value: object) -> str:
    return f"{value}-{_ending()}"


def _ending() -> str:
    return str(new())


def drawn(value: float) -> float:
    return value + draw()


def shuffled(values: list[int]) -> list[int]:
    return [values[int(each)] for each in np.random.permutation(len(values))]  # noqa: NPY002


def taken(value: int) -> int:
    return value + GENERATOR.randint(1, 6)


def waited(value: int) -> int:
    time.sleep(0.0)
    return value


class Maker:
    """Makes names."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __call__(self, _: object) -> str:
        return self.prefix + self._ending()

    def _ending(self) -> str:
        return uuid.uuid4().hex

    def method(self, _: object) -> str:
        return self._ending()

    def prefixed(self, value: object) -> str:
        return f"{self.prefix}{value}"


def in_dict(_: object) -> int:
    STATE["n"] += 1
    return STATE["n"]


def in_list(value: object) -> int:
    ROWS.append(value)
    return len(ROWS)
