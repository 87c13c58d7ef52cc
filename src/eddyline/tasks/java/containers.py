"""Maps, sets and arrays of the JVM."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from eddyline.tasks.java.hash_tables import HashTable
from eddyline.tasks.java.number_texts import single_text
from eddyline.tasks.java.objects import (
    JavaObject,
    Value,
    equality_of,
    hash_of,
    joined,
    placed_text,
    signed,
    text_of,
)


class JavaMap(JavaObject):
    """A ``HashMap``; equal to another one with equal entries, in whatever order."""

    def __init__(self, table: HashTable) -> None:
        """Make it of the table of its entries."""
        self._entries = table

    @property
    def table(self) -> HashTable:
        """The table of its entries."""
        return self._entries

    def text(self, version: int) -> str:
        """Return ``{key=value, …}``."""

        def told(value: Value) -> str:
            return "(this Map)" if value is self else text_of(value, version)

        entries = (f"{told(key)}={told(value)}" for key, value in self.table)
        return f"{{{', '.join(entries)}}}"

    def hash_code(self) -> int:
        """Return the sum of the hash codes of the entries."""
        return signed(sum(hash_of(key) ^ hash_of(value) for key, value in self.table))

    def equality(self) -> Hashable:
        """Return the entries."""
        return ("map", frozenset((equality_of(k), equality_of(v)) for k, v in self.table))


class ClassDict(JavaMap):
    """A map of the attributes of an object whose class the JVM does not know."""

    def __init__(self, class_name: str, version: int) -> None:
        """Make one without attributes."""
        super().__init__(HashTable(version))
        self._class_name = class_name
        self.table.put("__class__", class_name)

    def restore(self, state: JavaMap) -> None:
        """Take the attributes of a pickled object."""
        self.table.clear()
        self.table.put("__class__", self._class_name)
        self.table.put_all(state.table)


class JavaSet(JavaObject):
    """A ``HashSet``; equal to another one with equal elements."""

    def __init__(self, table: HashTable) -> None:
        """Make it of a table whose keys are the elements."""
        self.table = table

    def text(self, version: int) -> str:
        """Return ``[element, …]``."""
        return joined(text_of(element, version) for element, _ in self.table)

    def hash_code(self) -> int:
        """Return the sum of the hash codes of the elements."""
        return signed(sum(hash_of(element) for element, _ in self.table))

    def equality(self) -> Hashable:
        """Return the elements."""
        return ("set", frozenset(equality_of(element) for element, _ in self.table))


@dataclass(eq=False, repr=False)
class PrimitiveArray(JavaObject):
    """An array of numbers or characters: ``int[]`` has the code ``I``."""

    code: str
    items: list[Value]

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return a text of the form ``[I@2cacf7d0``."""
        return placed_text(f"[{self.code}", (self.code, self.items))


@dataclass(frozen=True, repr=False)
class Single(JavaObject):
    """A ``Float``, which stands in arrays only."""

    value: float

    def text(self, version: int) -> str:
        """Return ``Float.toString``."""
        return single_text(self.value, version)


@dataclass(frozen=True, repr=False)
class Character(JavaObject):
    """A ``char``, which stands in arrays only."""

    value: str

    def text(self, version: int) -> str:  # noqa: ARG002 - every object's
        """Return the character."""
        return self.value
