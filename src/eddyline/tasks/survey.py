"""What is found out in tasks for a forecast: for which sampled rows a paid call is needed.

Predicates that are free are asked; of paid functions only answers that are known already count,
which come along. Nobody is called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import BooleanType

from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.errors import FunctionFailedError
from eddyline.expressions import Expression
from eddyline.expressions.vector import NO_ERRORS, Function, Vector
from eddyline.keeping.key_bytes import key_of
from eddyline.quirks import arrow_columns
from eddyline.tasks.action_settings import settings_of_action
from eddyline.tasks.our_functions import packed, pickled, unpacked
from eddyline.tasks.task_functions import task_functions
from eddyline.wall_clock import WorkClock

NEEDED: Final = BooleanType()
"""What a survey says of each row."""


class NotAskedError(FunctionFailedError):
    """Stands for an answer that is not known; never leaves a survey."""


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """Answers of a function that calls nobody: ``values`` by the keys of arguments.

    ``errors`` are those of arguments without a value.
    """

    places: dict[bytes, int]
    values: pa.Array
    errors: tuple[str | None, ...]

    @property
    def vectorized(self) -> bool:
        """No row costs anything."""
        return False

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Return what is known for rows; an error for what is not."""
        given = zip(*(column.to_pylist() for column in columns), strict=True)
        places = [self.places.get(key_of(arguments)) for arguments in given]
        values = self.values.take(pa.array(places, pa.int64()))
        errors: dict[int, Exception] = {}
        for row, place in enumerate(places):
            text = None if place is None else self.errors[place]
            if place is None:
                errors[row] = NotAskedError("it was not asked for")
            elif text is not None:
                errors[row] = FunctionFailedError(text)
        if len(values) != rows:
            raise AssertionError("a function with arguments has one value a row")
        return Vector(values, errors or NO_ERRORS)


@dataclass(frozen=True, slots=True)
class SurveyBlock:
    """A condition over columns and functions; ``known`` has the answers of those not called."""

    condition: Expression
    functions: tuple[UserFunction, ...]
    known: tuple[KnownAnswers | None, ...]
    settings: SessionSettings
    options: RoutingOptions


def survey_command(block: SurveyBlock) -> bytes:
    """Return the function that says for which rows the condition is TRUE or fails, pickled."""
    return pickled(arrow_columns.by_task(SurveyFunction(block)), NEEDED)


class SurveyFunction:
    """The callable that Spark runs, once a task."""

    def __init__(self, block: SurveyBlock) -> None:
        """Take what is to be found out."""
        self._block = block

    def __reduce__(self) -> tuple[object, ...]:
        return _survey_function, (packed(self._block),)

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """Yield for each row whether the condition holds, or may: its evaluation has failed.

        NULL where it depends on an answer that is not known.
        """
        block = self._block
        clock = WorkClock()
        own = [function for function, known in _pairs(block) if known is None]
        of_action = settings_of_action(block.settings)
        called = iter(task_functions(own, block.settings, of_action, block.options, None, clock))
        closing: list[Any] = []
        functions: list[Function] = []
        for _, known in _pairs(block):
            if known is None:
                closing.append(next(called))
            functions.append(known or closing[-1])
        task = TaskContext.get()
        eddy = FilterEddy(
            FilterPlan(block.condition),
            functions,
            block.options.policy.make,
            clock,
            np.random.default_rng([block.options.seed, 0 if task is None else task.partitionId()]),
            hands_on_errors=True,
        )
        with contextlib.ExitStack() as ending:
            for function in closing:
                ending.callback(function.close)
            ending.callback(clock.close)
            for batch in batches:
                columns = batch if isinstance(batch, tuple) else (batch,)
                rows = len(columns[0])
                filtered = eddy.filter(columns, rows)
                needed = np.zeros(rows, dtype=np.bool_)
                needed[filtered.kept] = True
                unknown = np.zeros(rows, dtype=np.bool_)
                for row, error in filtered.failed.items():
                    unknown[row] = isinstance(error, NotAskedError)
                yield pa.array(needed, mask=unknown)


def _pairs(block: SurveyBlock) -> Iterator[tuple[UserFunction, KnownAnswers | None]]:
    return zip(block.functions, block.known, strict=True)


def _survey_function(content: bytes) -> SurveyFunction:
    return SurveyFunction(unpacked(content))


def known_answers(
    function: UserFunction,
    settings: SessionSettings,
    answers: dict[bytes, tuple[pa.Array, str | None]],
) -> KnownAnswers:
    """Return answers, by the keys of their arguments: a value as an array of one, or an error."""
    kind = arrow_type(function.return_type, settings.time_zone)
    values = [value.cast(kind) for value, _ in answers.values()]
    return KnownAnswers(
        {key: place for place, key in enumerate(answers)},
        pa.concat_arrays(values) if values else pa.nulls(0, kind),
        tuple(error for _, error in answers.values()),
    )
