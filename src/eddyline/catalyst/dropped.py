"""Filters that Spark drops when it optimizes a plan, and how they come back.

With ``spark.sql.sources.useV1SourceList`` set to nothing Spark reads files by sources of version 2,
and PySpark 4.3 then loses each filter that calls a Python function and looks at nothing but
partition columns, wherever in the query it stands: the query gives more rows than it should. So
does 4.0, whose plans do not name what was pushed to a scan: there nobody can tell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eddyline.catalyst.handles import Plan
from eddyline.catalyst.pipeline import new_partition_filters
from eddyline.catalyst.plan_data import read_plan
from eddyline.catalyst.rules_at_work import plans_left_alone


class WholePlan(NamedTuple):
    """An optimized plan with all filters of its query, and those that Spark had dropped."""

    plan: Any
    dropped: tuple[str, ...]


def loses_filters(plan: Plan) -> bool:
    """Whether Spark has dropped filters from an optimized plan.

    False as well where no class of ours can be compiled in the JVM, so that nobody knows.
    """
    read_plan(plan)
    return bool(plan.told.get(loses_filters.__name__))


def whole_plan(optimized: Any, session: Any) -> WholePlan:  # noqa: ANN401  # Py4J has no types
    """Return an optimized plan that loses filters with these; one that cannot be put back is lost.

    Where none can be the plan is as it was.
    """
    filters = new_partition_filters()
    with plans_left_alone():
        whole = filters.whole(optimized, session)
    dropped = filters.dropped()
    return WholePlan(whole, tuple(str(dropped.get(n)) for n in range(dropped.size())))
