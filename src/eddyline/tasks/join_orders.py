"""In which orders the rows of a join block go through its predicates and SteMs."""

from __future__ import annotations

from collections import Counter

from eddyline.engine.signature import Signature
from eddyline.tasks.filter_task import Orders


class JoinOrders(Orders):
    """Counts rows by the order meant for them, each row once.

    A row counts on its first visit to a predicate or to another relation's SteM; one that is only
    built, since its matches come later, has no order. The order begins with the SteM of the row's
    own relation.
    """

    def __init__(self, first_stem: int) -> None:
        """``first_stem`` is the module that is relation 0's SteM."""
        super().__init__()
        self._first_stem = first_stem
        # Tuples that were counted and come again. Their signature does not tell: others
        # arrive with the same one, having passed predicates before they came.
        self._counted: Counter[Signature] = Counter()

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,
        seconds: float,  # noqa: ARG002 - only tuples are counted
    ) -> None:
        """Count the tuples of a visit whose way begins with it."""
        if self.between_visits is not None:
            self.between_visits()
        spanned = signature.spanned
        if self.policy is None or spanned & (spanned - 1) or signature.probed or not tuples_in:
            return
        known = min(self._counted[signature], tuples_in)
        self._counted[signature] -= known
        own = self._first_stem + spanned.bit_length() - 1
        if module == own:
            built = signature._replace(built=spanned)
            self._counted[built] += known * tuples_out // tuples_in
            return
        if tuples_in > known:
            order = self.policy.order(signature)
            others = (other for other in order if other not in (own, module))
            self._shares[own, module, *others] += tuples_in - known
        if module < self._first_stem:
            self._counted[signature.after(module)] += tuples_out
