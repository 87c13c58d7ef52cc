"""Avnur and Hellerstein (2000), Figure 13: which way S tuples go while R is late, and after."""

from __future__ import annotations

from itertools import accumulate

from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.late_relation import (
    BINARY_LOTTERY,
    EDDIES,
    STEMS_ADAPTIVE,
    STEMS_LOTTERY,
    runs,
)
from bench.known_joins import JoinRun, R, T
from eddyline.reports.axes import Axis
from eddyline.reports.svg import Mark, Series, line_chart

MOST = 0.5
"""More than so many of the tuples are most of them."""

NEARLY_ALL = 0.95


def better_so_far(run: JoinRun, times: list[float]) -> list[float]:
    """Return the share of S tuples that met T before R, of those sent until each time."""
    passages = run.passages
    better = list(accumulate(p.tuples * (p.first == T) for p in passages))
    sent = list(accumulate(p.tuples for p in passages))
    shares, place = [], -1
    for time in times:
        while place + 1 < len(passages) and passages[place + 1].time <= time:
            place += 1
        shares.append(better[place] / sent[place] if place >= 0 else float("nan"))
    return shares


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    result = runs(quick, advance)
    late = {name: result.late[name] for name in EDDIES}
    delay = result.delay
    to_r = {
        name: (run.first_share(R, until=delay), run.first_share(R, since=delay))
        for name, run in late.items()
    }
    curves = {name: better_so_far(run, result.times()) for name, run in late.items()}
    over_all = {name: run.first_share(T) for name, run in late.items()}
    title = f"S tuples that met T before R, R comes after {delay:g} seconds"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Figure 13)",
        svg=line_chart(
            [
                Series(
                    name,
                    [
                        (time, 100 * share)
                        for time, share in zip(result.times(), curves[name], strict=True)
                        if time <= run.seconds
                    ],
                )
                for name, run in late.items()
            ],
            title,
            "virtual seconds",
            "S tuples so far that met T first, the better way",
            x_axis=Axis(low=0.0),
            y_axis=Axis(low=0, high=100, unit=" %"),
            marks=[Mark(delay, "R", "R comes")],
        ),
        columns=("% that met R first", "while late", "then", "in all", "pairs"),
        rows=tuple(
            (
                name,
                f"{100 * to_r[name][0]:.1f}",
                f"{100 * to_r[name][1]:.1f}",
                f"{100 * (1 - over_all[name]):.1f}",
                f"{run.pairs:,}",
            )
            for name, run in late.items()
        ),
        claims=(
            Claim(
                "paper",
                "while R is late an eddy over binary joins (windowed lottery) favours RS, since "
                "nothing comes back from there",
                f"{to_r[BINARY_LOTTERY][0]:.0%} of the S tuples meet R first",
                to_r[BINARY_LOTTERY][0] > MOST,
            ),
            Claim(
                "paper",
                "when R comes it quickly throttles RS and lets ST process most tuples first",
                f"{to_r[BINARY_LOTTERY][1]:.0%} meet R first from then on",
                to_r[BINARY_LOTTERY][1] < MOST,
            ),
            Claim(
                "ours",
                "over SteMs the late R does not spoil the order: nearly all S tuples meet T first",
                f"{over_all[STEMS_LOTTERY]:.1%} and {over_all[STEMS_ADAPTIVE]:.1%} of those that "
                "meet one of both before they are built or after",
                min(over_all[STEMS_LOTTERY], over_all[STEMS_ADAPTIVE]) >= NEARLY_ALL,
                "Rows that are built before T is complete meet neither; R finds them when it "
                "comes. The pairs count them.",
            ),
            Claim(
                "ours",
                "so fewer pairs, RS and ST, are made on the way to the same results than by "
                "the eddy over binary joins",
                f"{late[STEMS_LOTTERY].pairs:,} and {late[STEMS_ADAPTIVE].pairs:,} against "
                f"{late[BINARY_LOTTERY].pairs:,}",
                max(late[STEMS_LOTTERY].pairs, late[STEMS_ADAPTIVE].pairs)
                < late[BINARY_LOTTERY].pairs,
            ),
        ),
        data={
            "delay": delay,
            "times": result.times(),
            "met_t_first_so_far": {
                name: [None if share != share else share for share in shares]  # noqa: PLR0124 - NaN
                for name, shares in curves.items()
            },
            "met_r_first_while_late_and_then": to_r,
            "pairs": {name: run.pairs for name, run in late.items()},
        },
    )


EXPERIMENT = Experiment(lambda quick: 1, draw)  # noqa: ARG005 - one set of runs
