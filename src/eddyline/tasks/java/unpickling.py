"""What the JVM's unpickler makes of a pickle.

Spark unpickles with ``net.razorvine.pickle``, which knows few of Python's classes: an object of any
other class becomes a map of its attributes, and one that takes arguments to make cannot be had.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

import numpy as np

from eddyline.blocks.filter_block import JavaRuntime
from eddyline.errors import ResultNotTransferableError
from eddyline.tasks.java.containers import (
    Character,
    ClassDict,
    JavaMap,
    JavaSet,
    PrimitiveArray,
    Single,
)
from eddyline.tasks.java.hash_tables import HashTable
from eddyline.tasks.java.objects import (
    JavaObject,
    Value,
    placed_text,
    text_of,
    without_surrogates,
)
from eddyline.tasks.java.times import (
    Calendar,
    ComplexNumber,
    Time,
    Timedelta,
    Zone,
    own_zone,
    zone_of,
)


@dataclass(frozen=True, repr=False, eq=False)
class _Constructor(JavaObject):
    """What stands for a Python class or function; it can be a value by itself."""

    java_class: str
    name: str
    make: Callable[..., Value]

    def __call__(self, *arguments: Value) -> Value:
        try:
            return self.make(*arguments)
        except (IndexError, KeyError, TypeError, ValueError, InvalidOperation) as error:
            if isinstance(error, ResultNotTransferableError):
                raise
            raise ResultNotTransferableError(
                f"The function returned a {self.name} that Spark cannot take over from a plain "
                f"Python function: {error}. {_REMEDY}"
            ) from None

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return its class and a number."""
        return placed_text(f"net.razorvine.pickle.objects.{self.java_class}", self.name)


