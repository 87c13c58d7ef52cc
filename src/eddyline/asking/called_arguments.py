"""The calls of a function: their arguments, and what they and their errors are called."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

import eddyline
from eddyline.asking.lookup_source import Key, described_error
from eddyline.asking.wire import frozen

_SHOWN: Final = 60
"""Characters of an argument that an error shows."""

_OWN_FILES: Final = (str(Path(eddyline.__file__).parent), asyncio.__path__[0])


@dataclass(slots=True, unsafe_hash=True)
class Arguments:
    """A tuple of arguments, equal to another where the function cannot tell them apart.

    A call costs ``amount``, and as much again where it is tried again; so much is ``paid``.
    """

    frozen: object
    values: Key = field(compare=False)
    amount: float = field(default=0.0, compare=False)
    paid: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, values: Key) -> Arguments:
        """Return arguments for which nothing was paid."""
        return cls(frozen(values), values)


def shown(name: str, arguments: Sequence[object]) -> str:
    """Return a call as people write it.

    >>> shown("score", ("a" * 100, None))
    "score('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..., None)"
    """
    texts = map(repr, arguments)
    short = (text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..." for text in texts)
    return f"{name}({', '.join(short)})"


def raised_text(error: Exception) -> str:
    """Return what was raised, and where in the user's code."""
    trace = _users_part(error.__traceback__)
    lines = "".join(traceback.format_tb(trace))
    where = f"\n{lines.rstrip()}" if lines else ""
    return f"raised {described_error(error)}{where}"


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        trace = trace.tb_next
    return trace
