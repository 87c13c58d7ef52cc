"""What the functions of a query are called, where people read of them."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eddyline.planner.read.chains import Tree
from eddyline.planner.read.function_places import LAMBDA, lambda_name, place_of


class FunctionNames:
    """Names that tell the functions of a query apart.

    Spark has a function's own name, which is ``<lambda>`` where it has none, and several may have
    the same. Nothing but texts depends on these names: a function is known by its pickle.
    """

    def __init__(self) -> None:
        self._same: dict[str, _Namesakes] = defaultdict(_Namesakes)  # by the name that Spark has

    def add(self, function: Tree) -> None:
        """Take note of a ``PythonUDF``; the first of a name keeps it."""
        self._same[_name(function)].functions[function] = None

    def of(self, function: Tree) -> str:
        """Return what to call a ``PythonUDF``."""
        self.add(function)
        name = _name(function)
        same = self._same[name]
        if len(same.functions) == 1 and name != LAMBDA:
            return name  # its pickle is not even fetched
        return same.name_of(function, name)

    def call(self, function: Tree, arguments: Sequence[str]) -> str:
        """Return a call as text."""
        return f"{_callable(self.of(function))}({', '.join(arguments)})"

    def nest(self, functions: Sequence[Tree]) -> str:
        """Return what to call functions that take each other's values, outermost first."""
        *outer, inner = map(self.of, functions)
        for name in outer[::-1]:
            inner = f"{_callable(name)}({inner})"
        return inner

    def put_into(self, text: str, functions: Iterable[Tree]) -> str:
        """Return a text of Spark's with our names for the ``functions`` called in it, in order."""
        meant: dict[str, list[str]] = {}
        for function in functions:
            meant.setdefault(_name(function), []).append(_callable(self.of(function)))
        for name, names in meant.items():
            if set(names) != {name}:
                pieces = re.split(rf"(?<![\w.]){re.escape(name)}(?=\()", text)
                # Where Spark has written one twice, or left one out, the last one is as good.
                following = [*names, *[names[-1]] * len(pieces)]
                text = pieces[0] + "".join(
                    called + piece for called, piece in zip(following, pieces[1:], strict=False)
                )
        return text


def _name(function: Tree) -> str:
    return str(function.node.fields["name"])


def _callable(name: str) -> str:
    """Return a name such that arguments may follow it.

    >>> _callable("score"), _callable("<lambda> line 5: n > 1")
    ('score', '(<lambda> line 5: n > 1)')
    """
    return f"({name})" if " " in name else name


@dataclass
class _Namesakes:
    """Functions that Spark knows by one name, and what to call those that were asked about."""

    functions: dict[Tree, None] = field(default_factory=dict)
    _seen: int = 0
    _names: dict[bytes, str] = field(default_factory=dict)  # by the pickle
    _taken: Counter[str] = field(default_factory=Counter)

    def name_of(self, function: Tree, spark_name: str) -> str:
        """Return what to call a function; those that came before it are named first."""
        for unseen in itertools.islice(self.functions, self._seen, None):
            command = unseen.pickled.command
            if command not in self._names:
                self._names[command] = self._new_name(command, spark_name)
        self._seen = len(self.functions)
        return self._names[function.pickled.command]

    def _new_name(self, command: bytes, spark_name: str) -> str:
        """Return a name that no other has: by its place, else by a number."""
        place = place_of(command) if spark_name == LAMBDA or self._names else None
        name = lambda_name(place) if spark_name == LAMBDA else spark_name
        if self._taken[name] and place is not None:
            name = f"{name} at {place}"
        self._taken[name] += 1
        return f"{name} ({self._taken[name]})" if self._taken[name] > 1 else name
