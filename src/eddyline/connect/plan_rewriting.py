"""The way of a plan of Spark Connect, from what a client has built to what it sends.

The plan is walked from the top. Every run of filters is judged (:mod:`.filter_runs`), with the
types that the server tells of it, and becomes a block if that pays; everything else is sent as it
was. Of what takes Catalyst - joins in eddies, text of SQL, views - ``explain`` says that the
plug-in on the server would do it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.types import DataType

from eddyline.blocks.column_types import spark_type
from eddyline.blocks.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, fused_name
from eddyline.connect.filter_runs import (
    FilterClaim,
    FilterRun,
    claimed,
    questions,
    run_at,
)
from eddyline.connect.messages import (
    UDF,
    Expression,
    Relation,
    everything,
    field_of,
    has_python,
    key_of,
    literal_true,
    relations_in,
    text_of,
)
from eddyline.connect.push_down import by_way, way_of
from eddyline.connect.select_lists import WantedValue, remembering, wanted_values
from eddyline.connect.server_answers import ExplainedPlan, Server
from eddyline.quirks import arrow_columns
from eddyline.tasks.filter_task import KEEP, result_type

PLUG_IN: Final = "spark.plugins=eddyline.spark.EddylinePlugin"
"""What a server has to be started with to adapt what a client cannot."""

Fuse: TypeAlias = Callable[[FilterBlock], bytes]
"""Makes the function of a block, pickled."""


@dataclass(frozen=True, slots=True)
class Makers:
    """Make the functions of blocks of filters, and of blocks of one value; None: none remembers."""

    filtering: Fuse
    remembering: Fuse | None


@dataclass
class PlanRewriting:
    """A relation in which blocks run as functions, the blocks, and what was left to Spark."""

    relation: Relation
    blocks: list[FilterBlock] = field(default_factory=list)
    left: list[LeftToSpark] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything was rewritten."""
        return bool(self.blocks)


class PlanRewriter:
    """Rewrites relations of one session, under its settings at the moment."""

    def __init__(self, server: Server, makers: Makers) -> None:
        self._server = server
        self._makers = makers

    def rewritten(self, relation: Relation) -> PlanRewriting:
        """Return a relation rewritten; the one that is given stays as it is."""
        copy = Relation()
        copy.CopyFrom(relation)
        rewriting = PlanRewriting(copy)
        parts = list(parts_that_wait(copy))
        if not parts:
            return rewriting
        settings, ansi = self._server.settings()
        if settings.profiled:
            rewriting.left.append(LeftToSpark("the whole query", DeclineReason.PROFILED))
            return rewriting
        for part in parts:
            explained = self._server.explained(part)
            if explained.streams:
                rewriting.left.append(_out_of_reach("the whole query", "it is a stream"))
                continue
            _Walk(self._server, self._makers, settings, ansi, explained, rewriting).rewrite(part)
        rewriting.left = list(dict.fromkeys(rewriting.left))
        return rewriting

    def hidden(self, relation: Relation) -> tuple[LeftToSpark, ...]:
        """Return what calls Python functions where no client sees them; one request."""
        inside = (one for one in everything(relation) if isinstance(one, Relation))
        if has_python(relation) or any(map(_runs_at_once, inside)):
            return ()
        if not self._server.explained(relation).python:
            return ()
        text = "functions that SQL text or a view calls"
        return (_out_of_reach(text, "the client sends their names only"),)


def parts_that_wait(root: Relation) -> Iterator[Relation]:
    """Yield the largest parts with Python functions that the server may be asked about.

    To analyse some relations, the server runs what is below: these are the others.
    """
    if not has_python(root):
        return
    inside = (one for one in everything(root) if isinstance(one, Relation))
    if not any(map(_runs_at_once, inside)):
        yield root
        return
    for below in relations_in(root):
        yield from parts_that_wait(below)


def _runs_at_once(relation: Relation) -> bool:
    """Whether the server runs a query to analyse a relation."""
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


def _out_of_reach(text: str, why: str) -> LeftToSpark:
    detail = f"{why}; the plug-in on the server would adapt it ({PLUG_IN})"
    return LeftToSpark(text, DeclineReason.OUT_OF_REACH, detail)


