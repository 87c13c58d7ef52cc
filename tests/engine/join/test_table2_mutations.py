"""Each constraint of Table 2 is needed: a small query goes wrong as soon as one is taken out.

Raman, Deshpande and Hellerstein (2003, Table 2). Every test runs its query with the rule, which
gives the right rows, and once more without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from eddyline.engine.batch import Rows, TupleBatch
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.stem import SteM
from eddyline.engine.quantum import Quantum
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.expressions import Call
from eddyline.simulation.fixed_quantum import FixedQuantum
from tests.joins import (
    BOOL,
    Row,
    Table,
    UserFunction,
    Visits,
    arrival,
    bag,
    equal,
    expected,
    held,
    looked_up,
    make_eddy,
    query_of,
    relation,
    sources_of,
)

R, S, T = range(3)
WHOLE, END = slice(None), None


def run(
    query: JoinQuery,
    tables: Sequence[Table],
    *steps: tuple[int, slice | None],
    quantum: Quantum | None = None,
) -> Counter[Row]:
    """Return the rows of a query whose input comes in steps: rows of a relation, or its end."""
    eddy = make_eddy(query, lookups=sources_of(query, tables), quantum=quantum)
    results: Counter[Row] = Counter()
    for r, part in steps:
        if part is END:
            results += bag(eddy.end(r))
        else:
            rows = arrival(tables[r][part], query.relations[r].types)
            results += bag(eddy.push(r, rows))
    return results


# --- BoundedRepetition


class EndlessError(BaseException):
    """An eddy goes on for ever. No ``Exception``: of an instrument that would only be logged."""


class Patience(Visits):
    """An instrument that gives up after some visits."""

    def visited(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, seconds: float
    ) -> None:
        super().visited(signature, module, tuples_in, tuples_out, seconds)
        if len(self.seen) > 100:
            raise EndlessError


def test_without_bounded_repetition_a_tuple_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a selection leaves no Done bit, so that a tuple may visit it again and again."""
    query = query_of(
        [relation("R"), relation("S")],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [Call(0, (q.column(R, 0), q.column(S, 1)), BOOL)],
    )
    r, s = [(1, 7), (2, 7)], [(7, 3)]

    def answer() -> Counter[Row]:
        eddy = make_eddy(query, [UserFunction(lambda *_: True)], instrument=Patience())
        return bag(eddy.run([held(r, query.relations[R]), held(s, query.relations[S])]))

    assert answer() == expected([r, s], lambda x, y: x[1] == y[0])
    after = JoinRoutes._after

    def forgetful(self: JoinRoutes, signature: Signature, module: int) -> Signature:
        return signature if module < self.first_stem else after(self, signature, module)

    monkeypatch.setattr(JoinRoutes, "_after", forgetful)
    with pytest.raises(EndlessError):
        answer()


# --- BuildFirst

COPIED = query_of([relation("R"), relation("S", mirrors=1, key=(0,))], equal((R, 1), (S, 0)))
"""S has two scans, which bring the same rows."""

TABLES: list[Table] = [[(1, 7), (2, 8)], [(7, 3), (8, 4)]]
RIGHT = expected(TABLES, lambda r, s: r[1] == s[0])


def test_without_build_first_what_two_scans_bring_is_there_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No SteM is there to tell that a row has come before."""
    steps = [(R, WHOLE), (R, END), (S, WHOLE), (S, WHOLE), (S, END)]
    assert run(COPIED, TABLES, *steps) == RIGHT
    monkeypatch.setattr(JoinRoutes, "must_build_first", lambda *_: False)
    assert run(COPIED, TABLES, *steps) == RIGHT + RIGHT


# --- ProbeCompletion

CACHED = query_of(
    [relation("R"), looked_up("S", (1,), scan=True), relation("T")],
    equal((R, 1), (S, 1)),
    equal((R, 0), (T, 0)),
)
"""R finds a part of S that the scan has brought, and bounces back for the rest.

