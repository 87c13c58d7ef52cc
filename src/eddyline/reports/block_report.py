"""What is known of one block: how it was set up, and what its tasks recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eddyline.reports.records import PredicateRecord, TaskRecord
from eddyline.reports.wording import one_line


@dataclass(frozen=True, slots=True)
class NumberedPredicate:
    """A predicate as the report shows it: "2", or "2.1" for the first disjunct of an OR.

    ``text`` is never empty. ``within`` is the number of rows it could have been
    evaluated on: those of the block, or of the OR around it.
    """

    number: str
    text: str
    record: PredicateRecord
    within: int

    @property
    def nested(self) -> bool:
        """Whether this is a disjunct inside a conjunct."""
        return "." in self.number


@dataclass(frozen=True, slots=True)
class BlockReport:
    """One block that runs in an eddy.

    ``title`` names its functions, ``policy`` and ``seed`` how it
    is routed (the seed is None where none was set), ``predicates`` the text of
    every conjunct as written, and after them, for a join block, the joins. ``record`` is
    None until an action has run. ``layout`` says how the inputs of a join block meet.
    """

    title: str
    policy: str
    seed: int | None
    predicates: tuple[str, ...]
    record: TaskRecord | None = None
    layout: str = ""

    def numbered(self) -> tuple[NumberedPredicate, ...]:
        """Every recorded predicate, each OR before its disjuncts; empty without a record."""
        if self.record is None:
            return ()
        return tuple(_numbered(self.record.predicates, self.predicates, self.record.rows_in, ""))

    def text_of(self, position: int) -> str:
        """The text of a conjunct by its position in the block."""
        written = self.predicates[position] if position < len(self.predicates) else ""
        return one_line(written) or f"predicate {position + 1}"


def _numbered(
    records: Sequence[PredicateRecord], texts: Sequence[str], within: int, prefix: str
) -> Iterator[NumberedPredicate]:
    for position, record in enumerate(records):
        number = f"{prefix}{position + 1}"
        written = texts[position] if position < len(texts) else record.text
        text = one_line(written) or f"predicate {number}"
        yield NumberedPredicate(number, text, record, within)
        yield from _numbered(record.nested, (), record.rows_in, f"{number}.")
