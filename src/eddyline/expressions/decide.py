"""Decides a predicate term by term in the written order: the eddy's answer, without an eddy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eddyline.expressions import evaluate
from eddyline.expressions.collective_failure import hides
from eddyline.expressions.terms import Conjunction, Leaf, Term
from eddyline.expressions.vector import Scope


def decide(term: Term, scope: Scope) -> tuple[npt.NDArray[np.bool_], dict[int, Exception]]:
    """Return for which rows a term is TRUE, and the error of each row for which that is unknown.

    A row decided by one term of an AND or OR is not shown to the next; an error
    counts where no other term decides the row, the first such error in the written order
    (or, of several rows, one that may go away when its row is tried alone).
    """
    rows = len(scope)
    if isinstance(term, Leaf):
        vector = evaluate(term.expression, scope)
        true = vector.values.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        return true, dict(vector.errors)
    conjunction = isinstance(term, Conjunction)
    errors: dict[int, Exception] = {}
    open_ = np.arange(rows, dtype=np.int64)
    for part in term.terms:
        true, failed = decide(part, scope.narrow(open_))
        stays = true.copy() if conjunction else ~true
        for position, error in failed.items():
            stays[position] = True
            row = int(open_[position])
            if row not in errors or (rows > 1 and hides(errors[row], error)):
                errors[row] = error
        open_ = open_[stays]
        if not len(open_):
            break
    undecided = np.zeros(rows, dtype=np.bool_)
    undecided[open_] = True
    errors = {row: error for row, error in errors.items() if undecided[row]}
    result = undecided if conjunction else ~undecided
    result[list(errors)] = False
    return result, errors
