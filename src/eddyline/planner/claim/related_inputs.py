"""Which inputs of a region equalities relate, and by what keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from eddyline.planner.claim.join_terms import Inputs, JoinTerms
from eddyline.planner.read.chains import Tree


class RelatedInputs:
    """The inputs that native keys relate, and the keys that functions make.

    Inputs are masks: bit number i is input i.
    """

    def __init__(self, inputs: Inputs, terms: JoinTerms) -> None:
        """Start with inputs that nothing relates."""
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
        """Return the groups of inputs, related among themselves, of which these are some."""
        return [mask for mask in self._related if mask & inputs]

    def keys_of_functions_alone(self) -> Iterator[Tree]:
        """Yield equalities whose one side a function makes, of inputs that no other key relates."""
        for conjunct, both in self._made_keys:
            if not any(mask & both == both for mask in self._related):
                yield conjunct
