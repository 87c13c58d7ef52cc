"""``python -m bench.ablations``: what each part of the adaptive policy buys.

The default policy against itself with one part taken out or replaced, over
predicates of known cost and selectivity on a virtual clock: cost of the run over
the cost of the best order of every stretch of rows (1 is clairvoyance).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from bench import report
from bench.simulation.known_costs import cases
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.adaptive_knowledge import Estimate, Knowledge
from eddyline.engine.policies.adaptive_window import AdaptiveWindow, DetectedShift
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.signature import Signature


class NeverForget(AdaptiveWindow):
    """Keeps everything."""

    __slots__ = ()

    def _look(self, points: int) -> DetectedShift | None:  # noqa: ARG002 - never looks
        return None


class LastVisits(AdaptiveWindow):
    """Keeps the last 200 visits, whatever happened before them."""

    __slots__ = ()

    def _look(self, points: int) -> DetectedShift | None:  # noqa: ARG002 - never looks
        while self.whole.visits > 200 and len(self._buckets) > 1:  # noqa: PLR2004 - the window
            del self._buckets[0]
            self._add_up()
        return None


def with_window(window: type[AdaptiveWindow]) -> Callable[[], Policy]:
    """Return the adaptive policy with another way of forgetting."""

    class Remembering(Knowledge):
        new_window = window

    class Variant(AdaptivePolicy):
        new_knowledge = Remembering

    return Variant


class Pooled(Knowledge):
    """Judges each module by its record over all signatures."""

    def estimate(self, signature: Signature, module: int) -> Estimate:
        """Return the pooled estimate."""
        shared = self.shared(signature, module)
        return Estimate(shared.cost, shared.selectivity, shared.lowest_cost, 0.0)


class Unconditional(AdaptivePolicy):
    """Knows of no signatures."""

    new_knowledge = Pooled


VARIANTS: Mapping[str, Callable[[], Policy]] = {
    "adaptive": AdaptivePolicy,
    "no exploration": lambda: AdaptivePolicy(exploration=0.0),
    "exploration 10 %": lambda: AdaptivePolicy(exploration=0.10),
    "statistics not conditional": Unconditional,
    "never forgets": with_window(NeverForget),
    "window of 200 visits": with_window(LastVisits),
    **{
        f"policy {name}": functools.partial(make_policy, name)
        for name in PolicyName
        if name not in (PolicyName.ADAPTIVE, PolicyName.BENEFIT)  # the same for predicates
    },
}


def main() -> int:
    """Run every variant on every case and print the table."""
    parser = report.argument_parser("bench.ablations", __doc__, turns=None)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    chosen = cases(options.rows)
    bounds = {case.name: case.clairvoyant() for case in chosen}
    results = {
        name: {case.name: case.run(policy) / bounds[case.name] for case in chosen}
        for name, policy in VARIANTS.items()
    }
    report.write(options, "ablations", results)
    rows = (
        (name, *(f"{ratios[case.name]:.3f}" for case in chosen)) for name, ratios in results.items()
    )
    columns = ("variant", *(case.name for case in chosen))
    report.show(report.table("cost over the clairvoyant's", columns, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
