"""The walk over a Catalyst tree that asks for leaves, then applies a rule a node."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.blocks.decline import not_understood
from eddyline.expressions.expression import Expression, Literal
from eddyline.planner.read.translation.details import Details
from eddyline.planner.read.translation.literals import UnreadableValueError, literal, text_of
from eddyline.planner.read.translation.tree import CatalystNode, Path

Leaf: TypeAlias = Callable[[CatalystNode, Path], Expression | None]
"""Asked at every node: the expression that stands for it and all below it, or None."""

Rule: TypeAlias = "Callable[[Translator, CatalystNode, Path], Expression]"
"""Translates a node of one class; raises ``DeclinedError`` where it cannot."""


@dataclass(frozen=True, slots=True)
class Translator:
    """One translation: where leaves and hidden details come from, and the rules by class name."""

    leaf: Leaf
    details: Details
    time_zone: str
    rules: Mapping[str, Rule]

    def translated(self, node: CatalystNode, path: Path) -> Expression:
        """Return the expression for a node, or raise ``DeclinedError``."""
        if "collate" in str(node.fields.get("dataType", "")):
            raise not_understood(f"a collated string in {node.name}")
        given = self.leaf(node, path)
        if given is not None:
            return given
        rule = self.rules.get(node.name)
        if rule is None:
            raise not_understood(f"the expression {node.name}")
        return rule(self, node, path)

    def child(self, node: CatalystNode, path: Path, index: int = 0) -> Expression:
        """Translate one child of a node."""
        return self.translated(node.children[index], (*path, index))

    def children(self, node: CatalystNode, path: Path) -> tuple[Expression, ...]:
        """Translate all children of a node."""
        return tuple(self.child(node, path, index) for index in range(len(node.children)))

    def arrow_type(self, node: CatalystNode) -> pa.DataType:
        """Return the type that a node names in its fields."""
        described = node.fields.get("dataType")
        text = json.dumps(described)
        if not can_travel(text):
            raise not_understood(f"the type {described}")
        return arrow_type(text, self.time_zone)

    def literal(self, node: CatalystNode, path: Path) -> Literal:
        """Return a ``Literal``'s value, from JSON where that shows it exactly."""
        column_type = self.arrow_type(node)
        try:
            return literal(node.fields.get("value"), column_type)
        except UnreadableValueError:
            return self.exact_literal(self.details.value(path), column_type)

    def exact_literal(self, value: object, column_type: pa.DataType) -> Literal:
        """Return a literal of one of Catalyst's own values."""
        try:
            return literal(value, column_type)
        except UnreadableValueError as unreadable:
            raise not_understood(str(unreadable)) from None

    def constant_text(self, node: CatalystNode, where: str) -> str:
        """Return the string literal that must stand as pattern or needle in ``where``."""
        value = node.fields.get("value")
        if node.name != "Literal" or value is None or node.fields.get("dataType") != "string":
            raise not_understood(f"{where} with a pattern that is not constant")
        try:
            return text_of(value)
        except UnreadableValueError as unreadable:
            raise not_understood(str(unreadable)) from None
