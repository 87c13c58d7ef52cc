"""Concurrent functions in plans, and how the server of lookups calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa

from eddyline.asking.declared_functions import DECLARED, Declaration
from eddyline.blocks.decline import LeftToSpark
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, UserFunction
from eddyline.catalyst import Plan
from eddyline.errors import FunctionPlaceError
from eddyline.planner.declare.lookup_tables import LookupTables
from eddyline.planner.read.concurrent_marks import marks_in

if TYPE_CHECKING:
    from eddyline.asking.called_arguments import Arguments
    from eddyline.asking.function_method import FunctionMethod
    from eddyline.asking.shared_method import SharedMethod


@dataclass(frozen=True)
class _Served:
    """A function as the server calls it for tasks; to ask for it is to use its declaration."""

    method: FunctionMethod

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedMethod[Arguments]:
        """Return what makes the calls for one job."""
        DECLARED.used(self.method.number)
        return self.method.shared(job, random, now)


def any_declared() -> bool:
    """Whether there has ever been a concurrent function."""
    return DECLARED.any


def require_all_placed(plan: Plan, left: Sequence[LeftToSpark]) -> None:
    """Raise FunctionPlaceError where a rewritten plan still calls a concurrent function."""
    for mark in marks_in(plan):
        why = "; ".join(str(predicate) for predicate in left if mark.name in predicate.text)
        raise FunctionPlaceError(
            f"{mark.name} is a concurrent function, and stands where its calls cannot be "
            f"made{f' ({why})' if why else ''}. Compute it in a select list first, as in "
            f'df.withColumn("value", {mark.name}(...)), and use that column.'
        )


def refuse_in_streams(plan: Plan) -> None:
    """Raise FunctionPlaceError where a stream calls a concurrent function that forgets."""
    for mark in marks_in(plan):
        if DECLARED.of(mark.number, mark.name).keep is None:
            raise FunctionPlaceError(
                f"{mark.name} is a concurrent function, which is called once a job for distinct "
                f"arguments, and each micro-batch of a stream is a job. Have its answers kept, "
                f'as with keep="answers/", or call it in foreachBatch, on the batch.'
            )


def served(block: FilterBlock, tables: LookupTables) -> FilterBlock:
    """Return a block whose tasks know whom to ask; its concurrent functions can be asked for."""
    concurrent = [function for function in block.functions if function.driver is not None]
    if not concurrent:
        return block
    for function in concurrent:
        if function.driver is not None:
            number, name = function.driver.number, function.driver.method
            declaration = DECLARED.of(number, function.name)
            method = _method(declaration, function, number, block.settings, tables)
            declaration.served[name] = _Served(method)
            tables.serve(name, declaration.served[name])
    return replace(block, server=tables.address)


def method_called(function: UserFunction) -> FunctionMethod:
    """Return what calls a function of a block, as the server has it; FunctionForgottenError."""
    if function.driver is None:
        raise ValueError(f"{function.name} is called in the tasks")
    declaration = DECLARED.of(function.driver.number, function.name)
    served = declaration.served[function.driver.method]
    if not isinstance(served, _Served):
        raise TypeError(f"{function.name} is no function that is served")
    return served.method


def _method(
    declaration: Declaration,
    function: UserFunction,
    number: int,
    settings: SessionSettings,
    tables: LookupTables,
) -> FunctionMethod:
    # Only users of concurrent functions have what these need.
    from eddyline.tasks.declared_method import declared_method, value_writer  # noqa: PLC0415

    kept = None
    keep = declaration.kept_in(tables.keep)
    if keep is not None:
        from eddyline.keeping.kept_answers import kept_answers  # noqa: PLC0415 - likewise
        from eddyline.planner.declare.kept_folders import files_in  # noqa: PLC0415 - likewise

        write = value_writer(declaration, function, settings)
        kept = kept_answers(
            keep,
            declaration.name,
            declaration.function,
            tuple(map(str, (*function.argument_types, *filter(None, function.keywords)))),
            pa.schema([("value", write.arrow_type)]),
            declaration.price.unit,
            files_in(keep.folder),
        )
    return declared_method(declaration, function, settings, number, tables.books, kept)
