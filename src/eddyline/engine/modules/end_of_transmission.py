"""Ends of transmission: which probes of an access method have all their matches in a SteM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, as_array
from eddyline.engine.storage.growing import GrowingArray, validity
from eddyline.engine.storage.key_set import KeySet


class Transmissions:
    """Answers on their way into the SteM of a relation, each a range of rows that come in.

    An end of transmission may overtake its rows, since the eddy is free to leave these for
    later. "To solve this, we tag the EOT tuple with the number of probe matches, which
    allows a SteM to verify if all matches have been built into it" (Raman, Deshpande and
    Hellerstein, 2003, footnote 3): it counts once the last of them is built or absorbed.
    """

    def __init__(self) -> None:
        self._ended = GrowingArray(np.bool_)
        self._open: dict[int, range] = {}  # in the order of their rows
        self._left: dict[int, int] = {}

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Which transmissions have ended, by number."""
        return self._ended.values

    def begin(self) -> int:
        """Return the number of an answer about which nothing is known yet."""
        number = len(self._ended)
        self._ended.extend(1, value=False)
        return number

    def came(self, number: int, rows: range) -> None:
        """Note that these rows are a whole answer, and later than those that came before.

        An answer without rows ends at once.
        """
        if rows:
            self._open[number] = rows
            self._left[number] = len(rows)
        else:
            self._ended.values[number] = True

    def built(self, rows: Rows) -> list[int]:
        """Take note that rows were built or absorbed; return the transmissions that end by it."""
        if not self._open:
            return []
        numbers = as_array(rows)
        starts = np.array([answer.start for answer in self._open.values()])
        stops = np.array([answer.stop for answer in self._open.values()])
        at = np.searchsorted(starts, numbers, side="right") - 1
        at = at[(at >= 0) & (numbers < stops[at])]
        counts = np.bincount(at, minlength=len(starts)).tolist()
        ended = []
        for number, count in zip(list(self._open), counts, strict=True):
            self._left[number] -= count
            if not self._left[number]:
                ended.append(number)
                del self._open[number], self._left[number]
        self._ended.values[ended] = True
        return ended


class Answers:
    """What one lookup was asked for, and which of the answers are in the SteM in full."""

    def __init__(self, types: Sequence[pa.DataType], transmissions: Transmissions) -> None:
        """``types`` are those of the bind columns."""
        self._asked = KeySet(types)
        self._transmissions = transmissions
        self._transmission = GrowingArray(np.int64)  # of each binding asked for

    def __len__(self) -> int:
        """Return the number of distinct bindings asked for."""
        return len(self._asked)

    def ask(self, bindings: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """Mark bindings as asked for; return the positions of those that were new, int64.

        :meth:`begin` must be told next how they are asked for.
        """
        return self._asked.add(bindings)

    def begin(self, sizes: Sequence[int]) -> list[int]:
        """Note that what was last asked for comes in several answers; return their numbers.

        The first of ``sizes`` is the number of bindings that the first of them is about, and
        so on, in the order in which they were asked for.
        """
        numbers = []
        for size in sizes:
            numbers.append(self._transmissions.begin())
            self._transmission.extend(size, numbers[-1])
        return numbers

    def transmission(self, bindings: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """Return the transmission that answers each binding; -1 for one not asked for."""
        numbers = self._asked.find(bindings)
        known = numbers >= 0
        numbers[known] = self._transmission.values[numbers[known]]
        return numbers

    def complete(self, bindings: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
        """Return for which bindings the SteM has every row: NULL, in any column, has none."""
        numbers = self.transmission(bindings)
        known = numbers >= 0
        complete = known.copy()
        complete[known] = self._transmissions.ended[numbers[known]]
        for column in bindings:
            if column.null_count:
                complete |= ~validity(column)
        return complete
