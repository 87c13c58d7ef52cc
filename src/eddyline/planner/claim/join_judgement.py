"""What of a region runs in an eddy over joins, and why nothing does where it does not.

Every conjunct of the region's filters and join conditions is one of three:

* *native over one input*: it goes below the block, into that input, where Spark runs it
  (it mostly is there already);
* *understood*: an equality of two inputs, or a predicate over columns of several inputs or
  over results of Python functions, whose parts over one input become columns of that input;
* *not understood*: then the region ends below the node that holds it.

An equality whose one side a function makes is no key that an index knows: every row of one input
would meet every row of the other, or all those with which it shares another key, say the number of
pages. So the function is left to the input, as in plain Spark, and its result is then a column of
that like any other. With such a function as a predicate, a join of 57,000 rows by 40 numbers of
pages and by what it made of each row took six times as long as in Spark. In a region with rows that
are looked up it is left only where no other key relates the two inputs: below the block it could
keep from a lookup what binds it.

Columns of an input are computed for all of its rows, before any join or predicate has
dropped some, so that an expression that may raise an error must not become one.

For an input whose rows are looked up Spark computes nothing below the block: its columns are
columns of the table, and what is native over it goes above the block. Where that sets a column
equal to constants, these become an input of their own, which binds the lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TypeAlias

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import SessionSettings
from eddyline.blocks.lookup_table import LookupTable
from eddyline.blocks.nests import with_shared_parts
from eddyline.catalyst import CatalystExpression
from eddyline.expressions import (
    Argument,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    calls_in,
    with_children,
)
from eddyline.planner.claim.bindings import (
    end_below_values,
    is_bound,
    without_what_equalities_say,
)
from eddyline.planner.claim.column_constants import Constants, constants_implied, constants_in
from eddyline.planner.claim.join_claim import InputColumn, JoinClaim
from eddyline.planner.claim.join_terms import Inputs, JoinTerms
from eddyline.planner.claim.values_above import Needed, ValuesAbove, values_above
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, FilterLink, Tree
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.needs import NeedOf, unknown, without
from eddyline.planner.read.regions import KeptSide, OneSided, Path, Region

NONE: Mapping[int, LookupTable] = MappingProxyType({})

_Outputs: TypeAlias = list[tuple[CatalystExpression, Expression]]


def claim_region(
    region: Region,
    settings: SessionSettings,
    looked_up: Mapping[int, LookupTable] = NONE,
    needs: NeedOf = unknown,
    *,
    whole: bool = False,
    values: bool = True,
) -> JoinClaim:
    """Claim a region as a whole; DeclinedError names the node that stands in the way.

    ``looked_up`` are the inputs that are lookup tables, by number; ``needs`` says for which rows
    the results of functions are needed above these. Where it is claimed as a
    ``whole``, nothing is left to Spark above the block. Without ``values``, functions that no
    predicate calls are left to it.
    """
    return _Judgement(region, settings, looked_up, needs, whole=whole, values=values).claim()


def claim_matches(
    join: OneSided, settings: SessionSettings, looked_up: Mapping[int, LookupTable]
) -> JoinClaim:
    """Claim the matches of the rows that a join keeps, none of which may be dropped.

    The claim's output is what the join has of the other side. DeclinedError says what stands in
    the way.
    """
    return _JudgementOfMatches(join, settings, looked_up).claim()


class _Judgement:
    def __init__(
        self,
        region: Region,
        settings: SessionSettings,
        looked_up: Mapping[int, LookupTable],
        needs: NeedOf = unknown,
        *,
        whole: bool = False,
        values: bool = True,
    ) -> None:
        self._needs = needs
        self._whole = whole
        self._values = values
        self._region = region
        self._settings = settings
        self._tables = looked_up
        self._looked_up = sum(1 << number for number in looked_up)
        self._definitions = Definitions({})
        self._inputs = Inputs(region, self._definitions)
        self._terms = JoinTerms(
            self._definitions, settings, self._inputs, self._looked_up, whole=whole
        )
        self._above: list[Tree] = []
        self._constants: list[Constants] = []
        self._left: list[Tree] = []  # conditions on a lookup table that are more than constants
        self._below: list[list[CatalystExpression]] = [[] for _ in region.inputs]
        self._predicates: dict[Expression, str] = {}
        self._related = RelatedInputs(self._inputs, self._terms)

    def claim(self) -> JoinClaim:
        for link, path in zip(self._region.links, self._region.paths, strict=True):
            if not isinstance(link, FilterLink):
                self._definitions.define(link, guarded=True)
                continue
            for conjunct in link.conjuncts:
                try:
                    self._take(conjunct)
                except DeclinedError as declined:
                    text = self._definitions.text(conjunct)
                    raise declined.of(text, path) from None
        self._leave_made_keys()
        self._take_implied()
        items, needed = ((), {}) if self._whole else self._top()
        left = without_what_equalities_say(
            self._above, self._predicates, self._constants, self._terms.contents.arguments
        )
        above = tuple(self._without_aliases(tree, needed) for tree in left)
        later = () if self._values or self._whole else self._values_above(needed, left)
        outputs = [(handle, self._value(tree_id, handle)) for tree_id, handle in needed.items()]
        values, outputs = self._whole_output() if self._whole else ((), outputs)
        contents = self._terms.contents
        columns = tuple(
            InputColumn(self._input_of_argument(handle), handle, next(attributes, None) is None)
            for handle in contents.arguments
            for attributes in [Tree.of(handle).attributes()]
        )
        return JoinClaim(
            tuple(self._predicates),
            tuple(self._predicates.values()),
            with_shared_parts(contents.functions),
            contents.environments,
            columns,
            tuple(map(tuple, self._below)),
            tuple(outputs),
            items,
            above,
            self._tables,
            tuple(self._constants),
            values,
            later=later,
        )

    def _values_above(self, needed: Needed, above: Sequence[Tree]) -> tuple[ValuesAbove, ...]:
        asked = frozenset(call for predicate in self._predicates for call in calls_in(predicate))
        kept = frozenset[ExpressionId]().union(*map(self._definitions.results_in, above))
        links, definitions = self._region.links, self._definitions
        return values_above(links, needed, asked, kept, definitions, self._terms, self._expanded)

    def _take(self, conjunct: Tree) -> None:
        mask = self._inputs.mask(conjunct)
        if not mask & self._looked_up or self._definitions.is_dependent(conjunct):
            self._take_in(conjunct)
        elif self._whole:
            if mask & (mask - 1) or not self._take_constants(conjunct):
                self._take_predicate(conjunct)
        elif mask & (mask - 1) or self._equates_columns(conjunct):
            end_below_values(conjunct, self._region, self._tables, self._definitions, self._terms)
            mark = self._terms.contents.mark()
            try:
                self._take_in(conjunct)
            except DeclinedError:
                self._terms.back_to(mark)
                self._above.append(conjunct)
        elif not self._take_constants(conjunct):
            self._above.append(conjunct)

    def _equates_columns(self, conjunct: Tree) -> bool:
        """Whether a condition sets two columns equal: values of one are those of the other."""
        return conjunct.name == "EqualTo" and all(
            self._inputs.mask(child) and self._terms.is_native(child) for child in conjunct.children
        )

    def _take_constants(self, conjunct: Tree) -> bool:
        """Take a condition on a lookup table that gives values and says no more."""
        constants = self._constants_in(conjunct)
        if constants is None:
            self._left.append(conjunct)
            return False
        self._constants.append(constants)
        return True

    def _take_implied(self) -> None:
        """Take the values given by conditions that say more, where no join gives any."""
        for conjunct in self._left:
            if self._related.related_to(self._inputs.mask(conjunct)):
                continue
            for column, constants in constants_implied(conjunct, self._constants_in).items():
                tree = Tree.of(self._terms.contents.arguments[column.index])
                if is_bound(tree, self._region, self._tables, self._definitions):
                    self._constants.append(constants)

    def _constants_in(self, conjunct: Tree) -> Constants | None:
        """Return the values that a condition on a lookup table gives for a column of it."""
        mark = self._terms.contents.mark()
        try:
            constants = constants_in(self._terms.expression(conjunct, guarded=True))
        except DeclinedError:
            constants = None
        if constants is None:
            self._terms.back_to(mark)
        return constants

    def _take_in(self, conjunct: Tree) -> None:
        if self._terms.is_native(conjunct):
            if self._definitions.may_throw(conjunct):
                text = self._definitions.text(conjunct)
                raise DeclinedError(DeclineReason.MAY_THROW, text)
            mask = self._inputs.mask(conjunct)
            self._below[max(mask.bit_length() - 1, 0)].append(self._definitions.over_base(conjunct))
            return
        self._take_predicate(conjunct)

    def _take_predicate(self, conjunct: Tree) -> None:
        self._related.note(conjunct)
        text = self._definitions.text(conjunct)
        expression = self._null_safe_key(conjunct) or self._terms.expression(conjunct, guarded=True)
        expression = self._terms.evaluable(expression)
        self._predicates.setdefault(expression, text)

    def _leave_made_keys(self) -> None:
        """Leave a function to the input whose key it makes."""
        for conjunct in self._related.keys_of_functions(alone=bool(self._looked_up)):
            for result in sorted(self._definitions.results_in(conjunct)):
                text = self._definitions.text(self._definitions.results[result].function)
                declined = DeclinedError(DeclineReason.JOIN_KEY, self._definitions.text(conjunct))
                raise declined.of(text, self._path_of(result))

    def _null_safe_key(self, conjunct: Tree) -> Expression | None:
        """Return ``a <=> b`` over two inputs as an equality of structs, which an index finds.

        Rows are looked up by values alone: there it is an equality of values, where one of them is
        never NULL.
        """
        sides = conjunct.children
        if conjunct.name != "EqualNullSafe" or not all(map(self._terms.is_native, sides)):
            return None
        if self._inputs.mask(conjunct) & self._looked_up:
            if all(catalyst.is_nullable(side.handle) for side in sides):
                return None
            left, right = (self._terms.expression(side, guarded=True) for side in sides)
        else:
            left, right = (
                self._terms.native_column(side, catalyst.in_struct, guarded=True) for side in sides
            )
        return Comparison(ComparisonOperator.EQUAL, left, right)

    def _top(self) -> tuple[tuple[CatalystExpression, ...], dict[ExpressionId, CatalystExpression]]:
        """Return the expressions of the region's output, and the attributes that they need."""
        needed: dict[ExpressionId, CatalystExpression] = {}
        items = []
        for attribute in self._wanted():
            tree = Tree.of(attribute)
            expanded = self._expanded(tree, needed)
            items.append(
                attribute if expanded is None else catalyst.attribute_like(attribute, expanded)
            )
        return tuple(items), needed

    def _wanted(self) -> Sequence[CatalystExpression]:
        return catalyst.outputs(self._region.top)

    def _whole_output(self) -> tuple[tuple[Expression, ...], _Outputs]:
        """Return the values of the region's output, and the columns and results in them.

        Columns are numbered among the latter.
        """
        needed: dict[Expression, CatalystExpression] = {}

        def leaf(expression: Expression) -> Expression:
            if isinstance(expression, Argument):
                needed.setdefault(expression, self._terms.contents.arguments[expression.index])
            elif isinstance(expression, Call):
                needed.setdefault(expression, self._terms.function_of(expression).handle)
            else:
                return with_children(expression, leaf)
            return Argument(list(needed).index(expression), expression.type)

        values = []
        for attribute in catalyst.outputs(self._region.top):
            tree = Tree.of(attribute)
            alias = self._definitions.known_alias(tree.identity)
            if alias is None:
                value: Expression = self._value(tree.identity, attribute)
            else:
                try:
                    value = self._terms.evaluable(self._terms.expression(alias, guarded=True))
                except DeclinedError as declined:
                    raise declined.of(self._definitions.text(alias)) from None
            values.append(leaf(value))
        return tuple(values), [(handle, value) for value, handle in needed.items()]

    def _expanded(
        self, tree: Tree, needed: dict[ExpressionId, CatalystExpression]
    ) -> CatalystExpression | None:
        """Return an attribute's value without aliases; None where it is its own value."""
        alias = self._definitions.known_alias(tree.identity)
        if alias is None:
            needed[tree.identity] = tree.handle
            return None
        return self._without_aliases(alias, needed)

    def _without_aliases(
        self, tree: Tree, needed: dict[ExpressionId, CatalystExpression]
    ) -> CatalystExpression:
        if tree.name == "AttributeReference":
            expanded = self._expanded(tree, needed)
            return tree.handle if expanded is None else expanded
        if not tree.children:
            return tree.handle
        children = [self._without_aliases(child, needed) for child in tree.children]
        return catalyst.with_operands(tree.handle, children)

    def _value(self, identity: ExpressionId, handle: CatalystExpression) -> Expression:
        result = self._definitions.results.get(identity)
        if result is not None:
            try:
                call = self._terms.evaluable(self._terms.call(result))
                sure = without(self._needs(identity), lambda c: c.sure)
                return self._terms.where_needed(call, sure)
            except DeclinedError as declined:
                text = self._definitions.text(result.function)
                raise declined.of(text, self._path_of(identity)) from None
        try:
            return self._terms.base_column(handle)
        except DeclinedError as declined:
            # The whole region is off: its top must be able to pass this column on.
            raise declined.of(catalyst.pretty(handle)) from None

    def _path_of(self, result: ExpressionId) -> Path:
        """Return where the function that gives a result is evaluated."""
        for link, path in zip(self._region.links, self._region.paths, strict=True):
            if isinstance(link, EvaluationLink) and result in {r.identity for r in link.results}:
                return path
        return ()

    def _input_of_argument(self, handle: CatalystExpression) -> int:
        masks = [self._inputs.of_attribute(identity) for identity in Tree.of(handle).attributes()]
        return next((mask for mask in masks if mask is not None), 0)


