"""From Catalyst's expressions, as JSON, to Eddyline's; no JVM is asked here."""

from eddyline.spark.plan.translation.details import Details, EvaluationMode
from eddyline.spark.plan.translation.rules import translate
from eddyline.spark.plan.translation.translator import Leaf
from eddyline.spark.plan.translation.tree import CatalystNode, Path, parse, tree_of

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
