"""The concurrent functions of this process, for as long as somebody may call them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from eddyline.asking.limits import Limits, OnFailure
from eddyline.asking.price import Price
from eddyline.asking.quota_rules import QuotaRules
from eddyline.errors import FunctionForgottenError
from eddyline.keeping.function_version import version_of
from eddyline.keeping.keep import Keep
from eddyline.latest import Latest

if TYPE_CHECKING:  # only users of concurrent functions have what these need
    from eddyline.asking.shared_method import Method

LATEST: Final = 1_000
"""Functions that are kept though nobody holds them."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """A function as it was declared; ``batch`` is 0 where it takes one value a call.

    ``served`` is what tasks ask for its values, by name, ``versions`` what the function was when
    that was first wanted: what it finds may change while it runs.
    """

    name: str
    function: Callable[..., Any]
    limits: Limits
    batch: int
    price: Price
    keep: Keep | None = None
    on_error: OnFailure = OnFailure.FAIL
    quota: QuotaRules = field(default_factory=QuotaRules)
    batch_adapts: bool = False
    prefix: Callable[..., Any] | None = None
    served: dict[str, Method] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)

    def kept_in(self, default: Keep | None) -> Keep | None:
        """Return where answers are kept, by default in a place that is not the function's own."""
        if self.keep is not None or default is None:
            return self.keep
        if not self.versions:
            self.versions.append(version_of(self.function))
        return replace(default, version=self.versions[0])

    def alone(self) -> Declaration:
        """Return what is declared, without what this process has done for it: to be sent away."""
        return replace(self, served={}, versions=[])

    @property
    def likeness(self) -> Hashable:
        """What is equal for the same function declared alike once more."""
        price, quota = self.price, self.quota
        spent = _like(price.cost), price.unit, price.budget, _like(price.actual)
        refused = _like(quota.is_quota), _like(quota.tokens), quota.token_rate
        batch = self.batch, self.batch_adapts, _like(quota.too_large), _like(self.prefix)
        told = self.limits, batch, spent, self.keep, self.on_error, refused
        return self.name, likeness(self.function), told


class DeclaredFunctions:
    """Declarations by number.

    One is known as long as somebody holds its UDF. Plans and names in SQL have no more than its
    number, and nobody hears when Spark forgets these; so those that were declared or used last
    are known as well.
    """

    def __init__(self, latest: int = LATEST) -> None:
        """Keep up to ``latest`` of those that nobody holds."""
        self._numbers = itertools.count(1)
        self._held: WeakValueDictionary[int, Declaration] = WeakValueDictionary()
        self._alike: WeakValueDictionary[Hashable, Declaration] = WeakValueDictionary()
        self._number_of: WeakKeyDictionary[Declaration, int] = WeakKeyDictionary()
        self._latest = Latest[int, Declaration](latest)
        self._most = latest
        self._lock = threading.Lock()  # tasks ask in the thread of the server
        self.any = False
        """Whether there has ever been one."""

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._held)

    def add(self, declaration: Declaration) -> tuple[int, Declaration]:
        """Take note of a function; return its number in this process, and what is to be held.

        A function made anew, and declared as it was before, is the one that is known already.
        """
        key = declaration.likeness
        with self._lock:
            self.any = True
            known = self._alike.get(key)
            if known is None:
                known = self._alike[key] = declaration
                self._number_of[known] = next(self._numbers)
            number = self._number_of[known]
            self._held[number] = known
            self._latest.put(number, known)
        return number, known

    def used(self, number: int) -> Declaration | None:
        """Return a declaration, now the last one used; None where it is not known."""
        with self._lock:
            declaration = self._held.get(number)
            if declaration is not None:
                self._latest.put(number, declaration)
        return declaration

    def of(self, number: int, name: str) -> Declaration:
        """Return a declaration that is about to be used; FunctionForgottenError if it is gone."""
        declaration = self.used(number)
        if declaration is None:
            raise FunctionForgottenError(
                f"{name} is a concurrent function that is not known any more: {self._most:,} "
                f"others were declared or used since, and nobody has kept what "
                f"eddyline.concurrent returned. Keep it in a variable for as long as queries call "
                f"the function."
            )
        return declaration


DECLARED: Final = DeclaredFunctions()


_ATOMS = (type(None), bool, int, float, complex, str, bytes, CodeType)


@dataclass(frozen=True, slots=True)
class _Itself:
    """Something that is like nothing but itself, and lives as long as this does."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def likeness(function: Callable[..., Any]) -> Hashable:
    """Return what is equal for functions that are the same, made once or twice.

    They have the same code, from the same file and line, and see the same variables: those of the
    same module, and of functions around them the same ones, and not others of the same value, since
    a variable may have another value later. Their defaults are the same objects, or equal numbers
    and texts. What is no plain function is like itself alone.

    >>> cell = compile("def one_more(number, more=1): return number + more", "cell", "exec")
    >>> exec(cell)
    >>> before = one_more
    >>> exec(cell)
    >>> one_more is before, likeness(one_more) == likeness(before)
    (False, True)
    >>> def made(more):
    ...     return lambda number: number + more
    >>> likeness(made(1)) == likeness(made(1))
    False
    """
    if type(function) is not FunctionType or function.__dict__:
        return _Itself(function)
    return (
        function.__code__,
        function.__code__.co_filename,
        function.__qualname__,
        _Itself(function.__globals__),
        tuple(map(_Itself, function.__closure__ or ())),
        tuple(map(_part, function.__defaults__ or ())),
        tuple((name, _part(value)) for name, value in (function.__kwdefaults__ or {}).items()),
    )


def _like(told: object) -> Hashable:
    """Return what is equal for the same number, or the same function made once or twice."""
    return likeness(told) if callable(told) else (type(told), told)


def _part(value: object) -> Hashable:
    if type(value) is tuple:
        return tuple, *map(_part, value)
    # 1, 1.0 and True are equal, and no number for a function that looks at its type; 0.0 and -0.0
    # are told apart by their texts.
    return (type(value), value, repr(value)) if type(value) in _ATOMS else _Itself(value)
