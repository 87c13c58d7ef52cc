"""The way of a plan of Spark Connect, from what a client has built to what it sends.

The plan is walked from the top. Every run of filters is judged (:mod:`.filter_runs`), with the
types that the server tells of it, and becomes a block if that pays; everything else is sent as it
was. Of what takes Catalyst - joins in eddies, text of SQL, views - ``explain`` says that the
plug-in on the server would do it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf has none

from eddyline.blocks.decline import DeclineReason, LeftToSpark, not_understood, worded_beside
from eddyline.connect.messages import (
    Holders,
    Relation,
    everything,
    has_python,
    python_holders,
    relations_in,
)
from eddyline.connect.plan_walk import Makers, PlanRewriting, Walk, out_of_reach
from eddyline.connect.server_answers import Server
from eddyline.connect.ways import Ways
from eddyline.engine.filter.filter_eddy import ALL_ROWS

WHOLE: Final = "the whole query"
"""The text of what was left to Spark where nothing was looked at."""


class PlanRewriter:
    """Rewrites relations of one session, under its settings at the moment."""

    def __init__(self, server: Server, makers: Makers) -> None:
        self._server = server
        self._makers = makers

    def rewritten(self, relation: Relation) -> PlanRewriting:
        """Return a relation rewritten; the one that is given stays as it is."""
        try:
            return self._rewritten(relation)
        except DecodeError:  # of what is told in terms of what it is made of
            copy = Relation()
            copy.CopyFrom(relation)
            told = not_understood("it would be nested more deeply than messages may be")
            return PlanRewriting(copy, left=[told.of(WHOLE).left_to_spark()])

    def _rewritten(self, relation: Relation) -> PlanRewriting:
        copy = Relation()
        copy.CopyFrom(relation)
        rewriting = PlanRewriting(copy)
        parts = list(parts_that_wait(copy))
        if not parts:
            return rewriting
        settings = self._server.settings()
        if settings.of_functions.profiled:
            rewriting.left.append(LeftToSpark(WHOLE, DeclineReason.PROFILED))
            return rewriting
        for part, limit in parts:
            explained = self._server.explained(part)
            if explained.streams:
                rewriting.left.append(out_of_reach(WHOLE, "it is a stream"))
                continue
            ways = Ways(self._server)
            walk = Walk(self._server, self._makers, settings, explained, rewriting, ways)
            walk.rewrite(part, limit)
        blocks = (block for block in rewriting.blocks if block.predicate == ALL_ROWS)
        remembering = {function.commands for block in blocks for function in block.functions}
        told = (worded_beside(left, remembering) for left in rewriting.left)
        rewriting.left = list(dict.fromkeys(told))
        return rewriting

    def hidden(self, relation: Relation) -> tuple[LeftToSpark, ...]:
        """Return what calls Python functions where no client sees them; one request."""
        if has_python(relation) or any(map(_runs_at_once, everything(relation))):
            return ()
        if not self._server.explained(relation).python:
            return ()
        text = "functions that SQL text or a view calls"
        return (out_of_reach(text, "the client sends their names only"),)


def parts_that_wait(root: Relation) -> Iterator[tuple[Relation, int]]:
    """Yield the largest parts with Python functions that the server may be asked about.

    To analyse some relations, the server runs what is below: these are the others. With each comes
    how many of its rows are wanted at the most, 0 for all.
    """
    python, at_once = python_holders(root), Holders(root, _runs_at_once)
    pending = [(root, 0)]
    while pending:
        relation, limit = pending.pop()
        if relation not in python:
            continue
        if relation in at_once:
            limit = relation.show_string.num_rows + 1 if relation.HasField("show_string") else 0
            pending.extend((below, limit) for below in reversed(list(relations_in(relation))))
        else:
            yield relation, limit


def _runs_at_once(relation: Any) -> bool:  # noqa: ANN401 - messages have no common type here
    """Whether this is a relation for whose analysis the server runs a query."""
    if not isinstance(relation, Relation):
        return False
    kind = relation.WhichOneof("rel_type")
    if kind == "aggregate":
        pivot = relation.aggregate.pivot
        return relation.aggregate.HasField("pivot") and not pivot.values
    return kind in _AT_ONCE


_AT_ONCE: Final = frozenset(
    {
        "approx_quantile",
        "corr",
        "cov",
        "crosstab",
        "describe",
        "freq_items",
        "html_string",
        "show_string",
        "summary",
        "transpose",
    }
)
"""Relations whose values the server computes while it analyses them."""
