"""The walk through a plan of Spark Connect: what becomes of each relation in it.

Every run of filters is judged (:mod:`.filter_runs`), with the types that the server tells of it,
and becomes a block if that pays; everything else is sent as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.types import DataType

from eddyline.blocks.column_types import spark_type
from eddyline.blocks.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock, fused_name
from eddyline.connect.added_columns import (
    AddedColumns,
    added_columns,
    below,
    called_like,
    fields_of_items,
)
from eddyline.connect.conditions import asked_about
from eddyline.connect.filter_runs import (
    FilterClaim,
    FilterRun,
    claimed,
    questions,
    run_at,
)
from eddyline.connect.late_lists import items_in, late_list
from eddyline.connect.messages import (
    UDF,
    Expression,
    Relation,
    field_of,
    has_python,
    literal_true,
    python_functions,
    python_holders,
    relations_in,
    text_of,
)
from eddyline.connect.push_down import by_way
from eddyline.connect.select_lists import (
    WantedValue,
    asked_values,
    asking,
    remembering,
    values_in,
    wanted_values,
)
from eddyline.connect.server_answers import ExplainedPlan, Server, ServerSettings
from eddyline.connect.turns import Turns, turns_of
from eddyline.connect.ways import Ways
from eddyline.expressions import call_of
from eddyline.quirks import arrow_columns
from eddyline.tasks.filter_task import KEEP, result_type

PLUG_IN: Final = "spark.plugins=eddyline.spark.EddylinePlugin"
"""What a server has to be started with to adapt what a client cannot."""

Fuse: TypeAlias = Callable[[FilterBlock], bytes]
"""Makes the function of a block, pickled."""


@dataclass(frozen=True, slots=True)
class Makers:
    """Make the functions of blocks of filters, and of blocks of one value.

    Such values are asked for, or remembered; None: none remembers.
    """

    filtering: Fuse
    asking: Fuse
    remembering: Fuse | None


@dataclass
class PlanRewriting:
    """A relation in which blocks run as functions, the blocks, and what was left to Spark."""

    relation: Relation
    blocks: list[FilterBlock] = field(default_factory=list)
    left: list[LeftToSpark] = field(default_factory=list)
    moved: bool = False  # what computes something

    @property
    def changed(self) -> bool:
        """Whether anything was rewritten."""
        return self.moved or bool(self.blocks)


def out_of_reach(text: str, why: str) -> LeftToSpark:
    """Return what only the plug-in would do, and why a client does not."""
    detail = f"{why}; the plug-in on the server would adapt it ({PLUG_IN})"
    return LeftToSpark(text, DeclineReason.OUT_OF_REACH, detail)


@dataclass
class Walk:
    """Walks through one relation, and rewrites it in place."""

    server: Server
    makers: Makers
    settings: ServerSettings
    explained: ExplainedPlan
    rewriting: PlanRewriting
    ways: Ways
    limit: int = 0  # of the rows of what is rewritten now
    turns: Turns = field(default_factory=Turns)
    commands: dict[tuple[FilterBlock, int], bytes] = field(default_factory=dict)

    def rewrite(self, root: Relation, limit: int) -> None:
        """Rewrite in place what is at a relation, and whatever is below.

        Somebody wants so many rows of it, or all where the ``limit`` is 0.
        """
        self.turns = turns_of(root)
        pending = [(root, python_holders(root), limit)]
        while pending:
            node, python, limit = pending.pop()
            if node not in python:
                continue
            self.limit = limit_below(node, limit)
            if self._is_cached(node):
                kept = "what Spark has cached is read from there"
                self._leave(LeftToSpark("a cached DataFrame", DeclineReason.CACHED, kept))
                continue
            base = self._chain(node) or self._later(node)
            if base is not None:
                pending.append((base, python_holders(base), self.limit))
                continue
            if node.HasField("filter"):
                run = run_at(node, self._until_cached(node))
                self._run(run)
                node = run.nodes[-1]
            elif node.HasField("join") and has_python(node.join.join_condition):
                text = text_of(node.join.join_condition)
                self._leave(out_of_reach(text, "in the condition of a join"))
            self._values(node)
            pending.extend((one, python, self.limit) for one in relations_in(node))

    def _is_cached(self, node: Relation) -> bool:
        return self.explained.caches and self.server.is_cached(node)

    def _chain(self, node: Relation) -> Relation | None:
        """Rewrite filters whose functions make columns in place; return what is below them.

        None where that does not pay.
        """
        chain = added_columns(node, self._is_cached)
        if chain is None or not self.turns.may_change(chain.nodes):
            return None
        run = chain.run
        asked, _ = questions(run)
        try:
            types = self.server.types(chain.base, asked, chain.others)
        except DeclinedError:
            return None  # each filter by itself
        if self.explained.parting and any(
            way != () for way in self.ways.of(run, chain.base).values()
        ):
            return None  # Spark would not push the block below a join
        claim = self._claimed(run, types, chain.calls)
        if claim.block is None or len(claim.taken) < len(run.dependent):
            for left in claim.left:
                self._leave(left)
            return None
        if (unnamed := chain.unnamed(claim.outputs)) and not self._name(chain, unnamed):
            return None
        *links, base = chain.rewrite(claim, self._block_of(claim))
        for link in links:
            self._values(link)
        return base

    def _later(self, node: Relation) -> Relation | None:
        """Have functions called above a sort and a limit in place; return what is below them."""
        late = late_list(node, self._is_cached)
        if late is None:
            return None
        try:
            self.server.types(below(late.making), {}, late.computed)  # must be deterministic
            made = late.rewrite(self.server.fields(late.making))
        except DeclinedError:
            return None
        if made is None:
            return None
        self.rewriting.moved = True
        self._values(made, spared=True)
        # Else Spark would push the list below the limit.
        for function in (one for item in items_in(made) for one in python_functions(item)):
            function.deterministic = False
        return below(made)

    def _name(self, chain: AddedColumns, items: Sequence[int]) -> bool:
        """Give items of a select list, or an aggregate, the names that Spark would give them.

        False, and nothing is done, where these are not known.
        """
        top, made = chain.nodes[0], [item.expression for item in chain.items]
        groups = len(top.aggregate.grouping_expressions)
        try:
            fields = fields_of_items(made, groups, self.server.fields(top))
        except DeclinedError:
            fields = None
        if fields is None:
            return False
        for n in items:
            item = chain.items[n].expression
            if (field := fields[n]) is not None:
                item.CopyFrom(called_like(item, field))
        return True

    def _claimed(
        self, run: FilterRun, types: dict[bytes, str], wanted: Sequence[Expression] = ()
    ) -> FilterClaim:
        own, ansi = self.settings.of_functions, self.settings.ansi
        return claimed(run, types, own, ansi=ansi, wanted=wanted)

    def _values(self, node: Relation, *, spared: bool = False) -> None:
        """Have values made that a relation wants: asked for together, or with a memory.

        They may be ``spared`` rows for which plain Spark makes them.
        """
        asked = asked_values(node)
        wanted = wanted_values(node) if self.makers.remembering is not None else []
        if not asked and not wanted:
            return
        looked_at: dict[bytes, Expression] = {}
        for value in (*asked, *wanted):
            looked_at |= asked_about(value.expression)
        try:
            types = self.server.types(next(relations_in(node)), looked_at, ())
        except DeclinedError as declined:
            for value in asked:
                self._leave(declined.of(text_of(value.expression)).left_to_spark())
            return  # as they are
        for value in asked:
            self._ask(value, types)
        for value in wanted:
            self._remember(value, types, spared=spared)

    def _each_alone(self, run: FilterRun, types: dict[bytes, str]) -> bool:
        """Give the functions of a run's conditions a memory; whether one has got it.

        Each is of a kind of which Spark calls one function at a time, and filters after it.
        """
        before = len(self.rewriting.blocks)
        for condition in run.dependent:
            for value in values_in(condition.expression, named=True):
                self._remember(value, types, in_filter=True)
        return len(self.rewriting.blocks) > before

    def _ask(self, value: WantedValue, types: dict[bytes, str]) -> None:
        """Have a concurrent function called."""
        try:
            block, arguments = asking(value, types, self.settings.of_functions)
        except DeclinedError as declined:
            self._leave(declined.of(text_of(value.expression)).left_to_spark())
        else:
            self._write(value, block, arguments, self.makers.asking, arrow_columns.BY_TASK)

    def _remember(
        self,
        value: WantedValue,
        types: dict[bytes, str],
        *,
        spared: bool = False,
        in_filter: bool = False,
    ) -> None:
        """Give a function a memory."""
        try:
            made = remembering(value, types, self.settings.of_functions, spared=spared)
        except DeclinedError as declined:
            if declined.reason is DeclineReason.CALLED_FOR_EVERY_ROW:
                self._leave(declined.left_to_spark())
            return
        if made is None or self.makers.remembering is None:
            return
        if in_filter:
            self._write(value, *made, self.makers.asking, arrow_columns.BY_TASK)
        else:
            self._write(value, *made, self.makers.remembering, arrow_columns.BY_BATCH)

    def _write(
        self,
        value: WantedValue,
        block: FilterBlock,
        arguments: Sequence[Expression],
        make: Fuse,
        kind: int,
    ) -> None:
        """Write a call anew, as that of its block."""
        block = self._limited(block)
        function = block.functions[call_of(block.outputs[0]).function]
        name = fused_name([function.name]) if value.named else value.call.nest[0].function_name
        returned = spark_type(function.return_type)
        known = block, kind
        if known not in self.commands:  # pickled once: it need not come out the same twice
            self.commands[known] = make(block)
        command = self.commands[known]
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
        parts = self._parts(run)
        claims = [self._claimed(part, types) for part in parts]
        for claim in claims:
            for left in claim.left:
                self._leave(left)
        made = [claim for claim in claims if claim.block is not None]
        alone = [n for n, claim in enumerate(claims) if claim.each_alone]
        # Beside what is left, a function with a memory would have another turn.
        others = sum(len(part.dependent) for part in parts) < len(run.dependent)
        if others or self.makers.remembering is None or not self.turns.may_change(run.nodes):
            alone = []
        changed = [self._each_alone(parts[n], types) for n in alone]
        if made or any(changed):
            taken = [condition for claim in made for condition in claim.taken]
            run.rewrite(taken, [field_of(self._block_of(claim), KEEP) for claim in made])

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
        ways = self.ways.of(run, run.below)
        for number, way in ways.items():
            if way is None:
                why = "above a join or a view, below which Spark may push it"
                self._leave(out_of_reach(text_of(dependent[number].expression), why))
        groups = by_way(ways).values()
        return [
            replace(run, conditions=tuple(dependent[number] for number in group))
            for group in groups
        ]

    def _limited(self, block: FilterBlock) -> FilterBlock:
        """Take note of a block, and return it as its function knows it.

        One that asks somebody begins with as many rows as a limit above wants.
        """
        self.rewriting.blocks.append(block)
        asks = any(function.driver is not None for function in block.functions)
        return replace(block, limit=self.limit) if asks else block

    def _leave(self, left: LeftToSpark) -> None:
        self.rewriting.left.append(left)

    def _block_of(self, claim: FilterClaim) -> Expression:
        """Return the call of the block of a claim."""
        block = claim.block
        if block is None:
            raise AssertionError("what has no block decides nothing")
        block = self._limited(block)
        # A function without arguments gets no rows from Spark, so give it one.
        arguments = claim.arguments or [literal_true()]
        name, command = fused_name(block.texts), self.makers.filtering(block)
        kind = arrow_columns.BY_TASK
        return _called(name, arguments, result_type(block), kind, command)


_ROW_BY_ROW: Final = frozenset(
    {
        "drop",
        "filter",
        "limit",
        "project",
        "subquery_alias",
        "to_df",
        "with_columns",
        "with_columns_renamed",
    }
)
"""Relations that give their first rows when they have got some, and not only when they have all."""


def limit_below(node: Relation, limit: int) -> int:
    """Return how many rows somebody wants first of what is right below a relation; 0 for all."""
    if node.WhichOneof("rel_type") not in _ROW_BY_ROW:
        return 0
    if node.HasField("limit"):
        return min(node.limit.limit, limit) if limit else node.limit.limit
    return limit


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
