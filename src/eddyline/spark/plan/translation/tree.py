"""Catalyst's expressions as a tree of plain data, read from their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

Path = tuple[int, ...]
"""The way from the top of a tree to a node: the number of a child, of its child, and so on."""

_STRUCTURE = frozenset({"class", "num-children"})


@dataclass(frozen=True, slots=True)
class CatalystNode:
    """One expression: the full name of its class, its other fields as in JSON, its children."""

    class_name: str
    fields: Mapping[str, object]
    children: tuple[CatalystNode, ...]

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.class_name.rpartition(".")[2]


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
