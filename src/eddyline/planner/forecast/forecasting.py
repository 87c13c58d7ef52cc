"""The price before the bill: what a query will ask at the driver, by a sample of its rows.

1. Spark counts the rows below each paid function, and its distinct arguments.
2. A sample of the arguments, by their hash, comes with all its rows; free predicates say which of
   these may need a call, and the ledger which of these are answered already. That costs nothing, so
   the sample is as large as some seconds allow.
3. Only what depends on answers of a paid function is found out by calls of that: of a part of the
   sample, as large as the calls that may be made.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from pyspark.sql import SparkSession

from eddyline.asking.function_method import FunctionMethod
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.catalyst import Plan
from eddyline.errors import CostError
from eddyline.expressions import calls_in, render
from eddyline.expressions.terms import expression_of
from eddyline.planner.declare.concurrent_functions import method_called
from eddyline.planner.declare.lookup_tables import LookupTables
from eddyline.planner.forecast.asked_sample import AskedSample, amounts
from eddyline.planner.forecast.growing_sample import as_large_as_pays
from eddyline.planner.forecast.lookup_forecast import lookups_in
from eddyline.planner.forecast.needed_calls import (
    DecidedPlaces,
    FreeKnowledge,
    FunctionFindings,
    NeededCalls,
)
from eddyline.planner.forecast.paid_blocks import (
    Made,
    PaidBlock,
    UnreadBlock,
    names_in,
    paid_blocks,
)
from eddyline.planner.forecast.paid_calls import (
    conjunction,
    is_paid,
    order_of_terms,
    paid_calls,
    rivals,
    terms_of_block,
)
from eddyline.planner.forecast.surveys import (
    FAILURES,
    PaidUse,
    SampledArguments,
    SampleSlice,
    Surveys,
    first_line,
    unforeseen,
)
from eddyline.planner.rewrite.block_walk import TableOf
from eddyline.reports.expected import NONE_AT_ALL, Expected, exactly, mean, product, share
from eddyline.reports.forecast import CallForecast, Forecast, Measured, hours

PROBES: Final = 8
"""Calls by which the seconds of a call are measured, where nothing else tells them."""

OTHERWISE: Final = 0.1
"""Part of the rows that are taken to pass rival paid terms in another order than the best one.

