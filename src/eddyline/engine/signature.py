"""Signatures: what a tuple is made of and what was done to it."""

from __future__ import annotations

from typing import NamedTuple


class Signature(NamedTuple):
    """The state of a tuple in an eddy; all routing knowledge hangs on it.

    Avnur and Hellerstein (2000, Section 3.2) attach Ready and Done bits to every
    tuple; Deshpande (2004, Section 2.1.4) calls sources and Done bits together
    the signature and indexes the routing arrays by it. Here a signature belongs
    to a whole :class:`~eddyline.engine.batch.TupleBatch`. Ready bits are not
    stored: :mod:`eddyline.engine.routes` derives them.

    ``built`` and ``probed`` are for joins by SteMs (Raman, Deshpande and Hellerstein,
    2003): ``built`` says which components are rows of a SteM, and not only of the input
    that they came in by; ``probed`` marks a prior prober by its probe completion table.
    ``mark`` tells tuples apart that visit the same modules, by their values, so that no policy need
    see a row: in a join those that a user wants sooner than others
    (:mod:`eddyline.engine.preference`), in a filter those of a class
    (:mod:`eddyline.engine.filter.content_classes`).

    All fields but the last are sets of small numbers as bit masks. A named tuple, because
    signatures are keys: its hash takes 0.1 microseconds, a dataclass's 0.6.
    """

    spanned: int = 1  # relations that the tuple has a component of
    built: int = 0  # of these, the relations whose component is built into its SteM
    done: int = 0  # selections that have handled the tuple
    probed: int = 0  # the probe completion table of a prior prober
    mark: int = 0  # what was found in the tuple's values, 0 where nothing was looked for

    def after(self, module: int) -> Signature:
        """Return the signature of tuples that ``module`` has handled."""
        done = self.done | (1 << module)
        return Signature(self.spanned, self.built, done, self.probed, self.mark)

    @property
    def depth(self) -> int:
        """How far the tuple has come: selections passed, relations spanned, components built."""
        return self.done.bit_count() + self.spanned.bit_count() + self.built.bit_count()


ENTERING = Signature()
"""The signature of a tuple of a single relation that no module has seen."""
