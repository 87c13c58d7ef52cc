"""Tells a module's cost a visit from its cost a tuple."""

from __future__ import annotations

MEMORY = 0.98
"""Weight that a visit keeps after each further one: the last fifty or so count."""


OUTLIER = 4.0
"""A measured cost a visit counts as no more than so many times what is typical so far."""


class TypicalVisit:
    """What a visit by itself costs modules of one kind: the guess for one not measured yet.

    Most of it is the same for all, the eddy's own part, and depends on the machine: a guess of
    15 microseconds where it is 100 would make a hundred cheap predicates look ten times as
    expensive as they are, on the eight tuples of a first look, and in need of visits of a hundred
    tuples: 552 visits to 5,000 rows instead of 415. Never less than the guess, to which modules
    go back that have measured nonsense.
    """

    __slots__ = ("_guess", "_mean", "_measured")

    def __init__(self, guess: float) -> None:
        """``guess`` counts as one measurement, in the clock's unit; a guess of 0 stays."""
        self._guess = self._mean = guess
        self._measured = 1

    @property
    def seconds(self) -> float:
        """What is typical now, in the clock's unit."""
        return max(self._guess, self._mean)

    def learn(self, per_visit: float) -> None:
        """Take in what one module has measured."""
        self._measured += 1
        self._mean += (min(per_visit, OUTLIER * self._mean) - self._mean) / self._measured


class CostModel:
    """Fits ``seconds = per_visit + per_tuple * tuples`` to the visits of one module.

    Without it a vectorized function, which spends a few hundred microseconds on
    the smallest batch, looks a hundred times too expensive on the small batches
    of exploration, and is never tried on a large one. The fit is least squares on
    ``seconds / tuples`` against ``1 / tuples``, which weighs small and large
    visits alike.

    The first visit is left out: it may load a model or open a connection, and what
    that costs is never seen again.

    >>> model = CostModel(TypicalVisit(0.0))
    >>> model.record(1, 1_000_000.0)
    >>> for tuples in (1, 10, 100, 1000):
    ...     model.record(tuples, 30.0 + 2.0 * tuples)
    >>> round(model.per_visit, 6), round(model.per_tuple, 6)
    (30.0, 2.0)
    """

    __slots__ = ("_n", "_typical", "_warm", "_x", "_xx", "_xy", "_y", "per_tuple", "per_visit")

    def __init__(self, typical: TypicalVisit) -> None:
        """``typical`` is the cost a visit until the fit can be made."""
        self._typical = typical
        self._warm = False
        self._n = self._x = self._y = self._xx = self._xy = 0.0
        self.per_visit = typical.seconds
        self.per_tuple: float | None = None

    def record(self, tuples: int, seconds: float) -> None:
        """Learn from one visit."""
        if self._n == 0.0:
            self.per_visit = self._typical.seconds
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
            self._typical.learn(self.per_visit)
        else:
            # Visits of nearly one size say nothing about the intercept. Going back
            # to the guess, slowly, changes the quantum, and that tells again. Were
            # the last value kept, one that is wrong would make itself stay: after a
            # sudden change of cost 0 would come out, hence visits of one tuple each, which
            # cost 1.48 times the best order with 10 % exploration, not 1.07 (bench.ablations).
            typical = self._typical.seconds
            drifting = self.per_visit + (1.0 - MEMORY) * (typical - self.per_visit)
            self.per_visit = min(drifting, self._y / self._x)
        self.per_tuple = max((self._y - self.per_visit * self._x) / self._n, 0.01 * y)

    def fair_share(self, tuples: int, seconds: float, usual: int) -> float:
        """Return what the tuples of a visit would have cost in a visit of ``usual`` tuples.

        A look at 8 tuples must not make a module seem expensive because the visit
        itself cost as much as in a visit of thousands.
        """
        own = max(seconds - self.per_visit, 0.0)
        return min(own + self.per_visit * tuples / max(usual, tuples), seconds)
