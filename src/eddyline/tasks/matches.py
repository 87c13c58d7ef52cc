"""Rows that stay in the JVM: only what the eddy looks at travels, and matches come back.

Where all inputs but one are small, the columns of that one which only the result wants need not
go to Python, and none of its columns need come back. A function gets the others, as that of a
filter block does, and returns for each row the array of its matches, a struct each; Spark makes
a row of each struct.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, StructField, StructType

from eddyline.blocks.column_types import returned_type, spark_type, width
from eddyline.blocks.join_block import Counted, JoinBlock
from eddyline.engine.join.join_results import Joined
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import Arrival
from eddyline.expressions import Argument, Expression, with_arguments
from eddyline.expressions.value_types import relabelled
from eddyline.tasks.in_place import InPlaceSide
from eddyline.tasks.join_task import JoinTask
from eddyline.tasks.our_functions import ending_quietly, send_last_results, send_results
from eddyline.tasks.rounds import Rounds
from eddyline.tasks.task_lookups import ask_for_nothing, job_of

WORTH_STAYING: Final = 16
"""Bytes of a row that the result wants as they are, for it to pay that they stay in the JVM.

Half a million rows with 2, 6, 10 and 18 such columns of 8 bytes and one match each take 1.2,
0.85, 0.71 and 0.57 times as long as if whole rows went to Python and back; with three matches
each 0.91, 0.80, 0.56 and 0.50 times, with two texts more 0.76 and 0.66 times. Where each row has a
hundred matches, 2 columns take 1.16 times as long and 6 columns 0.87 times.
"""

MOST_MATCHES: Final = 1 << 18
"""Matches in an array of results, about: rows that have more each go fewer at a time."""


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A block that leaves some columns of one input in the JVM.

    ``block`` is what is left for Python. Its first output is the number of the row among those
    that were handed over with it. ``columns`` are the columns of the input that travel, and
    ``outputs`` has for each output of the whole block the column of the input or, as a negative
    number, the output of ``block``.
    """

    block: JoinBlock
    columns: tuple[int, ...]
    outputs: tuple[int, ...]


def left_behind(
    block: JoinBlock, driver: int, *, worth: int = WORTH_STAYING, marked: bool = False
) -> LeftBehind | None:
    """Return what is left for Python if the rows of ``driver`` stay in the JVM.

    None where less than ``worth`` bytes of a row would stay, or where nothing would travel. In
    ``marked`` matches the last field is never NULL.
    """
    query = block.query
    described = query.relations[driver]
    offset = query.offsets[driver]
    looked_at = [*query.predicates, *(o for o in query.outputs if not isinstance(o, Argument))]
    wanted = {
        output.index - offset
        for output in query.outputs
        if isinstance(output, Argument) and query.place_of(output.index)[0] == driver
    }
    needed = {
        node.index - offset
        for expression in looked_at
        for node in expression.walk()
        if isinstance(node, Argument) and query.place_of(node.index)[0] == driver
    }
    if not needed or sum(width(described.types[column]) for column in wanted) < worth:
        return None
    columns = tuple(sorted(needed))
    place = {offset + column: offset + n for n, column in enumerate(columns)}
    shift = len(columns) + 1 - len(described.types)  # one more column: the number of the row
    for index in range(query.offsets[-1]):
        if query.place_of(index)[0] != driver:
            place[index] = index + shift if index >= offset else index

    def placed(expression: Expression) -> Expression:
        return with_arguments(expression, lambda each: Argument(place[each.index], each.type))

    row = Argument(offset + len(columns), pa.int64())
    outputs: list[Expression] = [row]
    types: list[str] = ['"long"']
    where: list[int] = []
    for output, kind in zip(query.outputs, block.output_types, strict=True):
        if isinstance(output, Argument) and output.index - offset in wanted:
            where.append(output.index - offset)
        else:
            where.append(-len(outputs))
            outputs.append(placed(output))
            types.append(kind)
    if marked:
        outputs.append(row)
        types.append('"long"')
    relations = list(query.relations)
    kept = tuple(described.types[column] for column in columns)
    relations[driver] = replace(described, types=(*kept, pa.int64()))
    names = list(block.column_names)
    names[driver] = (*(names[driver][column] for column in columns), "row")
    left = replace(
        block,
        query=JoinQuery(
            tuple(relations),
            tuple(map(placed, query.predicates)),
            tuple(outputs),
            query.texts,
            query.function_names,
            tuple(chain.from_iterable(names)),
            query.priors,
        ),
        output_types=tuple(types),
        column_names=tuple(names),
    )
    return LeftBehind(left, columns, tuple(where))


