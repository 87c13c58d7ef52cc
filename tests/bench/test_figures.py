"""Every figure has its texts, and those about joins can be drawn and say what they claim."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.figures.__main__ import FIGURES
from bench.figures.claims import Claim, Numbers, Repeats, is_true
from bench.figures.figure import TEXTS, Outcome, Setting, drawn
from bench.figures.index_costs import QUICK_PART, SwappingIndexes
from bench.figures.record import record

QUICKLY_DRAWN = (
    "toggling-costs",
    "toggling-selectivities",
    "hash-joins",
    "join-flow",
    "late-relation",
    "late-flow",
    "late-stream",
    "cost-of-adaptive-joins",
    "cost-of-index-joins",
    "selective-index",
    "swapping-indexes",
    "index-join-results",
    "index-join-probes",
    "shared-caches",
    "spanning-tree",
    "hybrid-start",
    "hybrid",
    "preferred",
    "unpreferred",
    "zombies",
    "static-plans-fewer",
    "static-plans-greater",
    "adaptive-plans-fewer",
    "adaptive-plans-greater",
)
CLAIMED = (
    "index-join-results",
    "index-join-probes",
    "spanning-tree",
    "hybrid-start",
    "hybrid",
    "preferred",
    "unpreferred",
    "zombies",
)
"""What is counted, or stands on the virtual clock and is the same in a quick run."""


@functools.cache
def quick(name: str) -> tuple[Outcome, int]:
    """Return what was measured, and how often it was told that it goes on."""
    advanced: list[str] = []
    return FIGURES[name](Setting(quick=True, advance=lambda: advanced.append(name))), len(advanced)


@pytest.mark.slow(40)
@pytest.mark.parametrize("name", QUICKLY_DRAWN)
def test_a_quick_figure_is_drawn(name: str, tmp_path: Path) -> None:
    outcome, advanced = quick(name)
    assert advanced
    figure = drawn(name, outcome, quick=True)
    assert drawn(name, outcome, quick=True) == figure
    assert bool(figure.warning) is ("quick" in TEXTS[name])
    assert figure.size
    figure.write(tmp_path, name)
    picture = ET.fromstring((tmp_path / f"{name}.svg").read_text())  # noqa: S314 - made above
    assert picture.tag.endswith("svg")
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["claims"]
    assert all(claim["says"] and claim["ours"] for claim in written["claims"])
    assert {len(row) for row in figure.rows} == {len(figure.columns)}


@pytest.mark.slow(20)
@pytest.mark.parametrize("name", CLAIMED)
def test_what_is_claimed_of_access_methods_holds(name: str) -> None:
    figure = drawn(name, quick(name)[0])
    assert figure.claims
    assert [claim.says for claim in figure.claims if not claim.holds] == []


def test_an_index_that_becomes_slow_gets_one_tuple_too_many() -> None:
    """The one by which it is found out; a tuple that has probed cannot go elsewhere."""
    measured = quick("swapping-indexes")[0].measured
    case = SwappingIndexes(QUICK_PART)
    benefit, best = measured["benefit"], measured["best"]
    assert isinstance(benefit, float)
    assert isinstance(best, float)
    assert benefit - best <= case.slow + 1e-6


def test_every_figure_has_texts_and_all_texts_have_a_figure() -> None:
    assert TEXTS.keys() - {"bounds"} == FIGURES.keys()


@pytest.mark.parametrize(
    ("condition", "true"),
    [
        ("a < 3", True),
        ("a < 2", False),
        ("1 <= a <= 2 < b", True),
        ("a[0] < a[1] > 1.5", True),
        ("a.most < b <= 4", True),
        ("b < a", False),
    ],
)
def test_a_condition_has_to_be_true_of_all_numbers(condition: str, true: bool) -> None:  # noqa: FBT001 - a value
    assert is_true(condition, {"a": Numbers([1, 2]), "b": 4}) is true


@pytest.mark.parametrize("condition", ["a < missing", "a == 1", "a <", "a 1"])
def test_a_condition_that_makes_no_sense_is_no_answer(condition: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        is_true(condition, {"a": 1.0})


def test_a_claim_holds_if_all_its_conditions_do() -> None:
    def holds(*conditions: str) -> bool:
        return Claim("paper", "says", "ours", conditions).judged({"a": 1.0}).holds

    assert holds("a > 0", "a < 2")
    assert not holds("a > 0", "a > 2")


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1, 2, 3], "holds"),
        ([-1, 2, 3], "holds; holds in 2 of 3"),
        ([-1, -2, 3], "differs; holds in 1 of 3"),
        ([-1, -2, -3], "differs"),
    ],
)
def test_a_claim_holds_if_it_does_with_most_seeds(values: list[int], verdict: str) -> None:
    claim = Claim("paper", "says", "{a}", ["a > 0"])
    repeats = Repeats("seeds", [{"a": value} for value in values])
    judged = claim.judged({"a": values[0]}, repeats)
    assert judged.verdict == verdict
    assert judged.ours == f"{sorted(values)[1]} ({min(values)}-{max(values)})"


def test_a_claim_about_turns_holds_if_it_does_of_their_median() -> None:
    claim = Claim("target", "says", "{a:.1f}", ["a > 0"])
    repeats = Repeats("turns", [{"a": 1.0}, {"a": -1.0}, {"a": -2.0}])
    judged = claim.judged({"a": 0.5}, repeats)
    assert (judged.ours, judged.verdict) == ("0.5 (-2.0-1.0)", "holds; holds in 1 of 3")


def test_several_numbers_spread_each_by_itself() -> None:
    claim = Claim("paper", "says", "{a:.0f} by {b}", ["a[0] > 0"])
    every = [{"a": Numbers([1, 4]), "b": "x"}, {"a": Numbers([3, 4]), "b": "y"}]
    assert claim.judged(every[0], Repeats("seeds", every)).ours == "1 (1-3), 4 by x or y"


def test_another_seed_is_another_run_and_the_same_seed_the_same() -> None:
    def lottery(seed: int) -> object:
        return FIGURES["toggling-costs"](Setting(quick=True, seed=seed)).measured["lottery"]

    assert lottery(1) == lottery(1) != lottery(2)


def test_a_quick_figure_is_not_recorded(tmp_path: Path) -> None:
    figure = drawn("toggling-costs", quick("toggling-costs")[0], quick=True)
    with pytest.raises(ValueError, match="quick"):
        record({"toggling-costs": (figure, 1.0)}, FIGURES, tmp_path)


def test_what_is_recorded_keeps_what_was_of_others(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for name in ("late-flow", "hash-joins"):
        record({name: (drawn(name, quick(name)[0]), 1.4)}, FIGURES, tmp_path)
    recorded = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert list(recorded) == ["hash-joins", "late-flow"]
    assert recorded["late-flow"]["seconds"] == 1


def test_what_differs_of_what_is_recorded_has_a_reason() -> None:
    path = Path(__file__).parents[2] / "docs" / "figures.json"
    recorded = json.loads(path.read_text("utf-8"))
    assert recorded.keys() <= FIGURES.keys()
    for name, figure in recorded.items():
        assert len(figure["claims"]) == len(TEXTS[name]["claims"])
        differing = [claim for claim in figure["claims"] if claim["verdict"] != "holds"]
        assert [claim["says"] for claim in differing if not claim["remark"]] == [], name
