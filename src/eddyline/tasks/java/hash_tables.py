"""The order in which ``java.util.HashMap`` lists its entries.

It depends on the hash codes of the keys, on the size of the table, and within a bin on when
an entry came. Bins of more than eight entries become red-black trees, whose root comes first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from decimal import Decimal
from typing import Any, Final

from eddyline.tasks.java.objects import Value, equality_of, hash_of

_TREE_FROM: Final = 8
"""Entries of a bin after which it becomes a tree, if the table is not small."""

_LIST_UNTIL: Final = 6
"""Entries of a part of a split tree that becomes a list again."""

_SMALLEST_WITH_TREES: Final = 64
"""Bins of a table that has trees; a smaller one doubles instead."""

_NEW_SIZES: Final = 19
"""The version of Java from which a table for a known number of entries is not one too large."""


class _Node:
    """An entry, and its place in the tree of its bin if that is one."""

    __slots__ = ("hash", "key", "left", "parent", "red", "right", "value")

    def __init__(self, code: int, key: Value, value: Value) -> None:
        self.hash = code
        self.key = key
        self.value = value
        self.cut()

    def cut(self) -> None:
        self.parent: _Node | None = None
        self.left: _Node | None = None
        self.right: _Node | None = None
        self.red = False


class _Bin:
    """Entries of one place of the table, in their order."""

    __slots__ = ("nodes", "root")

    def __init__(self, nodes: list[_Node]) -> None:
        self.nodes = nodes
        self.root: _Node | None = None

    def plant(self) -> None:
        """Make a tree of the entries."""
        root: _Node | None = None
        for node in self.nodes:
            node.cut()
            root = _inserted(root, node)[0]
        self._take_for_root(root)

    def add(self, node: _Node) -> None:
        if self.root is None:
            self.nodes.append(node)
            return
        root, parent = _inserted(self.root, node)
        self.nodes.insert(self.nodes.index(parent) + 1, node) if parent else None
        self._take_for_root(root)

    def _take_for_root(self, root: _Node | None) -> None:
        if root is not None:
            self.nodes.remove(root)
            self.nodes.insert(0, root)
        self.root = root

    def split(self, bit: int) -> tuple[_Bin, _Bin]:
        """Return the entries whose hash code lacks a bit, and those that have it."""
        parts = (
            _Bin([node for node in self.nodes if not node.hash & bit]),
            _Bin([node for node in self.nodes if node.hash & bit]),
        )
        if self.root is not None:
            for part, other in (parts, parts[::-1]):
                if not other.nodes:
                    part.root = self.root
                if len(part.nodes) <= _LIST_UNTIL:
                    part.root = None
                elif other.nodes:
                    part.plant()
        return parts


class HashTable:
    """A ``HashMap``, as far as the order of its entries is concerned."""

    def __init__(self, version: int, capacity: int = 16) -> None:
        """Make an empty one as ``new HashMap(capacity)`` in a version of Java."""
        self._version = version
        self._capacity = _power_of_two(capacity)
        self._bins: list[_Bin | None] = []  # made when the first entry comes, as Java's
        self._nodes: dict[Hashable, _Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[tuple[Value, Value]]:
        for bin_ in self._bins:
            if bin_ is not None:
                for node in bin_.nodes:
                    yield node.key, node.value

    def put(self, key: Value, value: Value) -> None:
        """Do what ``put`` does: an equal key stays where it is and gets the value."""
        equality = equality_of(key)
        known = self._nodes.get(equality)
        if known is not None:
            known.value = value
            return
        self._bins = self._bins or [None] * self._capacity
        code = hash_of(key) & 0xFFFF_FFFF
        code ^= code >> 16
        node = self._nodes[equality] = _Node(code, key, value)
        place = code & len(self._bins) - 1
        its_bin = self._bins[place]
        if its_bin is None:
            self._bins[place] = _Bin([node])
        else:
            its_bin.add(node)
            if its_bin.root is None and len(its_bin.nodes) > _TREE_FROM:
                if len(self._bins) < _SMALLEST_WITH_TREES:
                    self._double()
                else:
                    its_bin.plant()
        if len(self._nodes) > self._threshold:
            self._double()

    def put_all(self, other: HashTable) -> None:
        """Do what ``putAll`` does: make room first, then put entry by entry."""
        count = len(other)
        if count and not self._bins:
            wanted = self._room_for(count)
            if wanted > self._capacity:
                self._capacity = _power_of_two(wanted)
        elif count:
            while count > self._threshold:
                self._double()
        for key, value in other:
            self.put(key, value)

    def clear(self) -> None:
        """Do what ``clear`` does: the table keeps its size."""
        self._nodes.clear()
        self._bins = [None] * len(self._bins)

    @classmethod
    def of_set(cls, version: int, items: list[Value]) -> HashTable:
        """Return the table of ``new HashSet(items)``, whose entries have no values."""
        table = cls(version)
        table._capacity = _power_of_two(max(table._room_for(len(items)), 16))
        for item in items:
            table.put(item, True)  # noqa: FBT003 - what stands for a value in Java's sets
        return table

    @property
    def _threshold(self) -> int:
        return len(self._bins) * 3 // 4

    def _room_for(self, count: int) -> int:
        return -(-count * 4 // 3) if self._version >= _NEW_SIZES else count * 4 // 3 + 1

    def _double(self) -> None:
        bit = len(self._bins)
        lower: list[_Bin | None] = []
        upper: list[_Bin | None] = []
        for bin_ in self._bins:
            low, high = bin_.split(bit) if bin_ is not None else (_Bin([]), _Bin([]))
            lower.append(low if low.nodes else None)
            upper.append(high if high.nodes else None)
        self._bins = lower + upper


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _inserted(root: _Node | None, node: _Node) -> tuple[_Node, _Node | None]:
    """Put a node into a tree; return the new root, and the node's first parent."""
    if root is None:
        return node, None
    parent: _Node = root
    while True:
        left = _comes_before(node, parent)
        below = parent.left if left else parent.right
        if below is None:
            break
        parent = below
    node.parent = parent
    if left:
        parent.left = node
    else:
        parent.right = node
    return _balanced(root, node), parent


