"""Whether native expressions of Spark can raise an error on a row.

The families of expressions know it (:mod:`eddyline.expressions.families`); here they get the
expression that they are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.expressions import catalyst_class
from eddyline.planner.read.chains import Tree


def may_throw(tree: Tree) -> bool:
    """Whether the expression could raise on some row; True where it is not known."""
    return top_may_throw(tree) or any(may_throw(child) for child in tree.children)


def top_may_throw(tree: Tree) -> bool:
    """Whether the expression itself could raise on some row, apart from its operands."""
    return catalyst_class(tree.name).may_raise(TreeOperator(tree))


@dataclass(frozen=True, slots=True)
class TreeOperator:
    """The top of a tree; fulfils :class:`eddyline.expressions.catalyst_classes.SparkOperator`."""

    tree: Tree

    @property
    def name(self) -> str:
        """The class."""
        return self.tree.name

    @property
    def fields(self) -> Mapping[str, object]:
        """The fields that Catalyst's JSON shows."""
        return self.tree.node.fields

    def hidden(self, field: str) -> str:
        """Return a field that Catalyst's JSON leaves out, as text."""
        return catalyst.hidden_field(self.tree.handle, field)

    def hidden_texts(self, field: str) -> Sequence[str]:
        """Return a list of texts that Catalyst's JSON leaves out."""
        return catalyst.hidden_texts(self.tree.handle, field)

    @property
    def kind(self) -> str:
        """The type of its values, as JSON."""
        return catalyst.data_type(self.tree.handle)

    @property
    def operand_names(self) -> Sequence[str]:
        """The classes of its operands."""
        return [operand.name for operand in self.tree.children]

    def operand_kind(self, position: int) -> str:
        """Return the type of an operand, as JSON."""
        return catalyst.data_type(self.tree.children[position].handle)

    def constant(self, position: int) -> str | None:
        """Return an operand as text; None where it is no constant."""
        operand = self.tree.children[position]
        value = operand.node.fields.get("value")
        return None if value is None or operand.name != "Literal" else str(value)

    def always_casts(self) -> bool:
        """Whether Spark says of a ``Cast`` that it has a result for every value."""
        return catalyst.always_casts(self.tree.handle)

    def groups_in(self, pattern: str) -> int | None:
        """Return how many groups a regular expression of Java's has; None where it is not valid."""
        return catalyst.groups_in(pattern)
