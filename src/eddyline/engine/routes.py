"""Which modules a tuple may visit next: what is legal, as against what is wise.

A routing policy chooses among the candidates that stand here and can therefore
not make an answer wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import compress
from typing import Final

from eddyline.engine.signature import Signature
from eddyline.engine.table_progress import Fetching

KNOWN: Final = 1 << 20
"""Candidates that are remembered, of all signatures together: 8 MB of pointers.

A thousand predicates have as many as half of it for the signatures of a single order.
"""

_ZEROS_AND_ONES: Final = bytes.maketrans(b"01", b"\0\1")


class Routes:
    """The candidates of every signature, computed when a signature is first seen.

    BoundedRepetition (Raman, Deshpande and Hellerstein, 2003, Table 2): no tuple
    is routed to a module that has handled it. Precedence: a module is a candidate
    only after those it depends on. Nothing is enumerated up front, so the number
    of possible signatures does not matter, only of those that occur.

    A module's number is its name. Modules may come and go while no tuple is on its way; a
    number is given once, so that nothing that was learned of one module is taken for another's.
    """

    joins = False
    """Whether some modules add components to tuples."""

    def __init__(self, modules: int, precedence: Mapping[int, int] | None = None) -> None:
        """Number so many modules; give, per module, the mask of those that must come before.

        ValueError where the precedence names a module that does not exist, or puts one before
        itself, directly or by way of others.
        """
        self._numbers = tuple(range(modules))
        self._here = (1 << modules) - 1  # the same as a mask
        self._precedence = dict(precedence or {})
        _check_names(modules, self._precedence)
        _check_order(self._precedence)
        self._known: dict[Signature, tuple[int, ...]] = {}
        self._all = tuple(range(modules))
        self._room = KNOWN  # for further candidates among the known ones
        self.version = 0  # counts the changes of what is legal

    @property
    def free(self) -> bool:
        """Whether tuples may visit the modules in any order."""
        return not self._precedence

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the modules that are here, ascending."""
        return self._numbers

    @property
    def given(self) -> int:
        """How many numbers were given so far; the next module gets this one."""
        return len(self._all)

    def add(self) -> int:
        """Return the number of a module that comes now."""
        number = self.given
        self._all = (*self._all, number)
        self._change((*self._numbers, number))
        return number

    def remove(self, module: int) -> None:
        """Let a module go; ValueError where there is none of that number."""
        if module not in self._numbers:
            raise ValueError(f"there is no module {module}; there are {self._numbers}")
        self._change(tuple(number for number in self._numbers if number != module))

    def after(self, signature: Signature, module: int) -> Signature:
        """Return the signature that tuples get from a module."""
        return signature.after(module)

    def remaining(self, signature: Signature) -> tuple[int, ...]:
        """Return the modules that the tuple has yet to visit, candidates or not."""
        return self._remaining_in_order(signature.done)

    def is_build(self, signature: Signature, module: int) -> bool:  # noqa: ARG002 - where modules store nothing
        """Tell whether tuples go to a module to be stored there; it is then the only candidate."""
        return False

    def operation(self, signature: Signature, module: int) -> Hashable:
        """Return what a module does to tuples of a signature, if it can do several things.

        What is known of one of them says nothing of what another returns. Tuples of another class
        are another thing to do.
        """
        return (signature.mark, module) if signature.mark else module

    def only_computes(self, module: int) -> bool:  # noqa: ARG002 - where modules call functions
        """Tell whether a module calls nothing of a user's: a thousand tuples cost it little."""
        return False

    def fetching(self, signature: Signature, module: int) -> Fetching | None:  # noqa: ARG002 - where nothing is fetched
        """Return what fetches the rows that tuples miss at a module, or wait for there.

        None where the module's answers are final: no other access method competes with it.
        """
        return None

    def weight(self, signature: Signature) -> float:  # noqa: ARG002 - where users prefer nothing
        """Return what a result that arises from tuples of a signature is worth; 1 is usual."""
        return 1.0

    def is_ahead(self, signature: Signature) -> bool:  # noqa: ARG002 - where users prefer nothing
        """Tell whether tuples of a signature go before all others, as a user prefers them."""
        return False

    def candidates(self, signature: Signature) -> tuple[int, ...]:
        """Return the modules that may come next; empty where the tuple is finished."""
        known = self._known.get(signature)
        if known is None:
            known = self._remaining_in_order(signature.done)
            if self._precedence:
                known = tuple(
                    module
                    for module in known
                    if self._precedence.get(module, 0) & self._here & ~signature.done == 0
                )
            self._room -= len(known)
            if self._room < 0:
                self._known.clear()
                self._room = KNOWN
            self._known[signature] = known
        return known

    def _remaining_in_order(self, done: int) -> tuple[int, ...]:
        """Return the modules whose bit is not set, least number first.

        Without a loop in Python: signatures of a thousand modules seldom come twice.
        """
        left = format(self._here & ~done, "b")[::-1].encode()
        return tuple(compress(self._all, left.translate(_ZEROS_AND_ONES)))

    def _change(self, numbers: tuple[int, ...]) -> None:
        self._numbers = numbers
        self._here = sum(1 << number for number in numbers)
        self._known.clear()
        self._room = KNOWN
        self.version += 1


def _check_names(modules: int, precedence: Mapping[int, int]) -> None:
    """Raise ValueError where the precedence names a module that does not exist."""
    for module, before in precedence.items():
        if module not in range(modules):
            raise ValueError(f"the precedence is of module {module}, but there are {modules}")
        if before >> modules:  # of a negative number too
            raise ValueError(
                f"module {module} comes after those of the mask {before:#b}, "
                f"but there are {modules} modules"
            )


def _check_order(precedence: Mapping[int, int]) -> None:
    """Raise ValueError where a module must come before itself, directly or by way of others.

    From each module it goes to those before it, depth first, and to none twice.
    """
    done = 0
    for start in precedence:
        path = [] if done >> start & 1 else [start]
        on_path = 1 << start
        while path:
            before = precedence.get(path[-1], 0) & ~done
            if circle := before & on_path:
                first = path.index(circle.bit_length() - 1)
                modules = " after ".join(map(str, (*path[first:], path[first])))
                raise ValueError(f"the precedence is no order: module {modules}")
            if before:
                path.append(before.bit_length() - 1)
                on_path |= 1 << path[-1]
            else:
                bit = 1 << path.pop()
                done |= bit
                on_path ^= bit
