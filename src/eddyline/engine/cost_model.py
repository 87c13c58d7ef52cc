"""Tells a module's cost a visit from its cost a tuple."""

from __future__ import annotations

MEMORY = 0.98
"""Weight that a visit keeps after each further one: the last fifty or so count."""


class CostModel:
    """Fits ``seconds = per_visit + per_tuple * tuples`` to the visits of one module.

    Without it a vectorized function, which spends a few hundred microseconds on
    the smallest batch, looks a hundred times too expensive on the small batches
    of exploration, and is never tried on a large one. The fit is least squares on
    ``seconds / tuples`` against ``1 / tuples``, which weighs small and large
    visits alike.

    The first visit is left out: it may load a model or open a connection, and what
    that costs is never seen again.

    >>> model = CostModel(prior_per_visit=0.0)
    >>> model.record(1, 1_000_000.0)
    >>> for tuples in (1, 10, 100, 1000):
    ...     model.record(tuples, 30.0 + 2.0 * tuples)
    >>> round(model.per_visit, 6), round(model.per_tuple, 6)
    (30.0, 2.0)
    """

    __slots__ = ("_n", "_prior", "_warm", "_x", "_xx", "_xy", "_y", "per_tuple", "per_visit")

    def __init__(self, prior_per_visit: float) -> None:
        """Start with a guess of the cost a visit, which counts until the fit can be made."""
        self._prior = prior_per_visit
        self._warm = False
        self._n = self._x = self._y = self._xx = self._xy = 0.0
        self.per_visit = prior_per_visit
        self.per_tuple: float | None = None

    def record(self, tuples: int, seconds: float) -> None:
        """Learn from one visit."""
        if not self._warm:
            self._warm = True
            return
        x = 1.0 / tuples
        y = seconds * x
        self._n = self._n * MEMORY + 1.0
        self._x = self._x * MEMORY + x
        self._y = self._y * MEMORY + y
        self._xx = self._xx * MEMORY + x * x
        self._xy = self._xy * MEMORY + x * y
        spread = self._n * self._xx - self._x * self._x
        if spread > 1e-3 * self._n * self._xx:
            slope = (self._n * self._xy - self._x * self._y) / spread
            self.per_visit = min(max(slope, 0.0), self._y / self._x)
        else:
            # Visits of nearly one size say nothing about the intercept. Going back
            # to the guess, slowly, changes the quantum, and that tells again. Were
            # the last value kept, one that is wrong would make itself stay: after a
            # sudden change of cost 0 came out, hence visits of one tuple each, which cost
            # 1.48 times the best order with 10 % exploration, now 1.07 (bench.ablations).
            drifting = self.per_visit + (1.0 - MEMORY) * (self._prior - self.per_visit)
            self.per_visit = min(drifting, self._y / self._x)
        self.per_tuple = max((self._y - self.per_visit * self._x) / self._n, 0.01 * y)

    def fair_share(self, tuples: int, seconds: float, usual: int) -> float:
        """Return what the tuples of a visit would have cost in a visit of ``usual`` tuples.

        A look at 8 tuples must not make a module seem dear because the visit
        itself cost as much as in a visit of thousands.
        """
        own = max(seconds - self.per_visit, 0.0)
        return min(own + self.per_visit * tuples / max(usual, tuples), seconds)
