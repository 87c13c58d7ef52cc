"""Fields of expressions that Catalyst's JSON leaves out, read from the JVM when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.translation import Path


@dataclass(frozen=True, slots=True)
class ExpressionDetails:
    """Answers for one expression; fulfils :class:`eddyline.planner.read.translation.Details`."""

    tree: Tree

    def field(self, path: Path, name: str) -> str:
        """Return a field that JSON leaves out, as text."""
        return catalyst.hidden_field(self.tree.at(path).handle, name)

    def value(self, path: Path) -> object:
        """Return Catalyst's own value of a ``Literal``."""
        return catalyst.literal_value(self.tree.at(path).handle)

    def members(self, path: Path) -> Sequence[object]:
        """Return the members of an ``InSet``, None for NULL."""
        return catalyst.set_members(self.tree.at(path).handle)
