"""What the calls of a function cost in money, and how much a job may spend on them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from eddyline.asking.lookup_source import described_error
from eddyline.asking.quota_rules import OfAnswer
from eddyline.asking.wire import job_is_of
from eddyline.checked_values import text
from eddyline.errors import CostError

if TYPE_CHECKING:
    from eddyline.asking.patience import Wait

ROUNDING: Final = 1e-9
"""Part of a budget that does not count: 500 times 0.002 is a little more than 1 in floats."""

REMEMBERED_JOBS: Final = 256
"""Jobs of which the books are kept, the latest ones."""

Cost: TypeAlias = "float | Callable[..., float]"
"""What a value costs: a number, or a function of the arguments."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one value of a function costs, in ``unit``, and what a job may spend at the most.

    ``cost`` is a number or a function of the arguments, None where nothing is said; ``actual``
    tells it by the arguments and the answer, afterwards. ValueError for what no price can be.
    """

    cost: Cost | None = None
    unit: str = ""
    budget: float | None = None
    actual: OfAnswer | None = None

    def __post_init__(self) -> None:
        """Check the numbers; TypeError, ValueError."""
        text(self.unit, "unit", "USD")
        if self.actual is not None and not callable(self.actual):
            raise TypeError(f"price is a function of arguments and answer, not {self.actual!r}")
        if not self.known:
            if self.budget is not None or self.unit:
                raise ValueError("a budget or a unit needs a cost, which says what a call costs")
            return
        if self.cost is not None and not callable(self.cost) and not _is_amount(self.cost):
            raise ValueError(f"cost is a number from 0 on, or a function, not {self.cost!r}")
        if not self.unit:
            raise ValueError('a cost has a unit, as unit="USD"')
        if self.budget is not None and not _is_amount(self.budget):
            raise ValueError(f"budget is a number from 0 on, not {self.budget!r}")

    @property
    def known(self) -> bool:
        """Whether anything is said of what values cost."""
        return self.cost is not None or self.actual is not None

    def __str__(self) -> str:
        """Return the price as people read it.

        >>> str(Price(0.002, "USD", 5)), str(Price(len, "tokens")), str(Price())
        ('0.002 USD a call, up to 5 USD a job', 'some tokens a call', '')
        """
        if not self.known:
            return ""
        constant = self.cost is not None and not callable(self.cost) and self.actual is None
        cost = f"{self.cost:g}" if constant else "some"
        most = "" if self.budget is None else f", up to {self.budget:g} {self.unit} a job"
        return f"{cost} {self.unit} a call{most}"

    def of(self, arguments: tuple[object, ...]) -> float:
        """Return what the value for some arguments costs; CostError where that is not said."""
        if self.cost is None:
            return 0.0
        if not callable(self.cost):
            return self.cost
        try:
            amount = self.cost(*arguments)
        except BaseException as error:  # noqa: BLE001 - a SystemExit would end the event loop
            raise CostError(f"cost raised {described_error(error)}") from None
        if not _is_amount(amount):
            raise CostError(f"cost is a number from 0 on, not {amount!r}")
        return float(amount)


FREE: Final = Price()
"""The price of what costs nothing that anybody has told of."""


@dataclass(slots=True)
class Spending:
    """What a job has done so far with one function.

    ``values`` are distinct arguments that it was asked for, ``calls`` how often the function
    was called for them, tries again included, and ``failures`` the values that it did not get.
    ``kept`` are further arguments whose values a ledger had, which had cost as much as was
    ``saved``. ``seconds`` were spent in the function, and not on waiting for limits. ``refusals``
    are calls that were refused for quota, which are none of the calls, and ``waited`` the seconds
    in which none was let through for that; answers took so many ``tokens``.
    """

    name: str
    unit: str = ""
    values: int = 0
    calls: int = 0
    failures: int = 0
    seconds: float = 0.0
    spent: float = 0.0
    kept: int = 0
    saved: float = 0.0
    refusals: int = 0
    waited: float = 0.0
    waits: tuple[Wait, ...] = ()
    tokens: float = 0.0

    def __iadd__(self, other: Spending) -> Self:
        """Add what another job has done."""
        self.values += other.values
        self.calls += other.calls
        self.failures += other.failures
        self.seconds += other.seconds
        self.spent += other.spent
        self.kept += other.kept
        self.saved += other.saved
        self.refusals += other.refusals
        self.waited += other.waited
        self.waits += other.waits
        self.tokens += other.tokens
        return self


class Books:
    """What each job has done with each function; for one thread, read by any."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, dict[int, Spending]] = OrderedDict()
        self.calls = 0
        """Calls of all jobs, those that are forgotten included."""
        self.refusals = 0
        """Likewise calls that services refused for quota."""
        self.refused = 0
        """Likewise values that were not called for, as a budget did not suffice."""

    def open(self, job: str, number: int, name: str, unit: str) -> Spending:
        """Return where the calls of function ``number`` are added for a job."""
        of_job = self._jobs.setdefault(job, {})
        self._jobs.move_to_end(job)
        while len(self._jobs) > REMEMBERED_JOBS:
            self._jobs.popitem(last=False)
        return of_job.setdefault(number, Spending(name, unit))

    def forget(self) -> None:
        """Forget what was done; jobs that spend now still count against their budgets."""
        self._jobs.clear()

    def total(self, prefix: str, job: str | None = None) -> dict[int, Spending]:
        """Return what a job has done, or, where this ends with a slash, all that begin so.

        By function.

        Only what one of them has done, where its name is given and it has done something.
        """
        totals: dict[int, Spending] = {}
        for name, functions in list(self._jobs.items()):
            if name == job or (job not in self._jobs and job_is_of(name, prefix)):
                for number, spending in list(functions.items()):
                    total = totals.setdefault(number, Spending(spending.name, spending.unit))
                    total += spending
        return totals


def _is_amount(value: object) -> bool:
    if not hasattr(value, "__float__") or isinstance(value, bool):
        return False
    try:
        amount = float(value)
    except (OverflowError, ValueError, TypeError):  # as 10**400
        return False
    return math.isfinite(amount) and amount >= 0
