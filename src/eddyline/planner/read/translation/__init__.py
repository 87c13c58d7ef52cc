"""From Catalyst's expressions, as JSON, to Eddyline's; no JVM is asked here."""

from eddyline.planner.read.translation.translator import Details, Leaf, translate
from eddyline.planner.read.translation.tree import CatalystNode, Path, parse, tree_of

__all__ = [
    "CatalystNode",
    "Details",
    "Leaf",
    "Path",
    "parse",
    "translate",
    "tree_of",
]