@dataclass(frozen=True, repr=False, eq=False)
class _PythonException(JavaObject):
    """What stands for an exception of Python's."""

    message: str

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return the class and the message."""
        return f"net.razorvine.pickle.PythonException: {self.message}"


_REMEDY: Final = (
    "Return a plain Python value: for example value.item() for a NumPy number, or str(value)."
)

_MARK: Final = object()


def as_in_java(pickled: bytes, runtime: JavaRuntime) -> Value:
    """Return what a JVM makes of a pickle.

    Raises :class:`ResultNotTransferableError` where its unpickler fails.
    """
    return _Machine(runtime).run(pickled)


class _Machine:
    """The stack machine of one pickle."""

    def __init__(self, runtime: JavaRuntime) -> None:
        self._runtime = runtime
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, pickled: bytes) -> Value:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name == "STOP":
                break
            step = _STEPS.get(opcode.name)
            if step is None:
                told = f"Spark's unpickler does not take {opcode.name}. {_REMEDY}"
                raise ResultNotTransferableError(told)
            step(self, argument)
        return self._stack.pop()

    def push(self, value: Any) -> None:  # noqa: ANN401 - a value, or the mark
        self._stack.append(value)

    def pop(self, kind: type = object) -> Any:  # noqa: ANN401 - of that kind
        value = self._stack.pop()
        if not isinstance(value, kind):
            raise ResultNotTransferableError(
                f"Spark's unpickler takes no {type(value).__name__} here"
            )
        return value

    def pop_since_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
        items = self._stack[place + 1 :]
        del self._stack[place:]
        return items

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def get(self, place: int) -> None:
        self._stack.append(self._memo[place])

    def make_tuple(self, count: int) -> None:
        items = tuple(self._stack[-count:])
        del self._stack[-count:]
        self.push(items)

    def append(self, items: list[Any]) -> None:
        target = self.pop(list)
        target.extend(items)
        self.push(target)

    def set_items(self, items: list[Any]) -> None:
        target = self.pop(JavaMap)
        _put_together(
            target.table, list(zip(items[::2], items[1::2], strict=True)), self._runtime.version
        )
        self.push(target)

    def set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        target = self.pop(JavaMap)
        target.table.put(key, value)
        self.push(target)

    def add_items(self, items: list[Any]) -> None:
        target = self.pop(JavaSet)
        for item in items:
            target.table.put(item, True)  # noqa: FBT003 - what stands for a value in Java's sets
        self.push(target)

    def empty_map(self) -> None:
        self.push(JavaMap(HashTable(self._runtime.version, 0)))

    def empty_set(self) -> None:
        self.push(JavaSet(HashTable(self._runtime.version)))

    def frozen_set(self) -> None:
        items = self.pop_since_mark()
        self.push(JavaSet(HashTable.of_set(self._runtime.version, items)))

    def find(self) -> None:
        name, module = self.pop(str), self.pop(str)
        self.push(constructor(f"{module}.{name}", self._runtime))

    def reduce(self) -> None:
        arguments = self.pop(tuple)
        self.push(self.pop(_Constructor)(*arguments))

    def reduce_by_keyword(self) -> None:
        if len(self.pop(JavaMap).table):
            raise ResultNotTransferableError("Spark's unpickler passes no arguments by keyword")
        self.reduce()

    def build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if type(state) is JavaMap and isinstance(target, ClassDict):
            target.restore(state)
        elif type(state) is not JavaMap or not isinstance(target, _PythonException):
            raise ResultNotTransferableError(
                f"The function returned an object whose state, a {type(state).__name__}, Spark "
                f"cannot take over from a plain Python function. {_REMEDY}"
            )


def pickled_map(entries: list[tuple[Value, Value]], version: int) -> HashTable:
    """Return the table of a map of at most a thousand entries, which Python pickles at once."""
    table = HashTable(version, 0)
    if len(entries) == 1:
        table.put(*entries[0])
    else:
        _put_together(table, entries, version)
    return table


def _put_together(table: HashTable, entries: list[tuple[Value, Value]], version: int) -> None:
    # The library puts the entries into a map of their own first, from the last to the first.
    together = HashTable(version)
    for key, value in reversed(entries):
        together.put(key, value)
    table.put_all(together)


Step = Callable[[_Machine, Any], object]


def _nothing(machine: _Machine, argument: Any) -> None:  # noqa: ANN401 - an opcode's
    pass


_STEPS: Final[dict[str, Step]] = {
    "PROTO": _nothing,
    "FRAME": _nothing,
    "READONLY_BUFFER": _nothing,
    "MARK": lambda m, _: m.push(_MARK),
    "POP": lambda m, _: m.pop(),
    "POP_MARK": lambda m, _: m.pop_since_mark(),
    "MEMOIZE": lambda m, _: m.memoize(),
    "BINGET": lambda m, place: m.get(place),
    "LONG_BINGET": lambda m, place: m.get(place),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),  # noqa: FBT003 - a value
    "NEWFALSE": lambda m, _: m.push(False),  # noqa: FBT003 - a value
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "TUPLE1": lambda m, _: m.make_tuple(1),
    "TUPLE2": lambda m, _: m.make_tuple(2),
    "TUPLE3": lambda m, _: m.make_tuple(3),
    "TUPLE": lambda m, _: m.push(tuple(m.pop_since_mark())),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "APPEND": lambda m, _: m.append([m.pop()]),
    "APPENDS": lambda m, _: m.append(m.pop_since_mark()),
    "EMPTY_DICT": lambda m, _: m.empty_map(),
    "SETITEM": lambda m, _: m.set_item(),
    "SETITEMS": lambda m, _: m.set_items(m.pop_since_mark()),
    "EMPTY_SET": lambda m, _: m.empty_set(),
    "ADDITEMS": lambda m, _: m.add_items(m.pop_since_mark()),
    "FROZENSET": lambda m, _: m.frozen_set(),
    "STACK_GLOBAL": lambda m, _: m.find(),
    "REDUCE": lambda m, _: m.reduce(),
    "NEWOBJ": lambda m, _: m.reduce(),
    "NEWOBJ_EX": lambda m, _: m.reduce_by_keyword(),
    "BUILD": lambda m, _: m.build(),
    "BYTEARRAY8": lambda m, data: m.push(bytes(data)),
    **dict.fromkeys(
        ("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
        lambda m, number: m.push(number),
    ),
    **dict.fromkeys(
        ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        lambda m, text: m.push(without_surrogates(text)),
    ),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), lambda m, data: m.push(data)),
}


def constructor(name: str, runtime: JavaRuntime) -> _Constructor:
    """Return what the library has for a class or a function of Python's, given its full name.

    It takes the arguments; :class:`ResultNotTransferableError` where the library's fails.
    """
    known = _KNOWN.get(name)
    if known is not None:
        java_class, make = known
        return _Constructor(java_class, name, partial(make, runtime))
    module, _, last = name.rpartition(".")
    if module == "builtins" and last.endswith(_EXCEPTION_ENDS):
        return _Constructor("ExceptionConstructor", name, partial(_exception, name, runtime))
    return _Constructor("ClassDictConstructor", name, partial(_class_dict, name, runtime))


def _class_dict(name: str, runtime: JavaRuntime, *arguments: Value) -> ClassDict:
    if arguments:
        raise ResultNotTransferableError(
            f"The function returned an object made by {name}, which Spark cannot take over from a "
            f"plain Python function. {_REMEDY}"
        )
    return ClassDict(name, runtime.version)


_EXCEPTION_ENDS: Final = (
    "Error",
    "Warning",
    "Exception",
    "GeneratorExit",
    "KeyboardInterrupt",
    "StopIteration",
    "SystemExit",
)


def _exception(name: str, runtime: JavaRuntime, *arguments: Value) -> _PythonException:
    told = f" {text_of(arguments[0], runtime.version)}" if arguments else ""
    return _PythonException(f"[{name}]{told}")


def _decimal(_: JavaRuntime, text: str) -> Value:
    if text.lower() == "nan":
        return float("nan")
    value = Decimal(text)
    if not value.is_finite() or abs(int(value.as_tuple().exponent)) > _LARGEST_SCALE:
        raise ValueError("Java's decimals are finite; return None, or declare double")
    return value or value.copy_abs()  # Java has no negative zero here


_LARGEST_SCALE: Final = (1 << 31) - 1


def _complex(_: JavaRuntime, real: float, imaginary: float) -> ComplexNumber:
    return ComplexNumber(real, imaginary)


def _set(runtime: JavaRuntime, items: list[Value]) -> JavaSet:
    return JavaSet(HashTable.of_set(runtime.version, items))


def _bytes(_: JavaRuntime, data: Value = b"", encoding: str | None = None) -> bytes:
    if encoding is not None:
        return bytes(data.encode(encoding, "replace"))
    return data if isinstance(data, bytes) else bytes(item & 0xFF for item in data)


def _timedelta(_: JavaRuntime, days: int, seconds: int, microseconds: int) -> Timedelta:
    return Timedelta(days, seconds, microseconds)


def _time(_: JavaRuntime, state: bytes) -> Time:
    hour, minute, second, *micros = state
    return Time(hour, minute, second, int.from_bytes(bytes(micros)))


def _date(runtime: JavaRuntime, state: bytes) -> Calendar:
    high, low, month, day = state
    zone = own_zone(runtime)
    return Calendar(high * 256 + low, month - 1, day, 0, 0, 0, None, zone, runtime)


def _datetime(runtime: JavaRuntime, state: bytes, zone: Zone | None = None) -> Calendar:
    high, low, month, day, hour, minute, second, *micros = state
    if zone is not None and not isinstance(zone, Zone):
        raise TypeError("a time zone that Java does not know")
    return Calendar(
        high * 256 + low,
        month - 1,
        day,
        hour,
        minute,
        second,
        int.from_bytes(bytes(micros)) // 1000,
        zone or own_zone(runtime),
        runtime,
    )


def _utc(runtime: JavaRuntime) -> Zone:
    return zone_of("UTC", runtime)


def _pytz(runtime: JavaRuntime, name: str, *rest: Value) -> Zone:
    if len(rest) not in {0, 3}:
        raise TypeError("arguments that are not those of a time zone of pytz's")
    return zone_of(name, runtime)


_PRIMITIVES: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "b": ("B", {1: "i1"}),
    "B": ("S", {0: "u1"}),
    "h": ("S", {4: "<i2", 5: ">i2"}),
    "H": ("I", {2: "<u2", 3: ">u2"}),
    "i": ("I", {8: "<i4", 9: ">i4"}),
    "l": ("I", {8: "<i4", 9: ">i4", 12: "<i8", 13: ">i8"}),
    "I": ("J", {6: "<u4", 7: ">u4"}),
    "L": ("J", {6: "<u4", 7: ">u4"}),
    "f": ("F", {14: "<f4", 15: ">f4"}),
    "d": ("D", {16: "<f8", 17: ">f8"}),
    "u": ("C", {18: "<u2", 19: ">u2", 20: "<u4", 21: ">u4"}),
}
"""Python's code of an array -> Java's, and NumPy's type for each format of pickled arrays."""

