"""What the paid calls of a query will come to: calls, money and hours, before they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eddyline.reports.expected import NONE_AT_ALL, Expected, exactly, total
from eddyline.reports.wording import counted

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What a forecast was measured on.

    ``keys`` distinct arguments were sampled, with the ``rows`` that have them. Of the answers that
    were needed for that, ``calls`` were asked for now, ``spent`` was paid for these, and they are
    ``kept`` where the query will find them or not.
    """

    keys: int = 0
    rows: int = 0
    calls: int = 0
    spent: float = 0.0
    kept: bool = False


@dataclass(frozen=True, slots=True)
class CallForecast:
    """What the query will ask of one function, or lookup table.

    ``calls`` are the distinct arguments that it will be asked for, without those whose answers are
    kept already, which are ``known`` (a share of all that are needed). ``arguments`` are the
    distinct arguments in the ``rows`` below, whatever predicates drop. ``money`` is in ``unit``,
    and ``seconds`` are those that the calls take at the least, by the ``limit`` that counts; both
    are None where nothing is known of them. ``notes`` say what the forecast takes for granted.
    """

    function: str
    calls: Expected
    arguments: Expected
    rows: int
    known: float = 0.0
    money: Expected | None = None
    unit: str = ""
    budget: float | None = None
    seconds: Expected | None = None
    limit: str = ""
    measured: Measured = field(default_factory=Measured)
    notes: tuple[str, ...] = ()

    @property
    def exceeds_budget(self) -> bool:
        """Whether it may cost more than its budget."""
        return self.budget is not None and self.money is not None and self.money.high > self.budget

    def lines(self) -> tuple[str, ...]:
        """Return it as lines of text."""
        first = f"{self.function}: {_calls(self.calls)}"
        if self.money is not None:
            first = f"{first}, {_money(self.money, self.unit)}"
        kept = f"; {_percent(self.known)} of those needed are kept" if self.known else ""
        rows = counted(self.rows, "row")
        lines = [
            first,
            *([] if self.seconds is None else [f"  {_time(self.seconds)} {self.limit}"]),
            f"  of {_about(self.arguments)} distinct arguments in {rows}{kept}",
            f"  measured on {self._measured()}",
        ]
        if self.exceeds_budget:
            lines.append(f"  the budget of {self.budget:g} {self.unit} may not suffice")
        return (*lines, *(f"  {note}" for note in self.notes))

    def _measured(self) -> str:
        measured = self.measured
        text = f"{counted(measured.keys, 'argument')} in {counted(measured.rows, 'row')}"
        if not measured.calls:
            return f"{text}, without a call"
        paid = f" for {measured.spent:.4g} {self.unit}" if self.unit else ""
        kept = "are kept" if measured.kept else "are not kept, so the query pays again"
        return f"{text}, with {counted(measured.calls, 'call')}{paid}, whose answers {kept}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "function": self.function,
            "calls": self.calls.to_dict(),
            "arguments": self.arguments.to_dict(),
            "rows": self.rows,
            "known": self.known,
            "money": None if self.money is None else self.money.to_dict(),
            "unit": self.unit,
            "budget": self.budget,
            "seconds": None if self.seconds is None else self.seconds.to_dict(),
            "measured": {
                "keys": self.measured.keys,
                "rows": self.measured.rows,
                "calls": self.measured.calls,
                "spent": self.measured.spent,
                "kept": self.measured.kept,
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Forecast:
    """What the paid calls of a query will come to, with intervals of 95 %.

    ``functions`` has each function and lookup table that is asked at the driver. ``missing`` says
    of what there is no forecast, and why; then the sums are without it. Printing it gives text.
    """

    functions: tuple[CallForecast, ...]
    missing: tuple[str, ...] = ()

    @property
    def calls(self) -> Expected:
        """Distinct arguments that will be asked for, of all functions."""
        return total(each.calls for each in self.functions)

    @property
    def costs(self) -> Mapping[str, Expected]:
        """Money by its unit."""
        units = dict.fromkeys(each.unit for each in self.functions if each.money is not None)
        return {
            unit: total(e.money for e in self.functions if e.money is not None and e.unit == unit)
            for unit in units
        }

    @property
    def money(self) -> Expected:
        """Money, where it has one unit; nothing where nothing costs money.

        ValueError where there are several units: ``costs`` has each.
        """
        costs = self.costs
        if len(costs) > 1:
            raise ValueError(f"calls are paid in {' and '.join(costs)}: ask for costs")
        return next(iter(costs.values()), NONE_AT_ALL)

    @property
    def seconds(self) -> Expected | None:
        """Seconds that the calls take: of the slowest function, as all are called side by side.

        None where nothing is known of any.
        """
        known = [each.seconds for each in self.functions if each.seconds is not None]
        return max(known, key=lambda each: each.likely, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that ``json.dumps`` takes.

        ``calls``, ``seconds`` and each of ``costs``, by unit, have ``low``, ``likely`` and
        ``high``; ``functions`` have the same for each function.
        """
        seconds = self.seconds
        return {
            "calls": self.calls.to_dict(),
            "costs": {unit: cost.to_dict() for unit, cost in self.costs.items()},
            "seconds": None if seconds is None else seconds.to_dict(),
            "functions": [each.to_dict() for each in self.functions],
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        """Return it as text."""
        lines = [line for each in self.functions for line in each.lines()]
        if len(self.functions) > 1:
            parts = [_calls(self.calls)]
            parts += [_money(cost, unit) for unit, cost in self.costs.items()]
            if self.seconds is not None:
                parts.append(_time(self.seconds))
            lines.append(f"In all: {', '.join(parts)}")
        lines += [f"No forecast: {why}" for why in self.missing]
        return "\n".join(lines) or "Nothing is asked at the driver."

    def __repr__(self) -> str:
        """Return what a prompt shows: the text."""
        return str(self)


def hours(
    requests: Expected,
    rate: float | None,
    width: int,
    seconds: Expected | None,
) -> tuple[Expected | None, str]:
    """Return the seconds that requests take, and the limit by which they do.

    At most ``rate`` of them begin in a second, and ``width`` are under way, each for ``seconds``;
    None where neither says anything.

    >>> hours(exactly(7200), 2.0, 16, None)
    (Expected(low=3600.0, likely=3600.0, high=3600.0), 'at 2 calls a second')
    """
    ways: list[tuple[Expected, str]] = []
    if rate is not None:
        plural = "" if rate == 1 else "s"
        ways.append((requests.times(1 / rate), f"at {rate:g} call{plural} a second"))
    if seconds is not None:
        taken = Expected(
            requests.low * seconds.low / width,
            requests.likely * seconds.likely / width,
            requests.high * seconds.high / width,
        )
        ways.append((taken, f"with {width} calls at a time of {_time(exactly(seconds.likely))}"))
    if not ways:
        return None, ""
    return max(ways, key=lambda way: way[0].likely)


def _calls(calls: Expected) -> str:
    likely = _figure(calls.likely)
    return f"{likely} call{'' if likely == '1' else 's'}{_interval(calls)}"


def _money(money: Expected, unit: str) -> str:
    return f"{_figure(money.likely)} {unit}{_interval(money)}"


def _about(value: Expected) -> str:
    return f"{'' if value.low == value.high else 'about '}{_figure(value.likely)}"


def _interval(value: Expected) -> str:
    low, high = _figure(value.low), _figure(value.high)
    return "" if low == high else f" ({low} to {high})"


def _figure(value: float) -> str:
    """Spell a number with three significant digits, a count of calls in full.

    >>> _figure(12934.2), _figure(3.14159), _figure(0.0123), _figure(0)
    ('12,934', '3.14', '0.0123', '0')
    """
    if value >= 100:  # noqa: PLR2004 - from here on three digits are before the point
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _time(seconds: Expected) -> str:
    """Spell a time in the unit that fits what is likely.

    >>> _time(exactly(5400.0)), _time(exactly(0.05))
    ('1.5 h', '50 ms')
    """
    units = (("h", _HOUR), ("min", _MINUTE), ("s", 1.0), ("ms", 1e-3))
    unit, size = next((each for each in units if seconds.likely >= each[1]), units[-1])
    scaled = seconds.times(1 / size)
    return f"{_figure(scaled.likely)} {unit}{_interval(scaled)}"
