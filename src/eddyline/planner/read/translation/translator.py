"""The walk over a Catalyst tree that asks for leaves, then for the recipe of each class.

The recipes stand with the expressions that they build: see :mod:`eddyline.expressions.families`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.expressions import Expression, Literal, catalyst_class, fault_of
from eddyline.expressions.catalyst_classes import NotTranslatedError
from eddyline.planner.read.translation.literals import UnreadableValueError, literal, text_of
from eddyline.planner.read.translation.tree import CatalystNode, Path

Leaf: TypeAlias = Callable[[CatalystNode, Path], Expression | None]
"""Asked at every node: the expression that stands for it and all below it, or None."""


class Details(Protocol):
    """Fields of nodes that JSON does not show (checked with Spark 4.3), by the node's path.

    The host adapter answers from the expression in the JVM. A question costs a
    trip there, so only what matters for the translation is asked for.
    """

    def field(self, path: Path, name: str) -> str:
        """Return a field that is null in JSON as text.

        As ``evalMode`` of an arithmetic expression or a ``Cast``, and ``escapeChar`` of a ``Like``.
        """
        ...

    def value(self, path: Path) -> object:
        """Return Catalyst's own value of a ``Literal`` that is not NULL.

        JSON shows a timestamp as local time, which one hour a year is ambiguous,
        and of binary only an address. Microseconds since 1970 and ``bytes`` are
        meant; days since 1970 for a date.
        """
        ...

    def members(self, path: Path) -> Sequence[object]:
        """Return ``hset`` of an ``InSet``, null in JSON: Catalyst's own values, None for NULL.

        Numbers, booleans and ``bytes`` as themselves, dates in days, timestamps in
        microseconds; strings and decimals as text.
        """
        ...


def translate(
    node: CatalystNode,
    leaf: Leaf,
    details: Details,
    *,
    time_zone: str = "UTC",
    instead: Leaf | None = None,
) -> Expression:
    """Translate a Catalyst expression into one that is evaluated exactly alike.

    ``leaf`` is asked first at every node, with its path from ``node``; what it
    returns stands for the whole subtree. It must answer for attributes, and must
    not answer for an expression whose value is a collated string. ``details`` is
    asked for what JSON leaves out. ``time_zone`` is the one in the Arrow types of
    the leaves' timestamps. ``instead`` is asked for what stands for a node that cannot be
    translated, the innermost first. Raises :class:`~eddyline.blocks.decline.DeclinedError` for
    whatever cannot be evaluated exactly.
    """
    try:
        expression = _Translation(leaf, details, time_zone, instead).of(node, ())
    except NotTranslatedError as refusal:
        raise not_understood(str(refusal)) from None
    fault = fault_of(expression)
    if fault is not None:
        raise not_understood(fault)
    return expression


def _faultless(expression: Expression) -> Expression:
    fault = fault_of(expression)
    if fault is not None:
        raise NotTranslatedError(fault)
    return expression


@dataclass(frozen=True, slots=True)
class _Translation:
    """One translation: where leaves and hidden details come from."""

    leaf: Leaf
    details: Details
    time_zone: str
    instead: Leaf | None

    def of(self, node: CatalystNode, path: Path) -> Expression:
        if self.instead is None:
            return self._of(node, path)
        try:
            return _faultless(self._of(node, path))
        except (NotTranslatedError, DeclinedError):
            other = self.instead(node, path)
            if other is None:
                raise
            return other

    def _of(self, node: CatalystNode, path: Path) -> Expression:
        if "collate" in str(node.fields.get("dataType", "")):
            raise NotTranslatedError(f"a collated string in {node.name}")
        given = self.leaf(node, path)
        if given is not None:
            return given
        recipe = catalyst_class(node.name).recipe
        if recipe is None:
            raise NotTranslatedError(f"the expression {node.name}")
        return recipe(_Node(self, node, path))


@dataclass(frozen=True, slots=True)
class _Node:
    """A node that a recipe takes; :class:`~eddyline.expressions.catalyst_classes.Ingredients`."""

    translation: _Translation
    node: CatalystNode
    path: Path

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def fields(self) -> Mapping[str, object]:
        return self.node.fields

    def hidden(self, field: str) -> str:
        return self.translation.details.field(self.path, field)

    def operand(self, position: int = 0) -> Expression:
        return self.translation.of(self.node.children[position], (*self.path, position))

    def operands(self) -> tuple[Expression, ...]:
        return tuple(self.operand(position) for position in range(len(self.node.children)))

    def below(self, position: int) -> _Node:
        return _Node(self.translation, self.node.children[position], (*self.path, position))

    def declared_type(self) -> pa.DataType:
        described = self.node.fields.get("dataType")
        text = json.dumps(described)
        if not can_travel(text):
            raise NotTranslatedError(f"the type {described}")
        return arrow_type(text, self.translation.time_zone)

    def literal(self) -> Literal:
        """Return the value from JSON, where that shows it exactly."""
        declared = self.declared_type()
        try:
            return literal(self.node.fields.get("value"), declared)
        except UnreadableValueError:
            return _exact(self.translation.details.value(self.path), declared)

    def constant_text(self, where: str) -> str:
        value = self.node.fields.get("value")
        is_text = self.node.fields.get("dataType") == "string"
        if self.node.name != "Literal" or value is None or not is_text:
            raise NotTranslatedError(f"{where} with a pattern that is not constant")
        try:
            return text_of(value)
        except UnreadableValueError as unreadable:
            raise NotTranslatedError(str(unreadable)) from None

    def members(self, a_type: pa.DataType) -> Iterator[Literal]:
        for member in self.translation.details.members(self.path):
            yield _exact(member, a_type)


def _exact(value: object, a_type: pa.DataType) -> Literal:
    """Return a literal of one of Catalyst's own values."""
    try:
        return literal(value, a_type)
    except UnreadableValueError as unreadable:
        raise NotTranslatedError(str(unreadable)) from None
