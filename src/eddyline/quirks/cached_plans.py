"""The plan whose rows a cache keeps."""

from __future__ import annotations

from typing import Any

from eddyline.quirks.pyspark_at_hand import MINOR


def cached_plan(relation: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return the optimized plan of an ``InMemoryRelation``, as ``PlanQuestions.cached`` does.

    Up to Spark 3.5 the relation has its physical plan only, whose nodes tell which ones of the
    optimized plan they came of; those that Spark puts around the topmost do not.
    """
    if MINOR >= (4, 0):
        return relation.cacheBuilder().logicalPlan()
    plan = relation.cachedPlan()
    while bool(plan.logicalLink().isEmpty()):
        adaptive = str(plan.getClass().getSimpleName()) == "AdaptiveSparkPlanExec"
        plan = plan.inputPlan() if adaptive else plan.children().apply(0)
    return plan.logicalLink().get()
