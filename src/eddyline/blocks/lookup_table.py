"""Lookup tables as plain data: what is known of them where plans are rewritten, and in tasks."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.asking.price import FREE, Price
from eddyline.asking.scan_choice import in_seconds


@dataclass(frozen=True, slots=True)
class PlannedLookup:
    """A way to the rows of a table: by the values of its ``bind`` columns.

    ``name`` is what the server of lookups calls it, ``width`` how many calls it makes at a time,
    each for up to ``keys_per_call`` keys. A call has a ``price``.
    """

    name: str
    bind: tuple[int, ...]
    width: int
    keys_per_call: int = 1
    price: Price = FREE


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table whose rows are looked up.

    ``types`` are Spark's, as JSON; ``key`` tells rows apart. It may have a ``scan`` as well, which
    takes ``scan_seconds``, None where that was not said, and has a ``scan_price``; ``chosen`` are
    its ways where they are chosen instead of the scan: a key without an answer leaves the table to
    that.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[int, ...]
    methods: tuple[PlannedLookup, ...]
    scan: bool = False
    scan_seconds: float | None = None
    chosen: tuple[PlannedLookup, ...] = ()
    scan_price: Price = FREE


@dataclass(frozen=True, slots=True)
class BlockLookup:
    """A lookup of a join block: whom a task asks, and which columns of the answer it takes.

    Those at the positions ``asked`` hold what was asked for instead, in the order of the bind
    columns; without them rows count that have their key as it was asked for, and no others. A call
    takes up to ``keys_per_call`` keys.
    """

    method: str
    columns: tuple[int, ...]
    width: int
    asked: tuple[int, ...] = ()
    keys_per_call: int = 1


@dataclass(frozen=True, slots=True)
class ChosenWay:
    """A way to a table by columns of these names; ``method`` is what the server calls it.

    A call takes up to ``keys_per_call`` keys, and costs ``money``, as the seconds that is worth.
    """

    bind: tuple[str, ...]
    method: str
    keys_per_call: int
    money: float = 0.0


@dataclass(frozen=True, slots=True)
class AccessChoice:
    """A table whose keys are asked for until a scan of it is expected to be sooner.

    Of several ``ways`` that is done by the one that takes least time. A scan takes
    ``scan_seconds``, and ``known`` says where from; its price is worth ``scan_money`` seconds.
    ``run`` tells the jobs of one rewriting from those of others, and ``scan`` this scan from those
    of other tables, in all applications; it is empty where nobody needs to learn what the scan
    takes.
    """

    run: int
    table: str
    ways: tuple[ChosenWay, ...]
    scan_seconds: float
    known: str
    scan: str = ""
    scan_money: float = 0.0

    def __str__(self) -> str:
        """Return what happens, for people.

        >>> ways = ChosenWay(("zip",), "zips(zip)/0", 1), ChosenWay(("city",), "zips(city)/1", 1)
        >>> str(AccessChoice(1, "zips", ways, 60.0, "as declared"))[:49]
        'zips is looked up by zip, or by city if that is s'
        """
        price = f", and money worth {in_seconds(self.scan_money)}" if self.scan_money else ""
        scan = f"a scan ({in_seconds(self.scan_seconds)}, {self.known}{price})"
        weighed = bool(self.scan_money or any(way.money for way in self.ways))
        sooner, take = ("costs less", "cost") if weighed else ("is sooner", "take")
        first, *others = map(_way, self.ways)
        also = "".join(f", or by {way} if that {sooner}" for way in others)
        return (
            f"{self.table} is looked up by {first}{also}, unless the keys of the query {take} "
            f"{'more' if weighed else 'longer'} than {scan}: then it is scanned"
        )


def _way(way: ChosenWay) -> str:
    price = f" (a call costs money worth {in_seconds(way.money)})" if way.money else ""
    return " and ".join(way.bind) + price
