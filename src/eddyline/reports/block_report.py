"""What is known of one block: how it was set up, and what its tasks recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase

from eddyline.reports.records import PredicateRecord, TaskRecord
from eddyline.reports.wording import one_line

_ORDER_ROOM = 37  # letters of an order beside a picture
_ARROW_ROOM = 3


@dataclass(frozen=True, slots=True)
class NumberedPredicate:
    """A predicate as the report shows it: "2", or "2.1" for the first disjunct of an OR.

    ``text`` is never empty. ``within`` is the number of rows it could have been
    evaluated on: those of the block, or of the OR around it. It says nothing in a join block, where
    joined tuples come as well.
    """

    number: str
    text: str
    record: PredicateRecord
    within: int

    @property
    def nested(self) -> bool:
        """Whether this is a disjunct inside a conjunct."""
        return "." in self.number


class JoinedBy(StrEnum):
    """How a large input was joined with the rows for which it had waited."""

    BROADCAST = "rows broadcast"
    """The rows were sent to all of it, and it was not shuffled."""
    SHUFFLED = "both shuffled"
    OTHER_BROADCAST = "input broadcast"
    """It was smaller than expected."""
    NOT_AT_ALL = "not joined"
    """There were no rows for it, and it was not read; or something else left nothing to join."""


@dataclass(frozen=True, slots=True)
class MeasuredInput:
    """A large input that was read when the rows left for it had been measured.

    So many ``rows`` were left, None where Spark does not say, of so many ``bytes`` in memory. It
    waited ``seconds`` from the beginning of the action, None where nobody knows.
    """

    input: str
    rows: int | None
    bytes: int
    joined: JoinedBy
    seconds: float | None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What happened at one step of a block: at a predicate, or at a SteM where ``stem`` is True.

    ``label`` is what orders call it. ``came`` and ``went`` are tuples; those that go on with an
    error held, ``errors`` in number, have not been dropped.
    """

    label: str
    text: str
    came: int
    went: int
    seconds: float
    errors: int = 0
    stem: bool = False


@dataclass(frozen=True, slots=True)
class BlockReport:
    """One block that runs in an eddy.

    ``title`` names its functions, ``policy`` and ``seed`` how it
    is routed (the seed is None where none was set), ``predicates`` the text of
    every conjunct as written, and after them, for a join block, the joins. ``record`` is
    None until an action has run. ``layout`` says how the ``inputs`` of a join block meet;
    both are empty for others. ``reduced`` tells whether rows were dropped before they came to it,
    which plain Spark would have called functions on, or whether it calls some again elsewhere.
    ``measured`` are the inputs that waited for its rows in its last action.
    """

    title: str
    policy: str
    seed: int | None
    predicates: tuple[str, ...]
    record: TaskRecord | None = None
    layout: str = ""
    inputs: tuple[str, ...] = ()
    reduced: bool = False
    measured: tuple[MeasuredInput, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What orders call the steps: predicates by number, inputs by name.

        By letter where there are too many, or names that would be misread.
        """
        conjuncts = len(self.predicates) - len(self.inputs)
        numbers = [str(position + 1) for position in range(conjuncts)]
        names = [one_line(name) for name in self.inputs]
        length = sum(len(name) + _ARROW_ROOM for name in (*numbers, *names))
        if len(set(names)) < len(names) or " " in "".join(names) or length > _ORDER_ROOM:
            names = [_letter(position) for position in range(len(names))]
        return (*numbers, *names)

    def numbered(self) -> tuple[NumberedPredicate, ...]:
        """Every recorded predicate, each OR before its disjuncts; empty without a record."""
        if self.record is None:
            return ()
        return tuple(_numbered(self.record.predicates, self.predicates, self.record.rows_in, ""))

    def steps(self) -> tuple[StepRecord, ...]:
        """Every step that was recorded: predicates, and the SteMs after them."""
        record = self.record
        if record is None:
            return ()
        stems = () if record.join is None else record.join.stems
        names = [(label, self.text_of(place)) for place, label in enumerate(self.labels)]
        return (
            *(
                StepRecord(
                    *name,
                    predicate.rows_in,
                    predicate.passed + predicate.errors_held,
                    predicate.seconds,
                    predicate.errors_held,
                )
                for name, predicate in zip(names, record.predicates, strict=False)
            ),
            *(
                StepRecord(*name, stem.probes, stem.matches, stem.seconds, stem=True)
                for name, stem in zip(names[len(record.predicates) :], stems, strict=False)
            ),
        )

    def text_of(self, position: int) -> str:
        """The text of a conjunct, or of a join, by its position in the block."""
        written = self.predicates[position] if position < len(self.predicates) else ""
        return one_line(written) or f"predicate {position + 1}"


def _letter(position: int) -> str:
    round_, place = divmod(position, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(round_) if round_ else "")


def _numbered(
    records: Sequence[PredicateRecord], texts: Sequence[str], within: int, prefix: str
) -> Iterator[NumberedPredicate]:
    for position, record in enumerate(records):
        number = f"{prefix}{position + 1}"
        written = texts[position] if position < len(texts) else record.text
        text = one_line(written) or f"predicate {number}"
        yield NumberedPredicate(number, text, record, within)
        yield from _numbered(record.nested, (), record.rows_in, f"{number}.")
