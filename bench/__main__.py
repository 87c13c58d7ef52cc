"""``python -m bench``: one benchmark, by its name; see :mod:`bench.predicates.benchmark`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import bench.access_choice
import bench.adversarial.benchmark
import bench.base_engine
import bench.beginnings
import bench.calls.benchmark
import bench.cascade.benchmark
import bench.cheap.benchmark
import bench.clients
import bench.columns_of_columns
import bench.common_part
import bench.content
import bench.demo
import bench.enabling
import bench.engine_joins.benchmark
import bench.first_use.benchmark
import bench.flights
import bench.forecast.benchmark
import bench.growth.benchmark
import bench.kept.benchmark
import bench.kept.folders
import bench.kept.stores
import bench.large_inputs
import bench.learned
import bench.looking
import bench.lookups.benchmark
import bench.lookups.functions
import bench.others.benchmark
import bench.predicates.benchmark
import bench.quota.benchmark
import bench.realistic.benchmark
import bench.remembering.benchmark
import bench.ripple
import bench.shared_learning
import bench.sharing.grouped_filters
import bench.short.benchmark
import bench.soak.benchmark
import bench.standing.aggregates
import bench.standing.changes
import bench.standing.delayed
import bench.standing.executors
import bench.standing.kills
import bench.standing.latency
import bench.standing.old_data
import bench.standing.patterns
import bench.standing.real_time
import bench.standing.rules
import bench.standing.sequences
import bench.standing.sinks
import bench.standing.windows
import bench.tiny.benchmark
import bench.tpch.benchmark
import bench.transpiled
import bench.waiting_predicates
import bench.watching
import bench.written_orders

OTHERS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "access-choice": bench.access_choice.main,
    "tpch": bench.tpch.benchmark.main,
    "adversarial": bench.adversarial.benchmark.main,
    "remembering": bench.remembering.benchmark.main,
    "ripple": bench.ripple.main,
    "realistic": bench.realistic.benchmark.main,
    "flights": bench.flights.main,
    "forecast": bench.forecast.benchmark.main,
    "orders": bench.written_orders.main,
    "base-engine": bench.base_engine.main,
    "beginnings": bench.beginnings.main,
    "first": bench.first_use.benchmark.main,
    "calls": bench.calls.benchmark.main,
    "cascade": bench.cascade.benchmark.main,
    "cheap": bench.cheap.benchmark.main,
    "clients": bench.clients.main,
    "columns": bench.columns_of_columns.main,
    "common-part": bench.common_part.main,
    "content": bench.content.main,
    "demo": bench.demo.main,
    "enabling": bench.enabling.main,
    "tiny": bench.tiny.benchmark.main,
    "short": bench.short.benchmark.main,
    "others": bench.others.benchmark.main,
    "ledger": bench.kept.benchmark.main,
    "stores": bench.kept.stores.main,
    "folders": bench.kept.folders.main,
    "quota": bench.quota.benchmark.main,
    "large-inputs": bench.large_inputs.main,
    "learned": bench.learned.main,
    "transpiled": bench.transpiled.main,
    "looking": bench.looking.main,
    "engine": bench.engine_joins.benchmark.main,
    "growth": bench.growth.benchmark.main,
    "waiting": bench.waiting_predicates.main,
    "watching": bench.watching.main,
    "lookups": bench.lookups.benchmark.main,
    "functions": bench.lookups.functions.main,
    "shared-learning": bench.shared_learning.main,
    "sharing": bench.sharing.grouped_filters.main,
    "rules": bench.standing.rules.main,
    "sinks": bench.standing.sinks.main,
    "aggregates": bench.standing.aggregates.main,
    "changes": bench.standing.changes.main,
    "patterns": bench.standing.patterns.main,
    "real-time": bench.standing.real_time.main,
    "sequences": bench.standing.sequences.main,
    "windows": bench.standing.windows.main,
    "executors": bench.standing.executors.main,
    "kills": bench.standing.kills.main,
    "latency": bench.standing.latency.main,
    "delayed": bench.standing.delayed.main,
    "backfill": bench.standing.old_data.main,
    "soak": bench.soak.benchmark.main,
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first word names, else that of predicates."""
    if arguments and arguments[0] in OTHERS:
        return OTHERS[arguments[0]](arguments[1:])
    return bench.predicates.benchmark.main(arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
