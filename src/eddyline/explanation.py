"""What people are told of blocks: before they run, and after; what is left to Spark, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from eddyline.blocks.decline import LOST, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock, UserFunction
from eddyline.blocks.join_block import Block, JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.cascades.calibration import Calibration
from eddyline.chance import looks_non_deterministic
from eddyline.expressions import call_of
from eddyline.reports.block_report import BlockReport
from eddyline.reports.forecast import Forecast
from eddyline.reports.plain_spark import with_plain_calls
from eddyline.reports.records import TaskRecord

_AFTERWARDS: Final = "(eddyline.report says, after an action, what became of these blocks.)"


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """One block: its predicates, the functions whose values it hands on, what it joins.

    ``called`` tells how its concurrent functions are called, and what a call costs, ``looked_up``
    which of its inputs are looked up and by which columns, ``joined`` what reduces its rows, what
    does not and by which rule, and who joins them and why.
    """

    identity: str
    predicates: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    layout: str = ""
    called: tuple[str, ...] = ()
    looked_up: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()

    def numbered(self, place: int) -> str:
        """Return the block as text under the number that the report has for it."""
        head = f"Block {self.identity}"
        return str(self).replace(head, f"Block {place} ({self.identity})", 1)

    def __str__(self) -> str:
        """Return the block as a few lines of text."""
        if self.inputs:
            lines = [f"Block {self.identity}: joins {', '.join(self.inputs)}; {self.layout};"]
            checks = " and checks" if self.predicates else ""
            lines.append(f"  probes their SteMs{checks}, in any order, as it pays,")
            lines.extend(f"  {predicate}" for predicate in self.predicates)
            lines.extend(f"  and looks up {lookup}" for lookup in self.looked_up)
            lines.extend(f"  {note}" for note in self.joined)
            return "\n".join(lines)
        if self.predicates:
            lines = [f"Block {self.identity}: in any order, as it pays,"]
            lines.extend(f"  {predicate}" for predicate in self.predicates)
            if self.outputs:
                lines.append(f"  and hands on the results of {', '.join(self.outputs)}")
        else:
            lines = [f"Block {self.identity}: computes {', '.join(self.outputs)} and remembers"]
        lines.extend(f"  {note}" for note in (*self.called, *self.joined))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """What a DataFrame does with predicates over Python functions.

    ``blocks`` run in eddies already; ``claimable`` would if the DataFrame were
    adapted; ``left`` are the predicates that Spark runs as they are written. ``dropped`` are
    filters that Spark loses and ``adapt`` keeps: those that call Python functions and look at
    partition columns alone, of files that a source of version 2 reads. ``forecast`` is what its
    paid calls will come to, where that was asked for; ``cascades`` are the thresholds that
    ``adapt`` has set, and what they rest on; ``accesses`` are the tables that are looked up or
    scanned, as it turns out. Printing it, or showing it at a prompt or in a
    notebook, gives readable text.
    """

    blocks: tuple[BlockExplanation, ...]
    claimable: tuple[BlockExplanation, ...]
    left: tuple[LeftToSpark, ...]
    dropped: tuple[str, ...] = ()
    forecast: Forecast | None = None
    cascades: tuple[Calibration, ...] = ()
    accesses: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the whole explanation as text."""
        sections = []
        if self.dropped:
            sections.append(f"{LOST}\n{_indented(*self.dropped)}")
        if self.blocks:
            numbered = (block.numbered(place) for place, block in enumerate(self.blocks, start=1))
            sections.append("Runs in eddies:\n" + _indented(*numbered, _AFTERWARDS))
        if self.cascades:
            sections.append("\n".join(map(str, self.cascades)))
        if self.accesses:
            text = _indented(*self.accesses)
            sections.append(f"Looked up or scanned, as it turns out while the query runs:\n{text}")
        if self.claimable:
            text = _indented(*map(str, self.claimable))
            sections.append("Would run in eddies after eddyline.adapt:\n" + text)
        if self.left:
            sections.append("Left to Spark:\n" + _indented(*map(str, self.left)))
        if self.forecast is not None:
            text = _indented(str(self.forecast))
            sections.append(f"Asked at the driver, with intervals of 95 %:\n{text}")
        return "\n".join(sections) or "No predicate depends on a Python function."

    def __repr__(self) -> str:
        """What a prompt or a notebook shows: the text."""
        return str(self)


def explained(block: Block) -> BlockExplanation:
    """Return what users want to know about a block."""
    if isinstance(block, JoinBlock):
        names = tuple(relation.name for relation in block.query.relations)
        return BlockExplanation(
            block.identity,
            block.query.texts,
            (),
            names,
            block.layout,
            looked_up=tuple(_looked_up(block)),
            joined=(*block.notes, *_left_to_chance(block)),
        )
    names = tuple(block.functions[call_of(output).function].name for output in block.outputs)
    called = [_called(function) for function in block.functions if function.driver is not None]
    called.extend(_left_to_chance(block))
    return BlockExplanation(
        block.identity, block.texts, names, called=tuple(called), joined=block.joined
    )


def _looked_up(block: JoinBlock) -> Iterator[str]:
    """Yield the lookups of a block: the table, and the columns that are given."""
    for relation, columns in zip(block.query.relations, block.column_names, strict=True):
        ways = [" and ".join(columns[c] for c in lookup.bind) for lookup in relation.lookups]
        if ways:
            yield f"{relation.name} by {' or by '.join(ways)}"


def _left_to_chance(block: Block) -> Iterator[str]:
    """Yield which functions a block calls anew for equal arguments, and why."""
    for function in block.functions:
        chance = None if function.driver is not None else looks_non_deterministic(function.commands)
        if chance is not None:
            yield f"{function.name} is called for every row that comes to it: {chance}"


def _called(function: UserFunction) -> str:
    if function.driver is None:
        raise ValueError(f"{function.name} is called in the tasks")
    width, price = function.driver.width, function.driver.price
    costs = f"; {price}" if price else ""
    if function.driver.here:
        return f"{function.name} is called by each worker, for {width} values at a time{costs}"
    return f"{function.name} is called where the driver is, for {width} values at a time{costs}"


def _indented(*texts: str) -> str:
    return "\n".join(f"  {line}" for text in texts for line in text.splitlines())


def block_report(
    block: Block, options: RoutingOptions, record: TaskRecord | None, *, whole: bool = True
) -> BlockReport:
    """Return the report of a block; ``record`` is None where no task has reported.

    The calls of plain Spark are said to be estimated in a block of joins with several
    functions, between which it may filter, and where the block is not the ``whole`` of what Spark
    plans by: where the DataFrame was derived from the adapted one, or where joins are beside it,
    from which Spark derives filters, and below which it computes what is computed above.
    """
    if isinstance(block, JoinBlock):
        inputs = tuple(relation.name for relation in block.query.relations)
        names, steps, layout = " join ".join(inputs), block.steps, block.layout
    else:
        names = ", ".join(dict.fromkeys(function.name for function in block.functions))
        steps, layout, inputs = block.texts, "", ()
    if record is not None:
        record = with_plain_calls(record)
        if not whole or (isinstance(block, JoinBlock) and len(block.functions) > 1):
            functions = tuple(replace(entry, estimated=True) for entry in record.functions)
            record = replace(record, functions=functions)
    reduced = block.reduced or (isinstance(block, FilterBlock) and block.spared)
    policy = options.policy.name
    return BlockReport(names, policy, options.seed, steps, record, layout, inputs, reduced)
