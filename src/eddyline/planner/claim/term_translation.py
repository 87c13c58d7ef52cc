"""Translates the predicates of a chain into a block's expressions.

Native parts become arguments of the block, results of functions become calls,
and what is in between is translated by :mod:`eddyline.planner.read.translation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.blocks.decline import DeclinedError, DeclineReason, not_understood
from eddyline.blocks.filter_block import (
    CALLED_ONCE,
    FunctionKind,
    SessionSettings,
    UserFunction,
)
from eddyline.catalyst import CatalystExpression, PickledFunction
from eddyline.chance import looks_non_deterministic
from eddyline.chance.iterator_state import iterator_is_stateless
from eddyline.declaring.called_together import called_together, mark_of
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Case,
    Expression,
    Failure,
    Or,
    called_where,
    reason_not_to_evaluate,
)
from eddyline.forgetful_mark import FORGETFUL
from eddyline.planner.read.attempts import attempt
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.planner.read.concurrent_marks import mark_in
from eddyline.planner.read.contents import Contents, ContentsSize
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.expression_details import ExpressionDetails
from eddyline.planner.read.needs import ALWAYS, Need, as_expression
from eddyline.planner.read.translation import CatalystNode, translate
from eddyline.tasks.calling import reason_not_to_call

ExpressionT = TypeVar("ExpressionT", bound=Expression)


class Terms:
    """Translates, and gathers the contents of the block on the way.

    Equal arguments and functions are taken in once. What cannot be translated raises
    :class:`DeclinedError`; what it has brought in until then can be taken back.
    """

    takes_chance = True
    """Whether a function may look non-deterministic: in a filter it is asked once for a row."""

    def __init__(self, definitions: Definitions, settings: SessionSettings) -> None:
        self.contents = Contents()
        # By the object that each translates, which is kept with it. Not by the function's result:
        # both sides of a join with itself have the same one.
        self._calls: dict[int, tuple[Tree, Call]] = {}
        self._definitions = definitions
        self._settings = settings
        self._pickled: dict[tuple[ExpressionId, ...], tuple[PickledFunction, ...]] = {}

    def expression(self, tree: Tree, *, guarded: bool) -> Expression:
        """Translate an expression that depends on functions.

        ``guarded`` says that Spark may evaluate its parts for some rows only, so
        that no native part of it may become an argument that could raise.
        """

        def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self._leaf(tree.at(path), guarded=guarded)

        details = ExpressionDetails(tree)
        return translate(tree.node, leaf, details, time_zone=self._settings.time_zone)

    def call(self, result: FunctionResult) -> Call:
        """Translate the result of a function, or of a nest ``f(g(x))`` that Spark runs in one go.

        The functions of a nest hand over Python values as they are, without
        converting them to the inner one's return type and back. So a nest is one
        function of its own, even where ``g(x)`` occurs elsewhere: an ``int``
        returned for a ``double`` reaches ``f`` but is NULL everywhere else.
        """
        known = self._calls.get(id(result.function))
        if known is not None:
            return known[1]
        nest = self._nest(result.function)
        values: list[Tree] = []
        keywords: list[str | None] = []
        for child in nest[-1].children:
            named = child.name == "NamedArgumentExpression"
            keywords.append(str(child.node.fields["key"]) if named else None)
            values.append(child.children[0] if named else child)
        arguments = tuple(self._function_argument(v, guarded=result.guarded) for v in values)
        types = tuple(value.data_type for value in values)
        self._require_same_values(nest, values)
        number, kind = self._function(nest, types, tuple(keywords))
        call = Call(number, arguments, kind)
        self._calls[id(result.function)] = result.function, call
        return call

    def needed(self, need: Need, *, guarded: bool) -> Expression | None:
        """Translate a need; None where all rows need it.

        ``guarded`` says that a filter over functions stands below what needs it.
        """
        if need is ALWAYS:
            return None
        tree = Tree.of(as_expression(need))
        within = guarded or not self.is_native(tree)
        return self.evaluable(self.expression(tree, guarded=within))

    def where_needed(self, call: Call, need: Need) -> Call | Case:
        """Return a call for the rows that need it, as far as the block can tell which these are."""
        mark = self.contents.mark()
        try:
            needed = self.needed(need, guarded=True)
        except DeclinedError:
            self.back_to(mark)
            return call
        return call if needed is None else called_where(needed, call)

    def commands(self, function: Tree) -> tuple[bytes, ...]:
        """Return a function as it is pickled, or the functions of a nest, innermost first."""
        return tuple(pickled.command for pickled in self._pickles(self._nest(function)))

    def remembers(self, call: Call) -> bool:
        """Whether a function can remember a call's value, and nothing says that it is not to.

        The mark of a function that is pickled by reference is found in the worker only.
        """
        function, mark = self.contents.functions[call.function], FORGETFUL.encode()
        return (
            function.kind in CALLED_ONCE
            and bool(call.arguments)
            and not any(mark in command for command in function.commands)
            and looks_non_deterministic(function.commands) is None
        )

    def function_of(self, call: Call) -> Tree:
        """Return the function, outermost of a nest, that a call translates."""
        return next(tree for tree, known in self._calls.values() if known == call)

    def _nest(self, function: Tree) -> list[Tree]:
        """Return a function and those that it gets its values from, unconverted."""
        nest = [function]
        while self._hands_on(nest[-1]):
            nest.append(nest[-1].children[0])
        return nest

    @staticmethod
    def _hands_on(function: Tree) -> bool:
        """Whether a function gets what another one returns, unconverted.

        What a concurrent function gets and returns is converted, as it travels.
        """
        children = function.children
        if [child.name for child in children] != ["PythonUDF"]:
            return False
        return mark_in(function) is None and mark_in(children[0]) is None

    def back_to(self, mark: ContentsSize) -> None:
        """Take back what was brought in since, and the calls that look at it."""
        if self.contents.back_to(mark):
            calls = self._calls.items()
            self._calls = {key: pair for key, pair in calls if self.contents.has(pair[1])}

    def evaluable(self, expression: ExpressionT) -> ExpressionT:
        """Return an expression of the block, a predicate or a value, as it is.

        Raises :class:`DeclinedError` where a worker could not evaluate it; all parts of a claim
        pass here, however they were put together.
        """
        reason = reason_not_to_evaluate(expression)
        if reason is not None:
            raise not_understood(reason)
        return expression

    def is_native(self, tree: Tree) -> bool:
        """Whether an expression is a column that Spark computes below the block."""
        return not self._definitions.is_dependent(tree)

    def base_column(self, handle: CatalystExpression) -> Argument:
        """Return the argument that carries an attribute of the base."""
        return self._carried(handle)

    def native_column(
        self,
        tree: Tree,
        change: Callable[[CatalystExpression], CatalystExpression],
        *,
        guarded: bool,
    ) -> Argument:
        """Return the argument that carries a native expression, changed in some way."""
        handle = change(self._definitions.over_base(tree))
        if guarded and self._definitions.may_throw(tree):
            raise DeclinedError(DeclineReason.MAY_THROW, catalyst.pretty(handle))
        return self._carried(handle)

    def _leaf(self, tree: Tree, *, guarded: bool) -> Expression | None:
        """Return what an expression is to the block; None if its parts are to be asked."""
        if self.is_native(tree):
            return None if tree.name == "Literal" else self._argument([tree], "And", guarded)
        if tree.name == "AttributeReference":
            if (result := self._definitions.results.get(tree.identity)) is not None:
                return self.call(result)
            return self.expression(self._definitions.alias(tree), guarded=guarded)
        if tree.name in {"And", "Or"}:
            return self._connected(tree, guarded=guarded)
        return None

    def _connected(self, tree: Tree, *, guarded: bool) -> Expression:
        """Translate a nest of AND or of OR; all of its native terms become one argument."""
        terms = list(tree.terms(tree.name))
        dependent = [term for term in terms if not self.is_native(term)]
        native = [term for term in terms if self.is_native(term)]
        parts: list[Expression] = []
        parts.extend(self._argument(group, tree.name, guarded) for group in self.groups(native))
        parts.extend(self.expression(term, guarded=guarded) for term in dependent)
        return And(tuple(parts)) if tree.name == "And" else Or(tuple(parts))

    def groups(self, native: list[Tree]) -> list[list[Tree]]:
        """Return native terms by the base that they are over: here there is only one."""
        return [native] if native else []

    def _function_argument(self, value: Tree, *, guarded: bool) -> Expression:
        if value.name == "PythonUDF":
            return self.call(FunctionResult(value, guarded))
        if not self.is_native(value):
            self._travelling(value.data_type, lambda: value.handle)
            return self.expression(value, guarded=guarded)
        return self._argument([value], "And", guarded)  # literals too: Spark sends columns

    def _argument(self, terms: list[Tree], connective: str, guarded: bool) -> Expression:  # noqa: FBT001
        """Return what carries some native terms, joined where they are several.

        Where a guard may stand before them, those that may raise are tried, each by itself.
        """
        if len(terms) == 1 and (column := self._column(terms[0])) is not None:
            return column
        unsure = [term for term in terms if guarded and self._definitions.may_throw(term)]
        if unsure:
            parts = [self._attempted(term) for term in unsure]
            if sure := [term for term in terms if term not in unsure]:
                parts.insert(0, self._argument(sure, connective, guarded))
            several = And(tuple(parts)) if connective == "And" else Or(tuple(parts))
            return several if len(parts) > 1 else parts[0]
        handles = [self._definitions.over_base(term) for term in terms]
        combine = catalyst.conjunction if connective == "And" else catalyst.disjunction
        return self._carried(combine(handles))

    def _attempted(self, tree: Tree) -> Expression:
        """Return what fails where a native expression would raise, and where it is asked for."""
        tree = self._definitions.tree_over_base(tree)
        tried = attempt(tree)
        if tried is None:
            raise DeclinedError(DeclineReason.MAY_THROW, catalyst.pretty(tree.handle))
        value, failed = self._carried(tried.value), self._carried(tried.failed)
        failure = Failure(tried.condition, catalyst.pretty(tree.handle), value.type)
        return Case(((failed, failure),), value, value.type)

    def _column(self, tree: Tree) -> Argument | None:
        """Return the argument that carries a column of the base; None for what is none.

        Each is looked up in the JVM once: a hundred functions of a few columns ask for them
        a hundred times.
        """
        column = self._definitions.named(tree)
        if column.name != "AttributeReference":
            return None
        return self.contents.column(column.identity, lambda: self._carried(column.handle))

    def _carried(self, handle: CatalystExpression) -> Argument:
        """Return the argument that carries the value of an expression over the base."""
        return self.contents.argument(handle, self._checked)

    def _checked(self, handle: CatalystExpression) -> pa.DataType:
        return self._travelling(catalyst.data_type(handle), lambda: handle)

    def _travelling(self, kind: str, handle: Callable[[], CatalystExpression]) -> pa.DataType:
        """Return the Arrow type of an expression's values; DeclinedError if they cannot travel."""
        if not can_travel(kind):
            detail = f"{catalyst.pretty(handle())} is {kind}"
            raise DeclinedError(DeclineReason.UNSUPPORTED_TYPE, detail)
        return arrow_type(kind, self._settings.time_zone)

    def _require_same_values(self, nest: list[Tree], values: Sequence[Tree]) -> None:
        """Raise DeclinedError where what a function sees depends on who is in its batch.

        By way of pandas, an integer is a float where a NULL is in its batch; an eddy's batches are
        others than Spark's.
        """
        by_way_of_pandas = self._settings.legacy_pandas_conversion
        if nest[0].evaluation_type != FunctionKind.ARROW_BATCHED or not by_way_of_pandas:
            return
        for value in values:
            if value.data_type in _INTEGERS and catalyst.is_nullable(value.handle):
                name = self._definitions.functions.nest(nest)
                detail = f"{name} sees integers as floats in a batch of Spark's that has a NULL"
                raise DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION, detail)

    def _function(
        self, nest: list[Tree], types: tuple[str, ...], keywords: tuple[str | None, ...]
    ) -> tuple[int, pa.DataType]:
        """Return the number of a nest of functions, outermost first, and its Arrow type."""
        return_type = nest[0].data_type
        arrow = self._travelling(return_type, lambda: nest[0].handle)
        name = self._definitions.functions.nest(nest)
        number = nest[0].evaluation_type
        try:
            kind = FunctionKind(number)
        except ValueError:
            detail = f"{name} has Spark's evaluation type {number}"
            raise DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION, detail) from None
        pickled = self._pickles(nest)
        commands = tuple(member.command for member in pickled)
        function = UserFunction(name, kind, commands, types, keywords, return_type)
        if (mark := mark_of(commands[0])) is not None:
            function = called_together(function, mark, self._settings)
            return self.contents.function(function, pickled), arrow
        if (reason := reason_not_to_call(function)) is not None:
            raise DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION, f"{name}: {reason}")
        if not self.takes_chance and (chance := looks_non_deterministic(commands)) is not None:
            raise DeclinedError(DeclineReason.CALLED_FOR_EVERY_ROW, f"{name} {chance}")
        if kind in {FunctionKind.PANDAS_ITERATOR, FunctionKind.ARROW_ITERATOR}:
            state = iterator_is_stateless(commands)
            if state is not None:
                raise DeclinedError(DeclineReason.STATEFUL_ITERATOR, f"{name}: {state}")
        return self.contents.function(function, pickled), arrow

    def _pickles(self, nest: list[Tree]) -> tuple[PickledFunction, ...]:
        """Return the functions of a nest, innermost first; they are fetched once.

        All calls of a registered function have one identity, ``f(f(x))`` that of ``f(x)``.
        """
        identities = tuple(function.result for function in nest)
        if identities not in self._pickled:
            self._pickled[identities] = tuple(function.pickled for function in reversed(nest))
        return self._pickled[identities]


_INTEGERS: Final = frozenset({'"byte"', '"short"', '"integer"', '"long"'})
"""Spark types, as JSON, that pandas has no NULL for."""
