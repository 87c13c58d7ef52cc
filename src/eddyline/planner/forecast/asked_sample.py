"""Paid calls that a forecast makes: as few as it needs, and never more than it may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.asking.function_method import FunctionMethod
from eddyline.asking.lookup_server import LookupServer
from eddyline.asking.price import Books, Spending
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import ERROR, PRICE, STOP, VALUE
from eddyline.errors import CostError
from eddyline.keeping.key_bytes import key_of
from eddyline.planner.forecast.surveys import Answers, SampledArguments


@dataclass
class AskedSample:
    """What is asked for one forecast: up to ``most`` calls of each function.

    ``job`` is what the server knows it as: its calls share the limits, the budget and the ledger
    that a query's have.
    """

    server: LookupServer
    books: Books
    job: str
    most: int
    answers: dict[str, dict[bytes, tuple[pa.Array, str | None]]] = field(default_factory=dict)
    prices: dict[str, list[float]] = field(default_factory=dict)
    """What each answer has cost, of methods that tell it with the answer."""
    _new: dict[str, set[bytes]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    """Why no more is asked of a method."""
    _begun: dict[str, tuple[float, int]] = field(default_factory=dict)
    """What the very first call of a method took, which may load a model or open a ledger."""

    def known(self) -> Answers:
        """Return all answers so far."""
        return self.answers

    def spending(self, method: FunctionMethod) -> Spending:
        """Return what the calls of a function have come to."""
        total = self.books.total(self.job)
        return total.get(method.number, Spending(method.name, method.price.unit))

    def seconds_a_call(self, name: str, method: FunctionMethod) -> float | None:
        """Return the seconds of a call, but for the first where there are others; None of none."""
        spending = self.spending(method)
        seconds, calls = self._begun.get(name, (0.0, 0))
        if spending.calls > calls:
            return (spending.seconds - seconds) / (spending.calls - calls)
        return spending.seconds / spending.calls if spending.calls else None

    def left(self, name: str, method: FunctionMethod) -> int:
        """Return how many more calls may be made of a function."""
        left = self.most - len(self._new.get(name, ()))
        budget = method.price.budget
        if budget is None:
            return max(0, left)
        spent = self.spending(method)
        each = spent.spent / spent.calls if spent.calls else 0.0
        return max(0, min(left, int((budget - spent.spent) / each))) if each else max(0, left)

    def costs_a_call(
        self, name: str, method: FunctionMethod, values: Sequence[tuple[object, ...]]
    ) -> list[bool]:
        """Return for which arguments a call would have to be made now."""
        answers = self.answers.get(name, {})
        kept = [False] * len(values) if method.kept is None else method.kept.known(values)
        return [
            not there and key_of(given) not in answers
            for given, there in zip(values, kept, strict=True)
        ]

    def failures(self, name: str) -> str:
        """Say how many answers of a method are failures, if any are."""
        answers = list(self.answers.get(name, {}).values())
        failed = sum(error is not None for _, error in answers)
        return f"{failed:,} of {len(answers):,} sampled calls failed" if failed else ""

    def made(self, name: str) -> int:
        """Return how many arguments were asked for that nobody had asked for before."""
        return len(self._new.get(name, ()))

    def kept_before(
        self, name: str, method: FunctionMethod, values: Sequence[tuple[object, ...]]
    ) -> list[bool]:
        """Return for which arguments there was an answer before this forecast asked."""
        if method.kept is None or not values:
            return [False] * len(values)
        new = self._new.get(name, set())
        kept = method.kept.known(values)
        return [
            there and key_of(given) not in new for given, there in zip(values, kept, strict=True)
        ]

    def ask(
        self, name: str, method: FunctionMethod, sample: SampledArguments, places: Sequence[int]
    ) -> bool:
        """Ask for some arguments of a sample, under the name of the method; whether all were.

        Those that were asked before are not asked again. As soon as a call is refused, as by the
        budget, none is made any more.
        """
        answers = self.answers.setdefault(name, {})
        values = sample.values(places)
        wanted = {key_of(given): given for given in values}
        wanted = {key: given for key, given in wanted.items() if key not in answers}
        paid = self.costs_a_call(name, method, list(wanted.values()))
        if sum(paid) > self.left(name, method):
            raise AssertionError("more calls than may be made")
        new = self._new.setdefault(name, set())
        new.update(key for key, pays in zip(wanted, paid, strict=True) if pays)
        found: list[Found | BaseException] = []
        left = list(wanted.values())
        if left and name not in self._begun:
            found += self.server.ask(self.job, name, [left.pop(0)])
            spending = self.spending(method)
            self._begun[name] = spending.seconds, spending.calls
        if left:
            found += self.server.ask(self.job, name, left)
        for key, answer in zip(wanted, found, strict=True):
            if isinstance(answer, BaseException):
                self.ended[name] = str(answer)
                continue
            rows = answer.rows
            if rows.column(STOP)[0].is_valid:
                self.ended[name] = str(rows.column(ERROR)[0].as_py())
                continue
            answers[key] = rows.column(VALUE), rows.column(ERROR)[0].as_py()
            if method.price.actual is not None and key in new:
                self.prices.setdefault(name, []).append(rows.column(PRICE)[0].as_py())
        return name not in self.ended


def amounts(method: FunctionMethod, values: Sequence[tuple[object, ...]]) -> list[float]:
    """Return what the values for some arguments cost; CostError where that is not said."""
    price = method.price
    if not callable(price.cost):
        return [price.of(())] * len(values)
    costs = []
    for given in values:
        try:
            read = tuple(
                value if reader is None else reader(value)
                for reader, value in zip(method.readers, given, strict=True)
            )
        except Exception as error:
            raise CostError(f"arguments cannot be read: {error}") from error
        costs.append(price.of(read))
    return costs
