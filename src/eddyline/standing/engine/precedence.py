"""The operator precedence graph: which operators a shared tuple may visit next.

Krishnamurthy et al. (2004, Section 6.3): "we record precedence relationships between operators
in a precedence graph", so that filters come before builds, builds before probes, and a tuple is
put out once. It is derived, never enumerated: a signature's candidates are found when it occurs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from eddyline.engine.join_graph import Key
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature
from eddyline.standing.engine.shared_query import JoinShape


class Kind(Enum):
    """What an operator does."""

    SELECT = auto()  # a grouped filter of a stream, or a selection that is evaluated by itself
    BUILD = auto()
    PROBE = auto()
    OUTPUT = auto()


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator on one stream's tuples, or, an output, on all.

    A selection has a ``rank``: 0 for the grouped filter, which comes before the others.
    """

    kind: Kind
    stream: int = -1
    keys: tuple[Key, ...] = ()
    rank: int = 0


Shapes: TypeAlias = int
"""Join shapes, as a mask of their numbers."""


class PrecedenceGraph(Routes):
    """The candidates of every signature, for the join shapes of all queries.

    A tuple of one stream visits selections, then the build, then probes, and of each kind any
    may come first. One that was probed for some shapes goes on for the others; one that spans
    all streams of a shape is put out for its queries. A tuple is finished as soon as it was
    taken on for all shapes.
    """

    joins = True
    builds_first = False
    """Whether tuples that can be put out at once are stored all the same."""

    def __init__(self, shapes: Sequence[JoinShape], selections: Sequence[int]) -> None:
        """``selections`` has for each stream how many it has, its grouped filter included."""
        self.shapes = tuple(shapes)
        self.joined = 0
        """The streams that take part in joins, as a mask."""
        for shape in shapes:
            self.joined |= shape.streams if shape.edges else 0
        operators = [
            Operator(Kind.SELECT, stream, rank=rank)
            for stream, count in enumerate(selections)
            for rank in range(count)
        ]
        self._selecting = (1 << len(operators)) - 1
        streams = range(len(selections))
        operators += [Operator(Kind.BUILD, s) for s in streams if self.joined >> s & 1]
        probes = sorted({probe for shape in shapes for probe in _probes(shape)})
        operators += [Operator(Kind.PROBE, stream, keys) for stream, keys in probes]
        self.output = len(operators)
        """The number of the output operator."""
        operators.append(Operator(Kind.OUTPUT))
        self.operators = tuple(operators)
        self._builds = {o.stream: n for n, o in enumerate(operators) if o.kind is Kind.BUILD}
        super().__init__(len(operators))
        self._next: dict[Signature, tuple[int, ...]] = {}
        self._claims: dict[tuple[int, int], Shapes] = {}

    @property
    def free(self) -> bool:
        """Whether tuples may visit the operators in any order: no."""
        return False

    def candidates(self, signature: Signature) -> tuple[int, ...]:
        """Return the operators that may come next; empty where the tuple is finished."""
        known = self._next.get(signature)
        if known is None:
            known = self._next[signature] = tuple(sorted(self._candidates(signature)))
        return known

    def after(self, signature: Signature, module: int) -> Signature:
        """Return the signature of what an operator makes of tuples; joined ones for a probe.

        For a tuple that has probed, and goes on by itself, see :meth:`visited`.
        """
        operator = self.operators[module]
        spanned, built, done, _, _ = signature
        if operator.kind is Kind.BUILD:
            return Signature(spanned, spanned, done)
        if operator.kind is Kind.PROBE:
            stream = 1 << operator.stream
            return Signature(spanned | stream, built | stream, done & self._selecting)
        return self.visited(signature, module)

    @staticmethod
    def visited(signature: Signature, module: int) -> Signature:
        """Return the signature of tuples that have visited an operator and are what they were."""
        return signature.after(module)

    def remaining(self, signature: Signature) -> tuple[int, ...]:
        """Return the operators that the tuple has yet to visit, candidates or not."""
        return tuple(n for n in self.numbers if not signature.done >> n & 1)

    def is_build(self, signature: Signature, module: int) -> bool:
        """Tell whether tuples go to an operator to be stored there."""
        return not signature.built and self.operators[module].kind is Kind.BUILD

    def operation(self, signature: Signature, module: int) -> Hashable:
        """Return what an operator does to tuples; only a probe's depends on what they span."""
        probes = self.operators[module].kind is Kind.PROBE
        return (module, signature.spanned) if probes else module

    def only_computes(self, module: int) -> bool:
        """Tell whether an operator calls nothing of a user's."""
        operator = self.operators[module]
        return operator.kind is not Kind.SELECT or operator.rank == 0

    def taken_on(self, signature: Signature, module: int) -> Shapes:
        """Return the shapes for which an operator takes tuples on; no other will for these."""
        return self._claimed(signature.spanned, module) & self.open(signature)

    def open(self, signature: Signature) -> Shapes:
        """Return the shapes for which tuples have still to be taken on."""
        spanned, _, done, _, _ = signature
        shapes = sum(
            1 << number
            for number, shape in enumerate(self.shapes)
            if shape.streams & spanned == spanned and shape.connects(spanned)
        )
        done &= ~self._selecting
        while done:
            module = (done & -done).bit_length() - 1
            done &= done - 1
            shapes &= ~self._claimed(spanned, module)
        return shapes

    def _claimed(self, spanned: int, module: int) -> Shapes:
        """Return the shapes that an operator is for, where tuples span some streams."""
        known = self._claims.get((spanned, module))
        if known is None:
            operator = self.operators[module]
            known = sum(
                1 << number
                for number, shape in enumerate(self.shapes)
                if (operator.kind is Kind.OUTPUT and shape.streams == spanned)
                or (
                    operator.kind is Kind.PROBE
                    and shape.streams & spanned == spanned
                    and shape.streams >> operator.stream & 1
                    and not spanned >> operator.stream & 1
                    and shape.keys(spanned, operator.stream) == operator.keys
                )
            )
            self._claims[spanned, module] = known
        return known

    def _candidates(self, signature: Signature) -> Sequence[int]:
        spanned, built, _, _, _ = signature
        selections = self._selections(signature)
        if selections:
            return selections
        if not self.open(signature):
            return ()
        output = [self.output] if self.taken_on(signature, self.output) else []
        if not built:
            build = self._builds.get(spanned.bit_length() - 1)
            if build is not None and (self.builds_first or not output):
                return (build,)
            return output
        probes = [
            number
            for number, operator in enumerate(self.operators)
            if operator.kind is Kind.PROBE and self.taken_on(signature, number)
        ]
        return probes + output

    def _selections(self, signature: Signature) -> Sequence[int]:
        """Return selections that come before all else, grouped filters before the others."""
        if not self._selects(signature):
            return ()
        spanned, _, done, _, _ = signature
        left = [
            (operator.rank, number)
            for number, operator in enumerate(self.operators)
            if operator.kind is Kind.SELECT
            and spanned >> operator.stream & 1
            and not done >> number & 1
        ]
        return [number for rank, number in left if rank == 0] or [number for _, number in left]

    def _selects(self, signature: Signature) -> bool:
        """Tell whether the selections on the streams of tuples come before all else."""
        return not signature.built


def _probes(shape: JoinShape) -> Iterator[tuple[int, tuple[Key, ...]]]:
    """Return every way in which tuples on the way to a shape find those of another stream."""
    reached = {
        1 << stream for stream in range(shape.streams.bit_length()) if shape.streams >> stream & 1
    }
    while reached:
        further: set[int] = set()
        for spanned in reached:
            following = shape.next_streams(spanned)
            for stream in range(following.bit_length()):
                if following >> stream & 1:
                    yield stream, shape.keys(spanned, stream)
                    further.add(spanned | 1 << stream)
        reached = further
