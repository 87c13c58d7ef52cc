"""Catalyst's expressions as a tree of plain data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

Path = tuple[int, ...]
"""The way from the top of a tree to a node: the number of a child, of its child, and so on."""

_STRUCTURE = frozenset({"class", "num-children"})


class TreeEntry(Protocol):
    """One node as it is read: see :class:`eddyline.catalyst.ReadNode`."""

    @property
    def class_name(self) -> str:
        """The full name of its class."""

    @property
    def children(self) -> int:
        """How many of the nodes that follow are below it."""

    @property
    def fields(self) -> Mapping[str, object]:
        """Its other fields, as in JSON."""

    @property
    def attributes(self) -> Sequence[TreeEntry]:
        """The attributes in it, where it was not read further."""

    @property
    def below(self) -> Callable[[], Sequence[Sequence[TreeEntry]]] | None:
        """Reads what is below it, where that was not read at once."""


class CatalystNode:
    """One expression: the full name of its class, its other fields as in JSON, its children.

    ``entry`` is what it was read from, where that is more than its fields. What is below it may
    be read only when it is asked for; ``attributes`` are those of an expression that is not read
    yet, and None of all others.
    """

    __slots__ = ("_children", "class_name", "entry", "fields", "name")

    def __init__(
        self,
        class_name: str,
        fields: Mapping[str, object],
        children: Sequence[CatalystNode],
        entry: TreeEntry | None = None,
    ) -> None:
        self.class_name = class_name
        self.fields = fields
        self.entry = entry
        self.name = class_name.rpartition(".")[2]  # the class without its package
        is_read = entry is None or entry.below is None
        self._children = tuple(children) if is_read else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CatalystNode):
            return NotImplemented
        one, two = ((node.class_name, node.fields, node.children) for node in (self, other))
        return one == two

    __hash__ = None  # type: ignore[assignment]  # fields are mappings

    @property
    def children(self) -> tuple[CatalystNode, ...]:
        """The expressions right below."""
        if self._children is None:
            read = () if self.entry is None or self.entry.below is None else self.entry.below()
            self._children = tuple(map(tree_of, read))
        return self._children

    @property
    def attributes(self) -> tuple[CatalystNode, ...] | None:
        """The attributes in it, as long as it is not read further; else None."""
        if self._children is not None or self.entry is None:
            return None
        return tuple(tree_of([attribute]) for attribute in self.entry.attributes)


def tree_of(entries: Iterable[TreeEntry]) -> CatalystNode:
    """Build the tree of an expression from its nodes, parents first.

    ValueError for another list.
    """
    # Backwards, the children of a node are on top of the stack when it comes,
    # the first one uppermost. A deep tree needs no deep recursion this way.
    stack: list[CatalystNode] = []
    for entry in reversed(list(entries)):
        count = 0 if entry.below is not None else entry.children
        if count > len(stack):
            raise ValueError(f"{entry.class_name} lacks some of its {count} children.")
        children = tuple(stack.pop() for _ in range(count))
        stack.append(CatalystNode(entry.class_name, entry.fields, children, entry))
    if len(stack) != 1:
        raise ValueError(f"There are {len(stack)} expressions where one was expected.")
    return stack[0]


def parse(json_text: str) -> CatalystNode:
    """Build the tree from what Catalyst's ``toJSON()`` gives: all nodes, parents first.

    Raises ``ValueError`` for text that is not such a list.

    >>> node = parse('[{"class": "x.Not", "num-children": 1, "child": 0},'
    ...              ' {"class": "x.Literal", "num-children": 0, "value": "true"}]')
    >>> node.name, node.children[0].fields["value"]
    ('Not', 'true')
    """
    # Backwards, the children of a node are on top of the stack when it comes,
    # the first one uppermost. A deep tree needs no deep recursion this way.
    stack: list[CatalystNode] = []
    for entry in reversed(json.loads(json_text)):
        count = entry["num-children"]
        if count > len(stack):
            raise ValueError(f"The JSON of {entry['class']} lacks some of its {count} children.")
        children = tuple(stack.pop() for _ in range(count))
        fields = {key: value for key, value in entry.items() if key not in _STRUCTURE}
        stack.append(CatalystNode(entry["class"], fields, children))
    if len(stack) != 1:
        raise ValueError(f"The JSON holds {len(stack)} expressions where one was expected.")
    return stack[0]