class _JudgementOfMatches(_Judgement):
    """All conditions are the block's: nothing may be dropped below it, nor above it."""

    def __init__(
        self, join: OneSided, settings: SessionSettings, looked_up: Mapping[int, LookupTable]
    ) -> None:
        super().__init__(join.region, settings, looked_up)
        self._kept = join.kept

    def _take(self, conjunct: Tree) -> None:
        mask = self._inputs.mask(conjunct)
        native = self._terms.is_native(conjunct)
        if native and mask <= 1:  # says which rows of the first input have any match
            column = self._terms.native_column(conjunct, lambda handle: handle, guarded=True)
            self._predicates.setdefault(column, self._definitions.text(conjunct))
            return
        if native and not mask & self._looked_up:
            self._take_in(conjunct)
            return
        if mask & (mask - 1) or not self._take_constants(conjunct):
            self._take_predicate(conjunct)

    def _wanted(self) -> Sequence[CatalystExpression]:
        if self._kept is not KeptSide.ALL:
            return []
        attributes = super()._wanted()
        return [attribute for attribute in attributes if self._inputs.mask(Tree.of(attribute)) != 1]


class RelatedInputs:
    """The inputs that native keys relate, and the keys that functions make.

    Inputs are masks: bit number i is input i.
    """

    def __init__(self, inputs: Inputs, terms: JoinTerms) -> None:
        self._inputs = inputs
        self._terms = terms
        self._related: list[int] = []
        self._made_keys: list[tuple[Tree, int]] = []

    def note(self, conjunct: Tree) -> None:
        """Remember what an equality of two inputs does for joining them."""
        if conjunct.name not in {"EqualTo", "EqualNullSafe"}:
            return
        masks = [self._inputs.mask(child) for child in conjunct.children]
        if any(mask.bit_count() != 1 for mask in masks) or masks[0] == masks[1]:
            return
        both = masks[0] | masks[1]
        if all(self._terms.is_native(child) for child in conjunct.children):
            apart = [mask for mask in self._related if not mask & both]
            self._related = [*apart, reduce(or_, self.related_to(both), both)]
        else:
            self._made_keys.append((conjunct, both))

    def related_to(self, inputs: int) -> list[int]:
        """Return the groups of related inputs that hold any of these."""
        return [mask for mask in self._related if mask & inputs]

    def keys_of_functions(self, *, alone: bool) -> Iterator[Tree]:
        """Yield equalities whose one side a function makes.

        Those ``alone`` are the ones of inputs that no other key relates.
        """
        for conjunct, both in self._made_keys:
            if not alone or not any(mask & both == both for mask in self._related):
                yield conjunct