An eddy tries the others, and goes on with them as soon as they have become cheaper: an argument
that was answered costs nothing any more. Where two functions had the same arguments it was 0.07;
where all 3,000 arguments of one were soon answered, 0.8 and more.
"""

_AT_LEAST: Final = 20
"""Arguments that are looked at where calls decide, if there are as many calls."""

_SALTS: Final = 1 << 31


@dataclass
class Forecasting:
    """One forecast on its way."""

    surveys: Surveys
    asked: AskedSample
    _methods: dict[str, FunctionMethod] = field(default_factory=dict)
    _free: dict[object, FreeKnowledge] = field(default_factory=dict)

    def of(self, blocks: Iterable[PaidBlock | UnreadBlock]) -> Forecast:
        """Return the forecast of some blocks."""
        uses: dict[str, list[PaidUse]] = {}
        missing: list[str] = []
        for block in reversed(list(blocks)):
            if isinstance(block, UnreadBlock):
                missing.append(f"{' and '.join(block.names)}: {block.why}")
                continue
            try:
                of_block = self._uses_in(block)
            except FAILURES as error:
                missing.append(f"{' and '.join(names_in(block.block))}: {first_line(error)}")
                continue
            for use in of_block:
                uses.setdefault(use.method, []).append(use)
        found: list[FunctionFindings] = []
        for of_method in uses.values():
            why = next(filter(None, map(unforeseen, of_method)), "")
            method = self._method(of_method[0])
            if why:
                missing.append(f"{method.name}: {why}")
                continue
            try:
                found.append(self._found(method, of_method))
            except FAILURES as error:
                missing.append(f"{method.name}: {first_line(error)}")
        return Forecast(tuple(map(self._told, found)), tuple(dict.fromkeys(missing)))

    def _method(self, use: PaidUse) -> FunctionMethod:
        if use.method not in self._methods:
            function = use.block.block.functions[use.paid.call.function]
            self._methods[use.method] = method_called(function)
        return self._methods[use.method]

    def _uses_in(self, block: PaidBlock) -> list[PaidUse]:
        """Return the paid calls of a block, in the order in which its terms will be asked."""
        order = tuple(order_of_terms(block.block, self._ranks(block)))
        made = paid_calls(block.block, order, block.first)
        return [PaidUse(block, paid, order) for paid in made]

    def _ranks(self, block: PaidBlock) -> dict[int, float]:
        """Return what rival terms drop for the seconds that they take, as far as a part tells."""
        ranks: dict[int, float] = {}
        for number in rivals(block.block):
            order = tuple(order_of_terms(block.block, {number: math.inf}))
            made = {paid.call: paid for paid in paid_calls(block.block, order)}
            terms = list(map(expression_of, terms_of_block(block.block)))
            before = [terms[n] for n in order[: order.index(number)]]
            calls = [c for c in calls_in(terms[number]) if is_paid(block.block, c)]
            asked = conjunction([*before, terms[number]])
            needed = tuple(c for c in calls_in(asked) if is_paid(block.block, c))
            passing = replace(made[calls[0]], condition=asked, before=needed)
            use = PaidUse(block, passing, order)
            if any(map(unforeseen, use.earlier)):
                continue
            decided = self._decided([use], self._sampled([use]), part=0.5)
            if decided.looked_at:
                method = self._method(use)
                each = self.asked.seconds_a_call(use.method, method) or 0.0
                seconds = each / method.limits.max_in_flight
                dropped = 1 - len(decided.needed) / len(decided.looked_at)
                ranks[number] = dropped / max(seconds, 1e-6)
        return ranks

    def _found(self, method: FunctionMethod, uses: Sequence[PaidUse]) -> FunctionFindings:
        name = uses[0].method
        free = self._sampled(uses)
        notes = [
            f"as if no row were dropped by {each}" for use in uses for each in use.block.passed
        ]
        needed = self._needed(method, uses, free)
        calls = needed.calls
        if len(uses) == 1 and (orders := self._other_orders(uses[0])):
            others = [self._needed(method, [use], free).calls for use in orders]
            every = [calls, *others]
            other = sum(each.likely for each in others) / len(others)
            calls = Expected(
                min(each.low for each in every),
                (1 - OTHERWISE) * calls.likely + OTHERWISE * other,
                max(each.high for each in every),
            )
            notes.append("several paid functions drop rows: their order is chosen while they run")
        if needed.why_not:
            notes.append(needed.why_not)
        open_, known = needed.places, needed.known
        self._probe(name, method, free.sample, open_)
        if failures := self.asked.failures(name):
            notes.append(failures)
        return FunctionFindings(
            uses,
            method,
            free,
            calls,
            known,
            self._money(name, method, free.sample, open_, calls, notes),
            notes,
        )

    def _needed(
        self, method: FunctionMethod, uses: Sequence[PaidUse], free: FreeKnowledge
    ) -> NeededCalls:
        """Return how many calls some uses need, by the free sample or by answers of others."""
        name = uses[0].method
        if not any(use.paid.before for use in uses):
            kept = self._kept(name, method, free.sample, free.candidates)
            open_ = tuple(place for place in free.candidates if place not in kept)
            known = len(kept) / len(free.candidates) if free.candidates else 0.0
            return NeededCalls(product(free.whole, free.share_of(len(open_))), open_, known)
        decided = self._decided(uses, free)
        kept = self._kept(name, method, free.sample, decided.needed)
        open_ = tuple(place for place in decided.needed if place not in kept)
        among = free.whole.likely * free.share.likely
        second = share(len(open_), len(decided.looked_at), among)
        if decided.open:
            most = share(len(open_) + len(decided.open), len(decided.looked_at), among)
            likely = (second.likely + most.likely) / 2
            second = Expected(second.low, likely, most.high)
        if not decided.looked_at:
            second = Expected(0.0, 1.0, 1.0)
        known = len(kept) / len(decided.needed) if decided.needed else 0.0
        return NeededCalls(product(free.whole, free.share, second), open_, known, decided.why_not)

    def _other_orders(self, use: PaidUse) -> list[PaidUse]:
        """Return a use as it is where its term comes first and last among rivals.

        Nothing where the term has none.
        """
        block = use.block.block
        expressions = list(map(expression_of, terms_of_block(block)))
        own = [n for n in rivals(block) if use.paid.call in calls_in(expressions[n])]
        orders = []
        for rank in (math.inf, -math.inf) if own else ():
            order = tuple(order_of_terms(block, {own[0]: rank}))
            made = {paid.call: paid for paid in paid_calls(block, order)}
            orders.append(PaidUse(use.block, made[use.paid.call], order))
        return [each for each in orders if each.paid != use.paid]

    def _told(self, found: FunctionFindings) -> CallForecast:
        """Return a forecast when all calls for it, and for others, are made.

        What these have brought into a ledger the query finds there.
        """
        method, calls, money = found.method, found.calls, found.money
        name = found.uses[0].method
        spending = self.asked.spending(method)
        if method.kept is not None and calls.likely > 0:
            made = float(self.asked.made(name))
            left = max(0.0, calls.likely - made)
            money = None if money is None else money.times(left / calls.likely)
            calls = Expected(max(0.0, calls.low - made), left, max(0.0, calls.high - made))
        each = self.asked.seconds_a_call(name, method)
        took, limit = hours(
            calls.times(1 / max(1, method.batch)),
            method.limits.rate,
            method.limits.max_in_flight,
            None if each is None else exactly(each),
        )
        if name in self.asked.ended:
            found.notes.append(f"no more was asked for: {self.asked.ended[name]}")
        sample = found.free.sample
        return CallForecast(
            _text_of(found.uses),
            calls,
            found.free.whole,
            found.free.counted.rows,
            found.known,
            money,
            method.price.unit,
            method.price.budget,
            took,
            limit,
            Measured(
                found.free.among,
                int(sample.rows.sum()),
                spending.calls,
                spending.spent,
                method.kept is not None,
            ),
            tuple(dict.fromkeys(found.notes)),
        )

    def _sampled(self, uses: Sequence[PaidUse]) -> FreeKnowledge:
        """Return what free predicates say of a sample: a small one first, then as large as pays."""
        key = tuple((use.block, use.paid.call, use.paid.free) for use in uses)
        if key in self._free:
            return self._free[key]
        counted = self.surveys.counted(uses)
        part, sample = as_large_as_pays(
            counted,
            self.asked.most,
            lambda part: self.surveys.sampled(uses, part, {}, free=True),
            len,
        )
        among = len(sample) if part.rows >= 1.0 else self.surveys.arguments_in(uses, part)
        whole = exactly(float(among)) if part.part >= 1.0 else counted.arguments
        order = np.argsort(sample.keys, kind="stable")
        candidates = tuple(int(place) for place in order if sample.needed[place])
        self._free[key] = FreeKnowledge(counted, part, sample, among, whole, candidates)
        return self._free[key]

    def _decided(
        self, uses: Sequence[PaidUse], free: FreeKnowledge, part: float = 1.0
    ) -> DecidedPlaces:
        """Ask for what decides on candidates: on as many as a part of the calls allows."""
        sample = free.sample
        chosen = list(free.candidates)
        whole = True
        for use in uses:
            for other in use.earlier:
                if unforeseen(other):
                    return DecidedPlaces((), (), why_not=f"it depends on {_text_of([other])}")
                method = self._method(other)
                keys = tuple(int(sample.keys[place]) for place in chosen)
                slice_ = free.part if whole else SampleSlice(keys=keys, rows=free.part.rows)
                own, pairs = self.surveys.pairs(use, other, slice_, self.asked.known())
                costs = self._costs(other.method, method, pairs)
                most = min(self.asked.left(other.method, method), int(part * self.asked.most))
                by_key: dict[int, list[int]] = {}
                for place, key in enumerate(own.tolist()):
                    by_key.setdefault(key, []).append(place)
                chosen, asking = _affordable(chosen, sample, by_key, pairs, costs, most)
                whole = False
                if not chosen:
                    why = f"{method.name} would have to be asked for more"
                    return DecidedPlaces((), (), why_not=why)
                if not self.asked.ask(other.method, method, pairs, asking):
                    return DecidedPlaces((), (), why_not=self.asked.ended[other.method])
        keys = tuple(int(sample.keys[place]) for place in chosen)
        full = self.surveys.sampled(
            uses, SampleSlice(keys=keys, rows=free.part.rows), self.asked.known(), free=False
        )
        needed = set(full.keys[full.needed].tolist())
        may = set(full.keys[~full.needed & (full.unknown > 0)].tolist())
        return DecidedPlaces(
            tuple(chosen),
            tuple(place for place in chosen if int(sample.keys[place]) in needed),
            tuple(place for place in chosen if int(sample.keys[place]) in may),
        )

    def _costs(self, name: str, method: FunctionMethod, sample: SampledArguments) -> list[bool]:
        return self.asked.costs_a_call(name, method, sample.values(range(len(sample))))

    def _kept(
        self, name: str, method: FunctionMethod, sample: SampledArguments, places: Sequence[int]
    ) -> frozenset[int]:
        """Return those of some arguments whose answers were kept before."""
        kept = self.asked.kept_before(name, method, sample.values(places))
        return frozenset(place for place, there in zip(places, kept, strict=True) if there)

    def _money(
        self,
        name: str,
        method: FunctionMethod,
        sample: SampledArguments,
        places: Sequence[int],
        calls: Expected,
        notes: list[str],
    ) -> Expected | None:
        if method.price.actual is not None and (told := self.asked.prices.get(name)):
            return product(calls, mean(told, calls.likely))
        cost = method.price.cost
        if cost is None:
            return None
        if not callable(cost):
            return calls.times(cost)
        if not places:
            return NONE_AT_ALL if calls.high == 0 else None
        try:
            each = amounts(method, sample.values(places))
        except CostError as error:
            notes.append(str(error))
            return None
        return product(calls, mean(each, calls.likely))

    def _probe(
        self, name: str, method: FunctionMethod, sample: SampledArguments, places: Sequence[int]
    ) -> None:
        """Make a few calls, which tell what a call takes, where none was made."""
        if self.asked.spending(method).calls:
            return
        probes = min(PROBES * max(1, method.batch), self.asked.left(name, method), len(places))
        if probes:
            self.asked.ask(name, method, sample, places[:probes])


def _affordable(
    chosen: Sequence[int],
    sample: SampledArguments,
    by_key: Mapping[int, Sequence[int]],
    pairs: SampledArguments,
    costs: Sequence[bool],
    most: int,
) -> tuple[list[int], list[int]]:
    """Return the first candidates for which not more than ``most`` calls are made, and these.

    Which are places among the pairs. For one candidate only a part of these calls is made, so that
    several are looked at, whatever each needs.
    """
    each = max(1, most // _AT_LEAST)
    bought: set[int] = set()
    asking: dict[int, int] = {}
    first: list[int] = []
    for place in chosen:
        wanted = sorted(by_key.get(int(sample.keys[place]), ()), key=lambda n: int(pairs.keys[n]))
        dear = [n for n in wanted if costs[n] and int(pairs.keys[n]) not in bought]
        left_out = set(dear[each:])
        wanted = [n for n in wanted if n not in left_out]
        new = {int(pairs.keys[n]) for n in dear[:each]}
        if len(bought) + len(new) > most:
            break
        bought |= new
        asking.update((int(pairs.keys[n]), n) for n in wanted)
        first.append(place)
    return first, list(asking.values())


def _text_of(uses: Sequence[PaidUse]) -> str:
    """Return a call as people recognize it."""
    texts = []
    for use in uses:
        block = use.block.block
        names = tuple(function.name for function in block.functions)
        texts.append(render(use.paid.call, names, block.argument_names))
    return ", ".join(dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A query whose price is asked for: its plan before it was rewritten, if known, and after."""

    spark: SparkSession
    rewritten: Plan
    given: Plan | None
    made: Made
    table_of: TableOf | None
    time_zone: str


def forecast_of(query: Foreseen, tables: LookupTables, run: int, calls: int) -> Forecast:
    """Return what a query will ask at the driver; ``calls`` of each function may be made for it."""
    salt = random.SystemRandom().randrange(_SALTS)
    job = f"{run}/forecast"
    blocks = list(paid_blocks(query.rewritten, query.made))
    surveys = Surveys(query.spark, RoutingOptions(run=run), salt)
    found = Forecast(())
    if blocks:
        asked = AskedSample(tables.server, tables.books, job, calls)
        found = Forecasting(surveys, asked).of(blocks)
    if query.table_of is None or query.given is None:
        return found
    lookups, missing = lookups_in(
        query.spark, query.given, query.table_of, tables, job, salt, query.time_zone, calls
    )
    return Forecast((*lookups, *found.functions), (*missing, *found.missing))