The key of S is another column, so that there may be more.
"""

BY_KEY: Table = [(3, 7), (4, 8)]


def test_without_probe_completion_a_prior_prober_finds_again_what_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By way of another SteM it comes to the one that it has probed."""
    tables: list[Table] = [TABLES[R], BY_KEY, [(9, 9), (1, 5), (2, 6)]]
    first, rest = slice(1), slice(1, None)
    steps = [(T, WHOLE), (T, END), (S, first), (R, WHOLE), (R, END), (S, rest), (S, END)]
    right = expected(tables, lambda r, s, t: r[1] == s[1] and r[0] == t[0])
    assert run(CACHED, tables, *steps) == right

    def anywhere(self: JoinRoutes, signature: Signature) -> Iterable[int]:
        return [self.stem(T)] if not signature.spanned >> T & 1 else [self.stem(S)]

    monkeypatch.setattr(JoinRoutes, "_probe_completion", anywhere)
    assert run(CACHED, tables, *steps) == right + Counter({(1, 7, 3, 7, 1, 5): 1})


# --- SteM BounceBack

FETCHED = query_of([relation("R"), looked_up("S", (0,))], equal((R, 1), (S, 0)))
"""S can only be looked up."""


def test_without_bounce_back_of_probes_nothing_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [(R, WHOLE), (R, END)]
    assert run(FETCHED, TABLES, *steps) == RIGHT

    def stays(_: SteM, batch: TupleBatch) -> npt.NDArray[np.bool_]:
        return np.zeros(len(batch), np.bool_)

    monkeypatch.setattr(SteM, "bounces_back", stays)
    assert not run(FETCHED, TABLES, *steps)


def test_without_bounce_back_of_builds_copies_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(R, WHOLE), (R, END), (S, WHOLE), (S, WHOLE), (S, END)]
    assert run(COPIED, TABLES, *steps) == RIGHT

    def all_of_them(_: SteM, source: Relation, rows: Rows) -> Rows:  # noqa: ARG001 - as the rule
        return rows

    monkeypatch.setattr(SteM, "_without_duplicates", all_of_them)
    assert run(COPIED, TABLES, *steps) == RIGHT + RIGHT


# --- TimeStamp and LastMatchTimeStamp

LATE = query_of(
    [relation("R"), looked_up("S", (0,)), relation("T")],
    equal((R, 1), (S, 0)),
    equal((R, 0), (T, 0)),
)
"""R is built, since T may still come, and S is looked up for it."""


def test_without_timestamps_two_built_tuples_find_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row of S, looked up for two of R, finds the third one, which finds it later.

    All three are built at once; then they go on two at a time.
    """
    tables: list[Table] = [[(1, 7), (2, 7), (3, 7)], [(7, 3)], [(0, 4), (3, 6), (1, 5), (2, 5)]]
    steps = [(T, slice(2)), (R, WHOLE), (R, END), (T, slice(2, None)), (T, END)]
    right = expected(tables, lambda r, s, t: r[1] == s[0] and r[0] == t[0])
    assert run(LATE, tables, *steps, quantum=FixedQuantum(2)) == right

    def all_rows(self: SteM, _: TupleBatch) -> npt.NDArray[np.int64]:
        return np.array([self.state.marks.rows], np.int64)

    monkeypatch.setattr(SteM, "older_than", all_rows)
    twice = Counter({(3, 7, 7, 3, 3, 6): 1})
    assert run(LATE, tables, *steps, quantum=FixedQuantum(2)) == right + twice


AGAIN = query_of([relation("R"), looked_up("S", (1,), scan=True)], equal((R, 1), (S, 1)))
"""R bounces back from the SteM of S and goes there again, to be left to the scan."""


def test_without_the_last_match_a_prior_prober_finds_old_matches_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [(S, slice(1)), (R, WHOLE), (R, END), (S, slice(1, None)), (S, END)]
    tables: list[Table] = [TABLES[R], BY_KEY]
    right = expected(tables, lambda r, s: r[1] == s[1])
    assert run(AGAIN, tables, *steps) == right
    bounce = SteM._bounce

    def forgetful(self: SteM, batch: TupleBatch) -> list[TupleBatch]:
        found = bounce(self, batch)
        for prior in (*found, *self.state.parked):
            prior.last_match = None
        return found

    monkeypatch.setattr(SteM, "_bounce", forgetful)
    assert run(AGAIN, tables, *steps) == right + Counter({(1, 7, 3, 7): 1})
