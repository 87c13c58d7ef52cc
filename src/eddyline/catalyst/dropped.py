"""Filters that Spark drops when it optimizes a plan, and how they come back.

With ``spark.sql.sources.useV1SourceList`` set to nothing Spark reads files by sources of version 2,
and PySpark 4.3 then loses each filter that calls a Python function and looks at nothing but
partition columns, wherever in the query it stands: the query gives more rows than it should.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from eddyline.catalyst.pipeline import partition_filters
from eddyline.catalyst.rules_at_work import plans_left_alone

LOST: Final = (
    "Spark drops these filters, which look at nothing but partition columns of files that a source "
    "of version 2 reads; eddyline.adapt keeps them:"
)
"""The warning where plain Spark gives too many rows."""


class WholePlan(NamedTuple):
    """An optimized plan with all filters of its query, and those that Spark had dropped."""

    plan: Any
    dropped: tuple[str, ...]


def whole_plan(optimized: Any, session: Any) -> WholePlan | None:  # noqa: ANN401  # Py4J has no types
    """Return an optimized plan with the filters that Spark has dropped; None if it dropped none.

    Where one cannot be put back the plan is as it was. None as well where no class of ours can be
    compiled in the JVM, so that nobody knows.
    """
    known = partition_filters()
    if known is None or not known.drops(optimized):
        return None
    filters = partition_filters(fresh=True)
    with plans_left_alone():
        whole = filters.whole(optimized, session)
    dropped = filters.dropped()
    return WholePlan(whole, tuple(str(dropped.get(n)) for n in range(dropped.size())))
