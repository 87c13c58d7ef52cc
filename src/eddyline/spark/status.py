"""How a session fares that is adapted as a whole: what was asked of Python, and what it left."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.spark.host import catalyst


@dataclass(frozen=True, slots=True)
class Status:
    """How many plans Spark has asked Python about, in all sessions since the JVM is there.

    ``unanswered`` are those about which there was no answer in time, ``not_asked`` those for which
    nobody was asked for a while, after several of these; all of them ran as Spark had planned
    them. ``why`` says what was the matter last, empty where nothing was.
    """

    answered: int
    unanswered: int
    not_asked: int
    why: str

    def __str__(self) -> str:
        """Return it in words, for people."""
        text = f"{self.answered:,} plans looked at"
        left = self.unanswered + self.not_asked
        if left:
            text += f", {left:,} left to Spark without an answer (last: {self.why})"
        return text


def status() -> Status:
    """Return how the plans fared that sessions under :func:`~eddyline.enable` ran.

    A plan about which Python gives no answer within ``spark.eddyline.rewriteTimeout`` (30 s by
    default) runs as Spark planned it, with a line in Spark's log. After three in a row Python is
    not asked for a second, then for twice as long each time, for five minutes at the most.
    """
    found = catalyst.answers()
    if found is None:
        return Status(0, 0, 0, "")
    return Status(found.answered, found.failed, found.passed_over, found.why)
