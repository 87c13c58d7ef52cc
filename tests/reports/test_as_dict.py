"""The report as plain data: JSON takes it, and every key is documented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import Change
from eddyline.reports.routing_report import RoutingReport
from tests.reports.samples import SAMPLES, TEXTS, away, drifting, joined, not_run


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    if isinstance(value, list):
        for inner in value:
            yield from keys(inner)


@pytest.mark.parametrize("name", SAMPLES)
def test_json_carries_it_unchanged(name: str) -> None:
    data = SAMPLES[name]().to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_every_key_is_documented() -> None:
    documented = RoutingReport.to_dict.__doc__ or ""
    written = {*keys(drifting().to_dict()), *keys(joined().to_dict()), *keys(away().to_dict())}
    assert [key for key in sorted(written) if f"``{key}``" not in documented] == []


def test_figures_of_a_run() -> None:
    data: dict[str, Any] = drifting().to_dict()
    (block,) = data["blocks"]
    run = block["run"]
    assert block["predicates"] == list(TEXTS)
    assert run["calls"] + run["calls_avoided"] == run["calls_possible"]
    assert run["orders"][0]["order"] == [1, 0, 2]
    assert sum(order["rows"] for order in run["orders"]) == run["rows_in"]
    assert sum(piece["rows"] for piece in run["slices"]) == run["rows_in"]
    assert run["predicates"][2]["nested"][1]["text"] == "trial_score(customer_id) >= 3"
    assert run["predicates"][0]["selectivity"] == pytest.approx(0.08, abs=0.001)
    assert run["changes"][0]["quantity"] == "selectivity"
    assert data["left"][0]["why"] == "only filters run in an eddy"


def test_no_action_is_null() -> None:
    assert not_run().to_dict()["blocks"][0]["run"] is None


def test_infinity_becomes_null() -> None:
    record = drifting().blocks[0].record
    assert record is not None
    change = Change(0.0, 0, ChangedQuantity.COST, float("inf"), 2.0)
    block = BlockReport("t", "static", None, TEXTS, replace(record, changes=(change,)))
    data = RoutingReport((block,)).to_dict()
    assert data["blocks"][0]["run"]["changes"][0]["old"] is None
    json.dumps(data, allow_nan=False)
