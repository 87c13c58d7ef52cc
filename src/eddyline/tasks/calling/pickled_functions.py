"""User functions as PySpark pickles them: from bytes back to something to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pyspark.serializers import CPickleSerializer
from pyspark.sql.types import DataType

from eddyline.chance import chance_in
from eddyline.digest import digest
from eddyline.forgetful_mark import is_marked_forgetful
from eddyline.latest import Latest
from eddyline.quirks.broadcast_variables import BROADCAST

UserCode = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A chain of functions, innermost first; ``forgetful`` if one is marked so or left to chance.

    ``return_type`` is the outermost one's.
    """

    functions: tuple[UserCode, ...]
    return_type: DataType
    forgetful: bool

    @property
    def code(self) -> UserCode:
        """The chain as one function."""
        return in_one_go(self.functions)


def load(commands: Sequence[bytes]) -> Loaded:
    """Unpickle a chain of functions, innermost first.

    A function that PySpark found too large for a command comes as a broadcast variable, which must
    have reached this worker.
    """
    functions, return_types = zip(*map(_load_one, commands), strict=True)
    forgetful = any(map(_is_forgetful, commands, functions))
    return Loaded(functions, return_types[-1], forgetful)


def _load_one(command: bytes) -> tuple[UserCode, DataType]:
    serializer = CPickleSerializer()
    loaded: Any = serializer.loads(command)  # type: ignore[no-untyped-call]
    if isinstance(loaded, BROADCAST):
        loaded = serializer.loads(loaded.value)  # type: ignore[no-untyped-call]
    function, return_type = loaded
    return function, return_type


_forgetful: Final = Latest[bytes, tuple[bool]](1_000)
"""Whether functions are, by their pickles: to read one's code takes 150 us, in each task."""


def _is_forgetful(command: bytes, function: UserCode) -> bool:
    """Return whether a function is marked so or left to chance.

    The driver may not have seen it: what is large is broadcast, what is imported not loaded.
    """
    key = digest(command)
    known = _forgetful.get(key)
    if known is None:
        known = (is_marked_forgetful(function) or chance_in(function) is not None,)
        _forgetful.put(key, known)
    return known[0]


def in_one_go(functions: Sequence[UserCode]) -> UserCode:
    """Return functions, innermost first, as one: they hand their values on unconverted."""
    return reduce(_chain, functions)


def _chain(inner: UserCode, outer: UserCode) -> UserCode:
    return lambda *values: outer(inner(*values))


def bind_keywords(function: UserCode, keywords: Sequence[str | None]) -> UserCode:
    """Return a function of positional arguments only, which passes some on by keyword.

    ``keywords`` names each argument, None if it is positional; as in Spark's
    SQL the positional ones come first.
    """
    names = [name for name in keywords if name is not None]
    if not names:
        return function
    positional = len(keywords) - len(names)

    def bound(*values: object) -> object:
        by_name = dict(zip(names, values[positional:], strict=True))
        return function(*values[:positional], **by_name)

    return bound
