"""From Catalyst's expressions, as JSON, to Eddyline's; no JVM is asked here."""

from eddyline.planner.read.translation.details import Details, EvaluationMode
from eddyline.planner.read.translation.rules import translate
from eddyline.planner.read.translation.translator import Leaf
from eddyline.planner.read.translation.tree import CatalystNode, Path, parse, tree_of

__all__ = [
    "CatalystNode",
    "Details",
    "EvaluationMode",
    "Leaf",
    "Path",
    "parse",
    "translate",
    "tree_of",
]
