"""The data of the benchmark of predicates is as the workloads say."""

from __future__ import annotations

import numpy as np
import pytest

from bench.predicates.workload import Course, Workload, workloads

LARGE = 100_000
"""Rows from which pairs of values may repeat by chance: there are a million pairs."""


@pytest.mark.parametrize(
    "workload", [w for w in workloads(1.0) if w.course is Course.STATIONARY], ids=lambda w: w.name
)
def test_predicates_let_pass_what_they_say_and_arguments_do_not_repeat(workload: Workload) -> None:
    """Where they do, a function that remembers is spared calls that no order would spare."""
    passing = workload.outcomes().mean(axis=1)
    assert passing == pytest.approx(workload.passes, abs=0.01)
    columns = workload.columns()
    for number in range(len(workload.costs)):
        pairs = np.unique(columns["place"] * 1_000 + columns[f"u{number}"])
        if workload.rows < LARGE:
            assert len(pairs) == workload.rows
