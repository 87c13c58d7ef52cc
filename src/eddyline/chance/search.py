"""Searches the code of a function, and of what it calls, for what makes its results differ.

What is read is the code of the function, of functions in it, of those that it calls in its own
module and in others outside of installed packages, and what these have at hand: globals, closures,
defaults, attributes of an object that is called. That takes time in proportion to the instructions,
of :data:`CODES_MOST` functions at the most.
"""

from __future__ import annotations

import builtins
import sys
from collections import ChainMap
from collections.abc import Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Final

from eddyline.chance.flow_steps import FlowSteps
from eddyline.chance.inert_pickle import MISSING, Member, Stand, named
from eddyline.chance.instructions import Do, Step, arguments_given, steps_of
from eddyline.chance.outside_changes import changes_in
from eddyline.chance.sources import (
    NEVER,
    SEEDING,
    arguments_needed,
    is_of_known_module,
    known_as,
)
from eddyline.chance.values_at_hand import dotted, is_marked, is_number, keeps, live, member

CODES_MOST: Final = 100
"""Functions that are read for one."""

_INSTALLED: Final = frozenset(["eddyline", "numpy", "pandas", "py4j", "pyarrow", "pyspark"])
"""Packages that are not read wherever they are."""

_STORES: Final = frozenset([Do.STORE_GLOBAL, Do.STORE_LOCAL, Do.STORE_MEMBER, Do.STORE_OUTER])
_LOADS: Final = frozenset([Do.LOAD_GLOBAL, Do.LOAD_LOCAL, Do.LOAD_OUTER])
_NO_NAMES: Final = frozenset[str]()


def chance_in(function: object) -> str | None:
    """Return what a function calls or uses so that it looks non-deterministic; else None.

    ``function`` may be what :func:`~eddyline.chance.inert_pickle.load_inert` has made of its
    pickle.
    """
    with suppress(Exception):  # programs may hold anything
        function = _as_loaded(function)
        package = str(getattr(function, "__module__", "")).partition(".")[0]
        return next(_Search(package).of_value(function), None)
    return None


@dataclass
class _Scope:
    """The variables of a function, as far as they are known when it is called."""

    known: Mapping[str, object]  # globals
    outer: MutableMapping[str, object]
    closure: frozenset[str]
    seeded: set[str]  # modules whose generator was given a seed
    here: dict[str, object] = field(default_factory=dict)
    importing: object = MISSING
    by_name: bool = False  # from what is imported names are taken
    owner: object = MISSING  # of a method

    def value(self, step: Step) -> object:
        name = str(step.what)
        if step.do is Do.LOAD_LOCAL:
            return self.here.get(name, MISSING)
        if step.do is Do.LOAD_OUTER:
            return self.here.get(name, self.outer.get(name, MISSING))
        if name in self.here:  # in the body of a class
            return self.here[name]
        return self.known.get(name, vars(builtins).get(name, MISSING))

    def inside(self) -> _Scope:
        """Return the scope of a function in this one."""
        outer = ChainMap(self.here, self.outer)
        return _Scope(self.known, outer, self.closure, self.seeded, owner=self.owner)

    def loaded(self, steps: Sequence[Step], place: int) -> object:
        """Return what a step has loaded or imported; MISSING where that is not known."""
        step = steps[place]
        if step.do in _LOADS:
            return self.value(step)
        if step.do is Do.IMPORT:
            self.by_name = steps[place - 1].what is not None
            name = str(step.what)
            self.importing = named(name if self.by_name else name.partition(".")[0], "")
            return MISSING if self.by_name else self.importing
        if step.do is Do.IMPORT_FROM:
            thing = member(self.importing, str(step.what))
            if not self.by_name:  # `import a.b as c` goes down step by step
                self.importing = thing
            return thing
        return MISSING


