"""Terms of a region of joins: which of their parts are columns of which input."""

from __future__ import annotations

from typing import Final

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import SessionSettings
from eddyline.expressions import Expression
from eddyline.planner.claim.term_translation import Terms
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.regions import Region

_NORMALIZED: Final = frozenset({"KnownFloatingPointNormalized", "NormalizeNaNAndZero"})


class Inputs:
    """Which inputs an expression needs."""

    def __init__(self, region: Region, definitions: Definitions) -> None:
        self._definitions = definitions
        self._input_of = {
            number: position
            for position, plan in enumerate(region.inputs)
            for number in catalyst.output_numbers(plan)
        }
        self._masks: dict[ExpressionId, int] = {}

    def of_attribute(self, identity: ExpressionId) -> int | None:
        """Return the input that an attribute is a column of; None if it is no input's."""
        return self._input_of.get(identity[0])

    def mask(self, tree: Tree) -> int:
        """Return the inputs whose columns an expression needs, aliases and results followed."""
        mask = 0
        for identity in tree.attributes():
            mask |= self._mask_of(identity)
        return mask

    def _mask_of(self, identity: ExpressionId) -> int:
        known = self._masks.get(identity)
        if known is None:
            position = self._input_of.get(identity[0])
            if position is not None:
                known = 1 << position
            elif (alias := self._definitions.known_alias(identity)) is not None:
                known = self.mask(alias)
            else:
                known = self.mask(self._definitions.results[identity].function)
            self._masks[identity] = known
        return known


class JoinTerms(Terms):
    """Terms whose native parts belong to one input each."""

    def __init__(
        self,
        definitions: Definitions,
        settings: SessionSettings,
        inputs: Inputs,
        looked_up: int,
        *,
        whole: bool,
    ) -> None:
        super().__init__(definitions, settings)
        # Spark draws once for each row of an input, a block perhaps for each pair of rows. Where
        # rows are looked up there is only the block.
        self.takes_chance = bool(looked_up)
        self._inputs = inputs
        self._looked_up = looked_up
        self._whole = whole

    def is_native(self, tree: Tree) -> bool:
        """Whether an expression is a column of one input; of a lookup table as it is.

        What may fail is not computed before it is known to be wanted, where nothing else could
        compute it.
        """
        mask = self._inputs.mask(tree)
        if mask.bit_count() > 1 or self._definitions.is_dependent(tree):
            return False
        if self._whole and not self._is_column(tree) and self._definitions.may_throw(tree):
            return False
        return not mask & self._looked_up or self._is_column(tree)

    def groups(self, native: list[Tree]) -> list[list[Tree]]:
        """Return native terms by the input that they are over; each of a lookup table alone."""
        groups: dict[int, list[Tree]] = {}
        alone: list[list[Tree]] = []
        for tree in native:
            mask = self._inputs.mask(tree)
            if mask & self._looked_up:
                alone.append([tree])
            else:
                groups.setdefault(mask, []).append(tree)
        return [*groups.values(), *alone]

    def _leaf(self, tree: Tree, *, guarded: bool) -> Expression | None:
        """Return what an expression is to the block.

        Spark makes one of both zeros, and of all NaN, before it joins by floats. Here keys are
        compared so anyway, and nothing could change the values of a lookup table before.
        """
        if tree.name in _NORMALIZED and self._inputs.mask(tree) & self._looked_up:
            return self.expression(tree.children[0], guarded=guarded)
        return super()._leaf(tree, guarded=guarded)

    def _attempted(self, tree: Tree) -> Expression:
        """Leave what may raise to Spark, whose errors have classes of their own: mostly a key."""
        raise DeclinedError(DeclineReason.MAY_THROW, self._definitions.text(tree))

    def _is_column(self, tree: Tree) -> bool:
        return self._definitions.named(tree).name == "AttributeReference"
