"""A DataFrame after each stage of its way: as it was read, claimed, made into blocks, rewritten.

Everything is told from what the one rewriting has kept on its way (see
:mod:`eddyline.planner.passes`); nothing is read, judged or rewritten again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from eddyline import catalyst
from eddyline.blocks.column_types import spark_type
from eddyline.blocks.join_block import Block, JoinBlock
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.explanation import explained
from eddyline.planner.claim.filter_claim import Verdict
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.passes import Rewriting
from eddyline.planner.read.regions import Region


class Stage(StrEnum):
    """The representations of a DataFrame on its way, in their order."""

    READ = "read"  # regions of joins, and chains of filters, projections and functions
    CLAIM = "claim"  # what of these runs in eddies, what Spark keeps, and why
    BLOCK = "block"  # the frozen data that travels to the tasks
    PLAN = "plan"  # Spark's plan with each block as one function


@dataclass(frozen=True, slots=True, repr=False)
class StageText:
    """What a DataFrame looks like after one stage; printing it gives readable text."""

    stage: Stage
    text: str

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def __repr__(self) -> str:
        """What a prompt or a notebook shows: the text."""
        return self.text


def stage_named(name: str) -> Stage:
    """Return the stage of that name; ValueError where there is none."""
    try:
        return Stage(name)
    except ValueError:
        known = ", ".join(repr(str(stage)) for stage in Stage)
        raise ValueError(f"stage is one of {known}, not {name!r}.") from None


def told(stage: Stage, rewriting: Rewriting, blocks: Sequence[Block]) -> StageText:
    """Return what a rewriting has kept of a stage; its ``blocks`` are those of the plan it made."""
    lines: Iterable[str]
    match stage:
        case Stage.READ:
            lines = _read(rewriting) or ["No function of Python and no join was read."]
        case Stage.CLAIM:
            lines = _claimed(rewriting) or ["Nothing is claimed, and nothing was declined."]
        case Stage.BLOCK:
            lines = [line for block in blocks for line in _block(block)] or ["No block."]
        case Stage.PLAN:
            lines = [catalyst.tree_text(rewriting.plan)]
    return StageText(stage, "\n".join(lines))


def _read(rewriting: Rewriting) -> list[str]:
    lines: list[str] = []
    for number, judged in enumerate(rewriting.judged, start=1):
        read = judged.read
        if isinstance(read, Region):
            lines.append(f"{number}. Region of {_count(read.joins, 'join')}, from the top:")
            nodes: Iterable[Plan] = reversed([link.plan for link in read.links])
            inputs = read.inputs
        else:
            lines.append(f"{number}. Chain, from the top:")
            nodes, inputs = read.run, (read.below,)
        lines += _indented(map(catalyst.node_text, nodes))
        lines.append(f"   over {_count(len(inputs), 'input')}:" if len(inputs) > 1 else "   over")
        lines += _indented(map(catalyst.node_text, inputs))
    return lines


def _claimed(rewriting: Rewriting) -> list[str]:
    lines: list[str] = []
    for number, judged in enumerate(rewriting.judged, start=1):
        kind = "Region" if isinstance(judged.read, Region) else "Chain"
        for claim in judged.claims:
            lines.append(f"{number}. {kind}: claimed for an eddy")
            lines += _join_claim(claim) if isinstance(claim, JoinClaim) else _chain_claim(claim)
        if not judged.claims:
            lines.append(f"{number}. {kind}: nothing claimed")
    if rewriting.remembering:
        lines.append("Functions with a memory beside the claims:")
        lines += _indented(map(str, map(explained, rewriting.remembering)))
    if rewriting.left:
        lines.append("Declined, with the reasons:")
        lines += _indented(map(str, rewriting.left))
    return lines


def _chain_claim(verdict: Verdict) -> Iterator[str]:
    claim = verdict.claim
    if claim is None:
        raise ValueError("a chain without a claim has nothing to tell")
    yield from _under("predicates", claim.texts)
    calls = dict.fromkeys(claim.calls.values())
    yield from _under("values", [claim.functions[call.function].name for call in calls])
    yield from _under("arguments", _texts(claim.arguments))
    yield from _under("conditions that Spark checks first", _texts(claim.below))
    yield from _under("conditions that Spark checks after it", _texts(claim.above))


def _join_claim(claim: JoinClaim) -> Iterator[str]:
    yield from _under("predicates", claim.texts)
    columns = [
        f"{text} of input {column.input + 1}"
        for column, text in zip(
            claim.columns,
            _texts(input_column.handle for input_column in claim.columns),
            strict=True,
        )
    ]
    yield from _under("columns", columns)
    for number, conditions in enumerate(claim.below, start=1):
        yield from _under(
            f"conditions that Spark checks first on input {number}", _texts(conditions)
        )
    yield from _under("conditions that Spark checks after it", _texts(claim.above))
    yield from _under("looked up", [table.name for table in claim.looked_up.values()])
    yield from _under("notes", claim.notes)


def _block(block: Block) -> Iterator[str]:
    yield from str(explained(block)).splitlines()
    functions = []
    for function in block.functions:
        kinds = ", ".join(map(_type, function.argument_types))
        size = sum(map(len, function.commands))
        what = f"{function.name}({kinds}) -> {_type(function.return_type)}"
        functions.append(f"{what}, {function.kind.name.lower()}, {size:,} bytes")
    yield from _under("functions", functions)
    if isinstance(block, JoinBlock):
        for relation, columns in zip(block.query.relations, block.column_names, strict=True):
            yield from _under(f"columns of {relation.name}", columns)
    else:
        yield from _under("arguments", block.argument_names)


def _under(title: str, texts: Iterable[str]) -> Iterator[str]:
    lines = list(texts)
    if lines:
        yield f"   {title}:"
        yield from _indented(lines)


def _indented(texts: Iterable[str]) -> list[str]:
    return [f"     {line}" for text in texts for line in text.splitlines()]


def _texts(expressions: Iterable[CatalystExpression]) -> list[str]:
    return [catalyst.pretty(expression) for expression in expressions]


def _type(kind: str) -> str:
    return spark_type(kind).simpleString()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