_LAST_CHARACTER: Final = 0xFFFF


def _array(_: JavaRuntime, maker: Value, code: str, form: int, data: bytes) -> Value:
    if not isinstance(maker, _Constructor) or maker.java_class != "ArrayConstructor":
        raise TypeError("an array of a class that Java does not know")
    java_code, forms = _PRIMITIVES[code]
    if java_code == "B":
        return data
    items = np.frombuffer(data, forms[form]).tolist()
    if java_code == "C":
        if any(item > _LAST_CHARACTER for item in items):
            raise ValueError("a character that takes two of Java's")
        return PrimitiveArray(java_code, [Character(chr(item)) for item in items])
    if java_code == "F":
        return PrimitiveArray(java_code, [Single(item) for item in items])
    return PrimitiveArray("J" if forms[form].endswith("i8") else java_code, items)


_KNOWN: Final[dict[str, tuple[str, Callable[..., Value]]]] = {
    "builtins.complex": ("AnyClassConstructor", _complex),
    "decimal.Decimal": ("AnyClassConstructor", _decimal),
    "array.array": ("ArrayConstructor", _array),
    "array._array_reconstructor": ("ArrayConstructor", _array),
    "builtins.bytearray": ("ByteArrayConstructor", _bytes),
    "_codecs.encode": ("ByteArrayConstructor", _bytes),
    "builtins.set": ("SetConstructor", _set),
    "datetime.datetime": ("DateTimeConstructor", _datetime),
    "datetime.time": ("DateTimeConstructor", _time),
    "datetime.date": ("DateTimeConstructor", _date),
    "datetime.timedelta": ("DateTimeConstructor", _timedelta),
    "pytz._UTC": ("TimeZoneConstructor", _utc),
    "pytz._p": ("TimeZoneConstructor", _pytz),
}
