"""The report of what the blocks of a DataFrame did, once an action has run."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from eddyline import catalyst
from eddyline.checked_values import switch
from eddyline.host.classic import chosen_session
from eddyline.host.classic import classic as classic_frame
from eddyline.planner.adapt import adapted_blocks, cascades_in, is_derived, left_in
from eddyline.planner.block_registry import registry_of
from eddyline.planner.block_reports import routing_report
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.declare.measured_scans import learn_scans
from eddyline.reports.learned_report import LearnedReport
from eddyline.reports.routing_report import RoutingReport
from eddyline.tasks.task_records import record_key, recorded


def report(df: DataFrame, *, all: bool = False) -> RoutingReport:  # noqa: A002 - as people say it
    """Return how the eddies of a DataFrame routed its rows in its last action.

    ``df`` is an adapted DataFrame, one derived from it, or any DataFrame of a session under
    :func:`~eddyline.enable`. Each block covers the last action in which it ran; with ``all`` it
    covers all actions since :func:`~eddyline.adapt` or :func:`~eddyline.enable`, added up. Lookups,
    and calls made at the driver, are always those of all actions. A task that Spark ran twice
    counts twice; one that failed or was cut short by a limit may be missing. Before the first
    action the blocks have no figures. What was left to Spark, and the thresholds of cascades, are
    listed only for the DataFrame that ``adapt`` returned.

    - *Per predicate*: rows in, passed, rejected, NULL, errors held and dropped, seconds.
    - *Per function*: calls made (of a concurrent function those made at the driver, one for each
      distinct tuple of arguments of an action, which all other rows shared), the calls that
      evaluating everything would have made, rows answered from memory, the most argument tuples and
      bytes that a process cached, seconds.
    - *Per block*: rows in and out; seconds in the block, in its predicates and on routing;
      decisions; the orders, with the rows that took each in the course of the run; and changes, of
      a selectivity by 10 points or more, and of a cost by a fifth or more if the order changed with
      it.
    - *Per join block*: how its inputs meet; for each input the rows read, the rows that came to a
      task that joins, and the rows its SteM held, its builds, probes and matches; the largest
      task's rows relative to the median task's; bytes spilled to disk. An order begins with the
      input that the row was read from.

    Avoided calls are relative to plain Spark: it calls functions over one input on each of its
    rows, and functions over several inputs on each row of the joins, before any of these functions
    rejects it. The number of such rows is estimated from the shares that these predicates passed,
    and marked ``estimated``. The first line sums this up: calls made instead of plain Spark's, and
    roughly how much less time they took, at the mean cost of the calls made. It says "at least"
    where rows were dropped natively before they reached a block.

    Times are summed over tasks. A block's time is wall time; the times of predicates and of routing
    leave out waiting for a core, where the system reports it (Linux).

    Raises as ``adapt`` does.
    """
    every = switch(all, "all")
    adapted = adapted_blocks(df)  # first, since it refuses what is no DataFrame of classic Spark
    # Spark derives filters from the keys of joins when it optimizes once more. They drop rows, and
    # may have a function called twice. It may also compute below some joins what stands above an
    # eddy's.
    plan = catalyst.optimized_plan(classic_frame(df))
    in_spark = catalyst.has_join(plan)
    whole = not in_spark and not is_derived(df)
    context = df.sparkSession.sparkContext
    records = registry_of(context).records.value
    blocks = [
        (block, options, recorded(records, record_key(block.identity, options), earlier=every))
        for block, options in adapted
    ]
    left = tuple((predicate.text, predicate.why) for predicate in left_in(df))
    choices = lookup_tables_of(context).choices_in(plan)
    found = routing_report(context, blocks, left, whole=whole, every_action=every, choices=choices)
    return replace(found, cascades=cascades_in(df))


def learned(spark: SparkSession | None = None) -> LearnedReport:
    """Return what is known of predicates, functions and scans from the queries that have run.

    Later blocks over the same functions, with the same code and closure, begin with it instead of
    finding out anew: which of them are cheap and which selective. What their tasks see overrules
    it, and no row depends on it. Queries that may scan a lookup table begin with what its last scan
    has taken. :func:`~eddyline.forget` forgets it, and ``eddyline.enable(learned=path)`` keeps it
    for the next application.

    The result shows itself as tables: for each predicate the rows that it has seen, the share that
    passed and the time a row; for each function the time a call, and the share of the rows that
    came with arguments of before; for each table the seconds of a scan. ``to_dict()`` has the same
    as plain data. ``spark`` is the
    active session by default; all sessions of a context share what is known. Raises
    ``RuntimeError`` where there is no session or it was stopped.
    """
    session = chosen_session(spark)
    store = registry_of(session.sparkContext).learned
    learn_scans(session, lookup_tables_of(session.sparkContext), store)
    return store.report()
