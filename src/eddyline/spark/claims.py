"""What of a chain runs in an eddy, and why the rest does not.

The chain is read from the bottom up. Each conjunct of a filter is one of four:

* *native*, over columns of the base only: it goes below the block, where Spark
  runs it first (it mostly is there already);
* *claimed*, over results of Python functions, and wholly understood;
* *left*, over results of Python functions, for a :class:`DeclineReason`;
* *guarded*: native, but it may raise an error and stands above a filter that
  depends on Python, so it must not move.

A left or guarded conjunct is a barrier: users rely on a filter to keep rows
from the functions above it, so no function that is evaluated above a barrier is
claimed together with what is below it. It can be part of a second block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import pyarrow as pa

from eddyline.query.expressions import And, Argument, Call, Expression, Or, calls_in
from eddyline.spark import catalyst
from eddyline.spark.catalyst import CatalystExpression, PickledFunction
from eddyline.spark.chains import (
    Chain,
    EvaluationLink,
    ExpressionId,
    FilterLink,
    ProjectLink,
    Tree,
)
from eddyline.spark.column_types import arrow_type, can_travel
from eddyline.spark.expression_details import ExpressionDetails
from eddyline.spark.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.spark.iterator_state import iterator_is_stateless
from eddyline.spark.throwing import may_throw
from eddyline.spark.translation import CatalystNode, Refusal, translate

MINIMUM_TERMS: Final = 2  # below that there is no order to choose


class DeclineReason(StrEnum):
    """Why a predicate stays where Spark put it."""

    FEWER_THAN_TWO_TERMS = "there are fewer than two terms to reorder"
    NON_DETERMINISTIC = "it is not deterministic"
    UNSUPPORTED_TYPE = "a type cannot be carried to an eddy"
    UNSUPPORTED_FUNCTION_KIND = "the kind of function cannot run in an eddy"
    STATEFUL_ITERATOR = "an iterator function may carry state from row to row"
    UNTRANSLATABLE = "an expression is not understood"
    MAY_THROW = "an expression could raise an error that a filter guards against"
    UNSUPPORTED_SETTING = "a setting of the session changes what functions receive"
    READS_THE_CLOCK = "the stream asks for the current time, which would stand still"


@dataclass(frozen=True, slots=True)
class Left:
    """A predicate over Python functions that was left to Spark: as text, and why."""

    text: str
    reason: DeclineReason
    detail: str = ""

    def __str__(self) -> str:
        """Return one line for people."""
        more = f" ({self.detail})" if self.detail else ""
        return f"{self.text}: {self.reason.value}{more}"


@dataclass(frozen=True)
class Claim:
    """A part of a chain that becomes a filter block.

    ``arguments`` are expressions over the base. ``taken`` are positions (link,
    conjunct) that the block or the filter ``below`` answers. ``calls`` says
    which attributes the block can provide, and as which call. ``environments``
    are the functions with whose settings the block must run.
    """

    predicate: Expression
    texts: tuple[str, ...]
    functions: tuple[UserFunction, ...]
    environments: tuple[PickledFunction, ...]
    arguments: tuple[CatalystExpression, ...]
    below: tuple[CatalystExpression, ...]
    taken: frozenset[tuple[int, int]]
    calls: Mapping[ExpressionId, Call]


@dataclass(frozen=True)
class Verdict:
    """What was decided about the chain up to its first barrier.

    ``barrier`` is the position of the link that stops the claim; what is above
    it can be looked at on its own. ``left`` tells what was declined up to there.
    """

    claim: Claim | None
    left: tuple[Left, ...]
    barrier: int | None


class _DeclinedError(Exception):
    """Ends the translation of one conjunct."""

    def __init__(self, reason: DeclineReason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def judge(chain: Chain, settings: SessionSettings) -> Verdict:
    """Decide about a chain, from its lowest link to its first barrier."""
    return _Judgement(chain, settings).verdict()


@dataclass(frozen=True)
class _Result:
    """The result of a Python function; ``guarded`` if a Python filter stands below it."""

    function: Tree
    guarded: bool


@dataclass
class _Contents:
    """Arguments and functions of the block so far; they only ever grow at the end."""

    arguments: list[tuple[CatalystExpression, Argument]] = field(default_factory=list)
    functions: dict[UserFunction, int] = field(default_factory=dict)
    environments: list[PickledFunction] = field(default_factory=list)

    def copy(self) -> _Contents:
        return _Contents([*self.arguments], {**self.functions}, [*self.environments])


class _Judgement:
    def __init__(self, chain: Chain, settings: SessionSettings) -> None:
        self._chain = chain
        self._settings = settings
        self._contents = _Contents()
        self._aliases: dict[ExpressionId, Tree] = {}
        self._results: dict[ExpressionId, _Result] = {}
        self._dependent: set[ExpressionId] = set()
        self._pickled: dict[ExpressionId, list[PickledFunction]] = {}
        self._guarded = False

    # ------------------------------------------------ the pass from the bottom up

    def verdict(self) -> Verdict:
        claimed: dict[Expression, str] = {}
        taken: set[tuple[int, int]] = set()
        below: list[CatalystExpression] = []
        left: list[Left] = []
        barrier: int | None = None
        for position, link in enumerate(self._chain.links):
            if not isinstance(link, FilterLink):
                self._define(link)
                continue
            depends = False
            for index, conjunct in enumerate(link.conjuncts):
                if not self._is_dependent(conjunct):
                    if unstable := self._unstable_in(conjunct):
                        left.append(self._left(conjunct, DeclineReason.NON_DETERMINISTIC, unstable))
                    if self._guarded and self._may_throw(conjunct):
                        barrier = position
                    else:
                        below.append(self._over_base(conjunct))
                        taken.add((position, index))
                    continue
                depends = True
                before = self._contents.copy()
                try:
                    expression = self._expression(conjunct, guarded=True)
                except _DeclinedError as declined:
                    self._contents = before
                    left.append(self._left(conjunct, declined.reason, declined.detail))
                    barrier = position
                else:
                    claimed.setdefault(expression, self._text(conjunct))
                    taken.add((position, index))
            self._guarded = self._guarded or depends
            if barrier is not None:
                break
        if not _worth_routing(tuple(claimed)):
            few = DeclineReason.FEWER_THAN_TWO_TERMS
            left.extend(Left(text, few) for text in claimed.values())
            return Verdict(None, tuple(left), barrier)
        predicate = next(iter(claimed)) if len(claimed) == 1 else And(tuple(claimed))
        claim = Claim(
            predicate,
            tuple(claimed.values()),
            tuple(self._contents.functions),
            tuple(self._contents.environments),
            tuple(handle for handle, _ in self._contents.arguments),
            tuple(below),
            frozenset(taken),
            self._provided(predicate),
        )
        return Verdict(claim, tuple(left), barrier)

    def _define(self, link: ProjectLink | EvaluationLink) -> None:
        if isinstance(link, EvaluationLink):
            for index in link.indexes:
                identity = link.results[index].identity
                self._results[identity] = _Result(link.functions[index], self._guarded)
                self._dependent.add(identity)
            return
        for item in link.items:
            if item.name == "Alias":
                self._aliases[item.identity] = item.children[0]
                if self._is_dependent(item):
                    self._dependent.add(item.identity)

    def _provided(self, predicate: Expression) -> dict[ExpressionId, Call]:
        """Return the results anywhere in the chain that are calls of the predicate."""
        for link in self._chain.links:  # above a barrier nothing is defined yet
            if not isinstance(link, FilterLink):
                self._define(link)
        wanted = frozenset(calls_in(predicate))
        provided: dict[ExpressionId, Call] = {}
        for identity, result in self._results.items():
            before = self._contents.copy()
            try:
                call = self._call(_Result(result.function, guarded=False))
            except _DeclinedError:
                continue
            finally:
                self._contents = before
            if call in wanted:
                provided[identity] = call
        return provided

    # ------------------------------------------------ native parts

    def _is_dependent(self, tree: Tree) -> bool:
        return not self._dependent.isdisjoint(tree.attributes())

    def _unstable_in(self, tree: Tree) -> str:
        names = (self._chain.unstable.get(identity) for identity in tree.attributes())
        return next((f"{name} is not" for name in names if name is not None), "")

    def _may_throw(self, tree: Tree) -> bool:
        definitions = (self._aliases.get(identity) for identity in tree.attributes())
        return may_throw(tree) or any(
            self._may_throw(definition) for definition in definitions if definition is not None
        )

    def _over_base(self, tree: Tree, *, calls_too: bool = False) -> CatalystExpression:
        """Return the expression with every alias replaced by what it stands for.

        With ``calls_too`` also the results of functions, for showing.
        """
        if tree.name == "AttributeReference":
            if (definition := self._aliases.get(tree.identity)) is not None:
                return self._over_base(definition, calls_too=calls_too)
            if calls_too and (result := self._results.get(tree.identity)) is not None:
                return self._over_base(result.function, calls_too=True)
            return tree.handle
        known = self._results.keys() | self._aliases.keys() if calls_too else self._aliases.keys()
        if known.isdisjoint(tree.attributes()):
            return tree.handle
        operands = [self._over_base(child, calls_too=calls_too) for child in tree.children]
        return catalyst.with_operands(tree.handle, operands)

    def _text(self, tree: Tree) -> str:
        text = catalyst.pretty(self._over_base(tree, calls_too=True))
        return text[1:-1] if _is_parenthesized(text) else text

    def _left(self, tree: Tree, reason: DeclineReason, detail: str) -> Left:
        return Left(self._text(tree), reason, detail)

    # ------------------------------------------------ from Catalyst to expressions

    def _expression(self, tree: Tree, *, guarded: bool) -> Expression:
        """Translate an expression that depends on Python functions, or a literal."""

        def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self._leaf(tree.at(path), guarded=guarded)

        details = ExpressionDetails(tree)
        answer = translate(tree.node, leaf, details, time_zone=self._settings.time_zone)
        if isinstance(answer, Refusal):
            raise _DeclinedError(DeclineReason.UNTRANSLATABLE, answer.reason)
        return answer

    def _leaf(self, tree: Tree, *, guarded: bool) -> Expression | None:
        """Return what an expression is to the block; None if its parts are to be asked."""
        if not self._is_dependent(tree):
            if tree.name == "Literal":
                return None
            return self._argument(self._over_base(tree), throws=guarded and self._may_throw(tree))
        if tree.name == "AttributeReference":
            if (result := self._results.get(tree.identity)) is not None:
                return self._call(result)
            return self._expression(self._aliases[tree.identity], guarded=guarded)
        if tree.name in {"And", "Or"}:
            return self._connected(tree, guarded=guarded)
        return None

    def _connected(self, tree: Tree, *, guarded: bool) -> Expression:
        """Translate a nest of AND or of OR: all of its native terms become one argument."""
        terms = list(tree.terms(tree.name))
        native = [term for term in terms if not self._is_dependent(term)]
        parts: list[Expression] = []
        if native:
            combine = catalyst.conjunction if tree.name == "And" else catalyst.disjunction
            handle = combine([self._over_base(term) for term in native])
            throws = guarded and any(self._may_throw(term) for term in native)
            parts.append(self._argument(handle, throws=throws))
        for term in terms:
            if self._is_dependent(term):
                parts.append(self._expression(term, guarded=guarded))
        return And(tuple(parts)) if tree.name == "And" else Or(tuple(parts))

    def _argument(self, handle: CatalystExpression, *, throws: bool) -> Argument:
        if throws:
            raise _DeclinedError(DeclineReason.MAY_THROW, catalyst.pretty(handle))
        for known, argument in self._contents.arguments:
            if catalyst.same_value(known, handle):
                return argument
        kind = catalyst.data_type(handle)
        argument = Argument(len(self._contents.arguments), self._arrow(kind, handle))
        self._contents.arguments.append((handle, argument))
        return argument

    def _arrow(self, kind: str, handle: CatalystExpression) -> pa.DataType:
        if not can_travel(kind):
            detail = f"{catalyst.pretty(handle)} is {kind}"
            raise _DeclinedError(DeclineReason.UNSUPPORTED_TYPE, detail)
        return arrow_type(kind, self._settings.time_zone)

    def _call(self, result: _Result) -> Call:
        outermost = innermost = result.function
        names = [str(outermost.node.fields["name"])]
        while [child.name for child in innermost.children] == ["PythonUDF"]:
            innermost = innermost.children[0]
            names.append(str(innermost.node.fields["name"]))
        arguments: list[Expression] = []
        types: list[str] = []
        keywords: list[str | None] = []
        for child in innermost.children:
            keyword = str(child.node.fields["key"]) if child.name == "NamedArgumentExpression" else None
            value = child.children[0] if keyword is not None else child
            kind = catalyst.data_type(value.handle)
            self._arrow(kind, value.handle)
            arguments.append(self._function_argument(value, guarded=result.guarded))
            types.append(kind)
            keywords.append(keyword)
        return_type = catalyst.data_type(outermost.handle)
        arrow = self._arrow(return_type, outermost.handle)
        number = self._function(outermost, names, tuple(types), tuple(keywords), return_type)
        return Call(number, tuple(arguments), arrow)

    def _function_argument(self, value: Tree, *, guarded: bool) -> Expression:
        if not self._is_dependent(value):  # literals too: Spark hands them in as columns
            handle = self._over_base(value)
            return self._argument(handle, throws=guarded and self._may_throw(value))
        return self._expression(value, guarded=guarded)

    def _function(
        self,
        outermost: Tree,
        names: list[str],
        types: tuple[str, ...],
        keywords: tuple[str | None, ...],
        return_type: str,
    ) -> int:
        number = int(str(outermost.node.fields["evalType"]))
        try:
            function_kind = FunctionKind(number)
        except ValueError:
            detail = f"{names[0]} has Spark's evaluation type {number}"
            raise _DeclinedError(DeclineReason.UNSUPPORTED_FUNCTION_KIND, detail) from None
        pickled = self._pickles(outermost)
        function = UserFunction(
            "∘".join(names),
            function_kind,
            tuple(each.command for each in pickled),
            types,
            keywords,
            return_type,
        )
        if function.kind in {FunctionKind.PANDAS_ITERATOR, FunctionKind.ARROW_ITERATOR}:
            state = iterator_is_stateless(function)
            if state is not None:
                raise _DeclinedError(DeclineReason.STATEFUL_ITERATOR, state)
        known = self._contents.functions.get(function)
        if known is not None:
            return known
        self._contents.environments.extend(pickled)
        return self._contents.functions.setdefault(function, len(self._contents.functions))

    def _pickles(self, outermost: Tree) -> list[PickledFunction]:
        """Fetch the functions of a nest ``f(g(x))``, innermost first, once."""
        identity = outermost.result
        if identity not in self._pickled:
            tree, found = outermost, [catalyst.pickled_function(outermost.handle)]
            while [child.name for child in tree.children] == ["PythonUDF"]:
                tree = tree.children[0]
                found.insert(0, catalyst.pickled_function(tree.handle))
            self._pickled[identity] = found
        return self._pickled[identity]


def _worth_routing(conjuncts: tuple[Expression, ...]) -> bool:
    """Whether there are terms that differ in what must be computed for them."""
    needs = [frozenset(calls_in(term)) for whole in conjuncts for term in _terms(whole)]
    return len(set(needs)) >= MINIMUM_TERMS


def _terms(expression: Expression) -> list[Expression]:
    if isinstance(expression, And | Or):
        return [term for each in expression.terms for term in _terms(each)]
    return [expression]


def _is_parenthesized(text: str) -> bool:
    """Whether the first parenthesis of a text closes at its very end.

    >>> _is_parenthesized("(a > 1)"), _is_parenthesized("(a) > (b)")
    (True, False)
    """
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text.startswith("(") and position == len(text) - 1
    return False