class _Search:
    """Yields what it finds, as text."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._seen: dict[object, object] = {}  # kept: identities are keys
        self._files: set[str] = set()  # whether some are read, and written

    def of_value(
        self, value: object, names: frozenset[str] = _NO_NAMES, seeded: frozenset[str] = _NO_NAMES
    ) -> Iterator[str]:
        """Search what may be called; for a class, its methods in ``names``."""
        value = _as_loaded(value)
        if is_marked(value):
            return
        yield from self._of_name("", value)
        for thing in _bound_to(value):
            yield from self._keeping(thing, "")
        for thing in _called_by(value):
            yield from self.of_value(thing, names, seeded)
        if isinstance(value, FunctionType):
            yield from self._of_function(value, seeded)
        elif isinstance(value, MethodType):
            yield from self._of_function(_as_loaded(value.__func__), seeded, value.__self__)
        elif isinstance(value, type):
            yield from self._of_class(value, names, seeded)

    def _of_class(self, made: type, names: frozenset[str], seeded: frozenset[str]) -> Iterator[str]:
        if not self._is_own(made):
            return
        for name in sorted(names | {"__call__", "__init__", "__post_init__"}):
            method = member(made, name)
            if isinstance(method, FunctionType):
                yield from self._of_function(method, seeded, made)

    def _of_function(
        self,
        function: object,
        seeded: frozenset[str],
        owner: object = MISSING,
        given: Mapping[str, object] = MappingProxyType({}),
    ) -> Iterator[str]:
        if not isinstance(function, FunctionType) or is_marked(function):
            return
        key = (id(function), id(owner), seeded, *((name, id(given[name])) for name in given))
        if key in self._seen or len(self._seen) >= CODES_MOST or not self._is_own(function):
            return
        self._seen[key] = function, owner, dict(given)
        code = function.__code__
        outer: dict[str, object] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # not assigned yet
                outer[name] = cell.cell_contents
        scope = _Scope(function.__globals__, outer, frozenset(code.co_freevars), set(seeded))
        places = code.co_varnames[: code.co_argcount]
        defaults = function.__defaults__ or ()
        scope.here.update(zip(places[len(places) - len(defaults) :], defaults, strict=True))
        scope.here.update(function.__kwdefaults__ or {})
        if owner is not MISSING and places:
            scope.here[places[0]] = scope.owner = owner
        scope.here.update(given)
        yield from self._of_code(code, scope)

    def _of_code(self, code: CodeType, scope: _Scope) -> Iterator[str]:
        steps, place, given = steps_of(code), 0, dict(scope.here)
        while place < len(steps):
            step = steps[place]
            if step.do is Do.CODE and isinstance(step.what, CodeType):
                yield from self._of_code(step.what, scope.inside())
            elif step.do in _STORES:
                yield from _counting(steps, place, scope)
                if step.do is not Do.STORE_MEMBER:
                    scope.here.pop(str(step.what), None)
            value = scope.loaded(steps, place)
            place += 1
            if value is not MISSING:
                place = yield from self._of_path(value, steps, place, scope, code)
        yield from self._of_flow(code, scope, given)

    def _of_flow(self, code: CodeType, scope: _Scope, given: dict[str, object]) -> Iterator[str]:
        """Search for changes that outlive the call, and names given at run time by constants."""
        flow = FlowSteps(
            scope.known,
            scope.closure,
            lambda name: scope.value(Step(Do.LOAD_OUTER, name)),
            given,
            scope.owner if _is_made_by_call(code, scope.owner) else MISSING,
        )
        changes: list[str] = []
        with suppress(Exception):  # of another version of Python, of which some is not understood
            changes.extend(changes_in(code, flow))
        yield from changes
        for thing in flow.named:
            yield from self._of_name("", _as_loaded(thing))
        for program in flow.programs:
            yield from self._of_code(program, scope.inside())
        for function, outside in flow.called:
            yield from self._of_function(function, frozenset(scope.seeded), given=outside)
        self._files |= flow.files
        if self._files == {"read", "write"}:
            yield "reads files and writes some, which outlive the call"

    def _of_path(
        self, value: object, steps: Sequence[Step], place: int, scope: _Scope, code: CodeType
    ) -> Generator[str, None, int]:
        """Search what was loaded, member by member; return the place of the step after it."""
        path = dotted(value)
        yield from self._keeping(value, str(steps[place - 1].what))
        yield from self._of_name(path, value, steps, place, scope.seeded)
        while place < len(steps) and steps[place].do is Do.MEMBER:
            name = str(steps[place].what)
            value = member(value, name)
            place += 1
            path = dotted(value) if isinstance(value, ModuleType) else f"{path}.{name}"
            yield from self._keeping(value, name)
            yield from self._of_name(path, value, steps, place, scope.seeded)
        if value is not MISSING:
            if not is_of_known_module(path) and value is not scope.owner:
                names = frozenset(code.co_names)
                yield from self.of_value(value, names, frozenset(scope.seeded))
            if place < len(steps) and steps[place].do in {Do.STORE_LOCAL, Do.STORE_OUTER}:
                scope.here[str(steps[place].what)] = value
                place += 1
        return place

    def _keeping(self, value: object, name: str) -> Iterator[str]:
        kept = keeps(value)
        if kept:
            yield f"uses {name}, {kept}" if name else f"uses {kept}"

    def _of_name(
        self,
        path: str,
        value: object,
        steps: Sequence[Step] = (),
        place: int = 0,
        seeded: set[str] | None = None,
    ) -> Iterator[str]:
        """Search for the very thing that was loaded, by all of its names."""
        for name in dict.fromkeys(map(known_as, filter(None, (path, dotted(value))))):
            given = arguments_given(steps, place)
            if seeded is not None and name in SEEDING and given != 0:
                seeded.add(SEEDING[name])
            needed = arguments_needed(name)
            if seeded and name.rpartition(".")[0] in seeded:
                continue
            if needed == NEVER or (needed and given is not None and given < needed):
                yield f"calls {name}"

    def _is_own(self, thing: object) -> bool:
        """Whether the code of a function or class is read: not where it was installed."""
        if isinstance(thing, type) and issubclass(thing, Stand):
            return not thing.module
        name = str(getattr(thing, "__module__", ""))
        module = sys.modules.get(name)
        if isinstance(thing, FunctionType):
            known = module is not None and thing.__globals__ is vars(module)
            if not known:  # pickled whole
                return True
        top = name.partition(".")[0]
        if top in {"__main__", self._package}:
            return True
        if top in sys.stdlib_module_names or top in _INSTALLED:
            return False
        file = str(getattr(module, "__file__", None) or "")
        return "site-packages" not in file and "dist-packages" not in file


def _is_made_by_call(code: CodeType, owner: object) -> bool:
    """Whether the call itself has made the object of a method, of a class that it names."""
    return isinstance(owner, type) and code.co_varnames[:1] != ("cls",)


def _as_loaded(value: object) -> object:
    """Return a thing itself where its module is loaded here anyway; else what stands for it."""
    return live(value) if isinstance(value, type) and issubclass(value, Stand) else value


def _bound_to(value: object) -> Sequence[object]:
    """Return what a callable has at hand besides its code."""
    if isinstance(value, partial):
        return (*value.args, *value.keywords.values())
    if isinstance(value, MethodType | BuiltinFunctionType):
        return (value.__self__,)
    return value.arguments[:1] if isinstance(value, Member) else ()


def _called_by(value: object) -> Sequence[object]:
    """Return what is called, or may be, when a thing without code of its own is called."""
    if isinstance(value, partial):
        return (value.func, *_bound_to(value))
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType | ModuleType | type):
        return ()
    if isinstance(value, Member):
        thing = member(value.arguments[0], str(value.arguments[1]))
        return () if isinstance(thing, Member) else (thing,)
    call = member(value, "__call__")
    return (call,) if isinstance(call, MethodType) else ()


def _counting(steps: Sequence[Step], place: int, scope: _Scope) -> Iterator[str]:
    """Yield what is counted up from call to call, as by ``n += 1``."""
    if not place or steps[place - 1].do is not Do.CHANGE_IN_PLACE:
        return
    step, value = steps[place], MISSING
    if step.do is Do.STORE_GLOBAL:
        value = scope.known.get(str(step.what), MISSING)
    elif step.do is Do.STORE_OUTER and step.what in scope.closure:
        value = scope.value(Step(Do.LOAD_OUTER, step.what))
    elif step.do is Do.STORE_MEMBER:
        for before in range(place - 2, 1, -1):
            if steps[before] == Step(Do.MEMBER, step.what) and steps[before - 1].do is Do.COPY:
                value = member(scope.loaded(steps, before - 2), str(step.what))
                break
    if is_number(value):
        yield f"counts in {step.what}"