def _comes_before(node: _Node, other: _Node) -> bool:
    mine, its = (bits - (bits >> 31 << 32) for bits in (node.hash, other.hash))
    if mine != its:
        return mine < its
    if type(node.key) is type(other.key) and type(node.key) in _COMPARABLE:
        return bool(_COMPARABLE[type(node.key)](node.key) < _COMPARABLE[type(node.key)](other.key))
    return repr(node.key) <= repr(other.key)  # Java goes by the place in memory


_COMPARABLE: Final[dict[type, Any]] = {
    bool: bool,
    int: int,
    float: float,
    Decimal: Decimal,
    str: lambda text: text.encode("utf-16-be", errors="replace"),
}


def _balanced(root: _Node, node: _Node) -> _Node:
    """Restore the colours of a red-black tree after a node came in; return the root."""
    node.red = True
    while True:
        parent = node.parent
        if parent is None:
            node.red = False
            return node
        grandparent = parent.parent
        if not parent.red or grandparent is None:
            return root
        on_left = parent is grandparent.left
        uncle = grandparent.right if on_left else grandparent.left
        if uncle is not None and uncle.red:
            uncle.red = parent.red = False
            grandparent.red = True
            node = grandparent
            continue
        if node is (parent.right if on_left else parent.left):
            root = _rotated(root, parent, left=on_left)
            node, parent = parent, node
        parent.red = False
        grandparent.red = True
        root = _rotated(root, grandparent, left=not on_left)


def _rotated(root: _Node, node: _Node, *, left: bool) -> _Node:
    """Turn a node to the left (or right) below its child; return the tree's root."""
    child = node.right if left else node.left
    if child is None:
        return root
    if left:
        node.right, child.left, moved = child.left, node, child.left
    else:
        node.left, child.right, moved = child.right, node, child.right
    if moved is not None:
        moved.parent = node
    child.parent, node.parent = node.parent, child
    above = child.parent
    if above is None:
        child.red = False
        return child
    if above.left is node:
        above.left = child
    else:
        above.right = child
    return root