def matches_type(block: JoinBlock) -> ArrayType:
    """Return the Spark type of a row's matches: an array of structs (see :func:`match_fields`)."""
    return ArrayType(StructType(match_fields(block)), containsNull=False)


def match_fields(block: JoinBlock) -> list[StructField]:
    """Return the fields of a match: ``m1``, ``m2`` … are the outputs of a block but the first.

    A block without others has ``m0``, the number of the row, to count its matches by.
    """
    numbers = _handed_over(block)
    return [StructField(f"m{n}", spark_type(block.output_types[n])) for n in numbers]


@dataclass(frozen=True)
class MatchesSide(InPlaceSide):
    """The function over the rows that stay: it gets some columns and returns the matches."""

    def __call__(self, batches: Iterator[Sequence[pa.Array]]) -> Iterator[pa.ListArray]:
        """Yield for each row of one partition its matches; the last column is the small inputs."""
        rounds = Rounds.of_join(self.block)
        empty = True
        for first in batches:
            empty = False
            with ending_quietly(), self.running(first[-1][0].as_buffer()) as task:
                for batch in chain([first], batches):
                    yield from self._matches(task, batch[:-1], rounds)
        if empty:
            ask_for_nothing(self.block, job_of(self.options))

    def _matches(
        self, task: JoinTask, columns: Sequence[pa.Array], rounds: Rounds
    ) -> Iterator[pa.ListArray]:
        rows = len(columns[0])
        start, step = 0, rows
        while start < rows and not rounds.enough:
            count = rounds.next(min(step, rows - start))
            own = tuple(column.slice(start, count) for column in columns)
            numbers = pa.array(np.arange(count))
            arrival = Arrival((*own, numbers), count)
            joined = chain(task.eddy.push(self.driver, arrival), task.eddy.finish())
            lists = self._listed(task.timed(joined), count)
            yield lists
            if rounds.gave(self._rows_of(lists)):
                send_last_results()
            elif rounds.small:
                send_results()
            start += count
            matches = len(lists.values)
            step = max(1, count * MOST_MATCHES // matches) if matches > MOST_MATCHES else 2 * count
        if start < rows:  # a limit above has what it keeps, and Spark wants an array for each row
            yield self._listed((), rows - start)

    def _rows_of(self, found: pa.ListArray) -> int:
        """Return how many rows of the result these matches make."""
        matches = np.diff(found.offsets.to_numpy())
        match self.block.counted:
            case Counted.MATCHES:
                return int(matches.sum())
            case Counted.MATCHES_OR_ROW:
                return int(np.maximum(matches, 1).sum())
            case Counted.MATCHED:
                return int(np.count_nonzero(matches))
            case Counted.UNMATCHED:
                return len(matches) - int(np.count_nonzero(matches))
            case Counted.ROWS:
                return len(matches)

    def _listed(self, joined: Iterable[Joined], rows: int) -> pa.ListArray:
        """Return matches by the row that they belong to."""
        parts = [result.outputs for result in joined]
        kept = _handed_over(self.block)
        declared = returned_type(matches_type(self.block))
        fields = list(declared.value_type)
        if not parts:
            offsets = np.zeros(rows + 1, np.int32)
            return pa.ListArray.from_arrays(
                pa.array(offsets), pa.array([], declared.value_type), declared
            )
        whole = [_together([part[n] for part in parts]) for n in range(len(parts[0]))]
        owners = whole[0].to_numpy()
        if (owners[1:] < owners[:-1]).any():
            order = pa.array(np.argsort(owners, kind="stable"))
            whole = [column.take(order) for column in whole]
        counts = np.bincount(owners, minlength=rows)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        values = pa.StructArray.from_arrays(
            [relabelled(whole[n], field.type) for n, field in zip(kept, fields, strict=True)],
            fields=fields,
        )
        return pa.ListArray.from_arrays(pa.array(offsets), values, declared)


def _handed_over(block: JoinBlock) -> range:
    """Return which outputs become fields of a match: all but the number of the row."""
    count = len(block.output_types)
    return range(1, count) if count > 1 else range(1)


def _together(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
