"""From Catalyst's expressions, as JSON, to Eddyline's; no JVM is asked here."""

from eddyline.spark.translation.details import Details, EvaluationMode
from eddyline.spark.translation.rules import Refusal, translate
from eddyline.spark.translation.translator import Leaf
from eddyline.spark.translation.tree import CatalystNode, Path, parse

__all__ = [
    "CatalystNode",
    "Details",
    "EvaluationMode",
    "Leaf",
    "Path",
    "Refusal",
    "parse",
    "translate",
]