@dataclass
class _Walk:
    server: Server
    makers: Makers
    settings: SessionSettings
    ansi: bool
    explained: ExplainedPlan
    rewriting: PlanRewriting

    def rewrite(self, root: Relation) -> None:
        """Rewrite in place what is at a relation, and whatever is below."""
        pending = [root]
        while pending:
            node = pending.pop()
            if not has_python(node):
                continue
            if self.explained.caches and self.server.is_cached(node):
                kept = "what Spark has cached is read from there"
                self._leave(LeftToSpark("a cached DataFrame", DeclineReason.CACHED, kept))
                continue
            if node.HasField("filter"):
                run = run_at(node, self._until_cached(node))
                self._run(run)
                node = run.nodes[-1]
            elif node.HasField("join") and has_python(node.join.join_condition):
                text = text_of(node.join.join_condition)
                self._leave(_out_of_reach(text, "in the condition of a join"))
            self._values(node)
            pending.extend(relations_in(node))

    def _values(self, node: Relation) -> None:
        """Give a memory to functions of which a relation wants only the values."""
        wanted = wanted_values(node) if self.makers.remembering is not None else []
        if not wanted:
            return
        asked = {key_of(one): one for value in wanted for one in value.call.values}
        try:
            types = self.server.types(next(relations_in(node)), asked, ())
        except DeclinedError:
            return  # as they are
        for value in wanted:
            try:
                made = remembering(value, types, self.settings)
            except DeclinedError as declined:
                if declined.reason is DeclineReason.CALLED_FOR_EVERY_ROW:
                    self._leave(declined.left_to_spark())
                continue
            if made is not None:
                self._remember(value, *made)

    def _remember(
        self, value: WantedValue, block: FilterBlock, arguments: Sequence[Expression]
    ) -> None:
        """Write a call anew, as that of its block."""
        if self.makers.remembering is None:
            raise AssertionError("somebody makes the functions of blocks that remember")
        self.rewriting.blocks.append(block)
        (function,) = block.functions
        name = fused_name([function.name]) if value.named else value.call.nest[0].function_name
        kind, returned = arrow_columns.BY_BATCH, spark_type(function.return_type)
        command = self.makers.remembering(block)
        value.expression.CopyFrom(_called(name, arguments, returned, kind, command))

    def _run(self, run: FilterRun) -> None:
        """Rewrite a run of filters in place, where that pays."""
        if not run.dependent:
            return
        asked, native = questions(run)
        try:
            types = self.server.types(run.below, asked, native)
        except DeclinedError as declined:
            if len(run.nodes) > 1:  # Spark does not make one of them, or one is the matter
                for node in run.nodes:
                    self._run(run_at(node, 1))
                return
            for condition in run.dependent:
                self._leave(declined.of(text_of(condition.expression)).left_to_spark())
            return
        claims = [claimed(part, types, self.settings, ansi=self.ansi) for part in self._parts(run)]
        for claim in claims:
            for left in claim.left:
                self._leave(left)
        made = [claim for claim in claims if claim.block is not None]
        if made:
            taken = [condition for claim in made for condition in claim.taken]
            run.rewrite(taken, [self._decided(claim) for claim in made])

    def _until_cached(self, node: Relation) -> int:
        """Return how many filters right above each other stand above what Spark has cached."""
        if not self.explained.caches:
            return sys.maxsize
        filters = run_at(node).nodes[1:]
        known = (n for n, below in enumerate(filters, 1) if self.server.is_cached(below))
        return next(known, sys.maxsize)

    def _parts(self, run: FilterRun) -> Sequence[FilterRun]:
        """Return a run once for each way that conditions of it go, with those that go this way."""
        if not self.explained.parting:
            return (run,)
        dependent = run.dependent
        ways = {}
        for number, condition in enumerate(dependent):
            asked, _ = questions(replace(run, conditions=(condition,)))

            def resolves(relation: Relation, asked: dict[bytes, Expression] = asked) -> bool:
                try:
                    self.server.types(relation, asked, ())
                except DeclinedError:
                    return False
                return True

            ways[number] = way_of(run.below, resolves, self._is_parting)
            if ways[number] is None:
                why = "above a join or a view, below which Spark may push it"
                self._leave(_out_of_reach(text_of(condition.expression), why))
        groups = by_way(ways).values()
        return [
            replace(run, conditions=tuple(dependent[number] for number in group))
            for group in groups
        ]

    def _is_parting(self, leaf: Relation) -> bool:
        return self.server.explained(leaf).parting

    def _leave(self, left: LeftToSpark) -> None:
        self.rewriting.left.append(left)

    def _decided(self, claim: FilterClaim) -> Expression:
        """Return the condition that the eddy of a claim decides."""
        block = claim.block
        if block is None:
            raise AssertionError("what has no block decides nothing")
        self.rewriting.blocks.append(block)
        # A function without arguments gets no rows from Spark, so give it one.
        arguments = claim.arguments or [literal_true()]
        name, command = fused_name(block.texts), self.makers.filtering(block)
        kind = arrow_columns.BY_TASK
        return field_of(_called(name, arguments, result_type(block), kind, command), KEEP)


def _called(
    name: str, arguments: Sequence[Expression], returned: DataType, kind: int, command: bytes
) -> Expression:
    """Return a call of a function of ours."""
    made = Expression()
    function = getattr(made, UDF)
    function.function_name = name
    function.deterministic = True
    function.arguments.extend(arguments)
    function.python_udf.output_type.CopyFrom(pyspark_types_to_proto_types(returned))
    function.python_udf.eval_type = kind
    function.python_udf.command = command
    function.python_udf.python_ver = ".".join(map(str, sys.version_info[:2]))
    return made
