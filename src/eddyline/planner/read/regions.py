"""Regions of a plan: inner joins with the filters, projections and functions among them.

A region is a tree of nodes over inputs. It is read from the bottom up into links, as a
chain is (see :mod:`eddyline.planner.read.chains`); since every attribute of a plan has an identity
of its own, the branches of the tree can stand one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.chains import EvaluationLink, FilterLink, Link, Tree, read_link
from eddyline.planner.read.concurrent_marks import marks_of
from eddyline.planner.read.lookup_leaves import lookup_command

Path = tuple[int, ...]
"""Where a node is: from the top of a region, child after child."""

_INNER: Final = frozenset({"INNER", "CROSS"})


class KeptSide(StrEnum):
    """Which rows of one side a join other than an inner one keeps; the value is Spark's name."""

    ALL = "LEFT OUTER"  # those without a match beside NULLs
    MATCHED = "LEFT SEMI"
    UNMATCHED = "LEFT ANTI"
    MARKED = "EXISTENCE"  # all, with whether they have a match


_MIRRORED: Final = {"RIGHT OUTER": KeptSide.ALL}


@dataclass(frozen=True)
class Region:
    """Links from the bottom up over ``inputs``; joins among them are filters.

    ``paths`` has for each link where its node is; ``joins`` counts the joins.
    """

    top: Plan
    inputs: tuple[Plan, ...]
    links: tuple[Link, ...]
    paths: tuple[Path, ...]
    joins: int


@dataclass(frozen=True)
class OneSided:
    """A join that keeps rows of one side, which is the first input of ``region``.

    The other inputs are those of a region of inner joins on the ``matched`` side.
    """

    kept: KeptSide
    region: Region
    matched: Plan


def read_region(
    top: Plan, boundaries: frozenset[Path] = frozenset(), *, looks_up: bool = False
) -> Region:
    """Read the region at ``top``; nodes at ``boundaries`` are inputs, whatever they are.

    ``looks_up`` says that there may be lookup tables.
    """
    reader = _Reader(boundaries, looks_up=looks_up)
    inputs = reader.read(top, ())
    return Region(top, tuple(inputs), tuple(reader.links), tuple(reader.paths), reader.joins)


def read_one_sided(top: Plan, *, looks_up: bool = False) -> OneSided | None:
    """Read a join that keeps rows of one side; None where there is none."""
    if not catalyst.class_name(top).endswith(".Join"):
        return None
    kind = catalyst.join_type(top)
    kept = _MIRRORED.get(kind) or next((member for member in KeptSide if member == kind), None)
    condition = catalyst.join_condition(top)
    if kept is None or (condition is not None and not catalyst.is_deterministic(condition)):
        return None
    side = 0 if kind in _MIRRORED else 1
    children = catalyst.children(top)
    reader = _Reader(frozenset(), looks_up=looks_up)
    inputs = (children[1 - side], *reader.read(children[side], (side,)))
    links = (*reader.links, _join_link(top, condition))
    region = Region(top, inputs, links, (*reader.paths, ()), reader.joins + 1)
    return OneSided(kept, region, children[side])


class _Reader:
    def __init__(self, boundaries: frozenset[Path], *, looks_up: bool) -> None:
        self._boundaries = boundaries
        self._looks_up = looks_up
        self.links: list[Link] = []
        self.paths: list[Path] = []
        self.joins = 0

    def read(self, plan: Plan, path: Path) -> list[Plan]:
        """Add the links of a node and of those below; return the inputs."""
        if path in self._boundaries:
            return [plan]
        if catalyst.class_name(plan).endswith(".Join"):
            return self._read_join(plan, path)
        link, deterministic = read_link(plan)
        if link is None or not deterministic:
            return [plan]
        # Its values are computed in a block of its own, which is an input here.
        if isinstance(link, EvaluationLink) and any(True for _ in marks_of(link)):
            return [plan]
        child = catalyst.children(plan)[0]
        inputs = self.read(child, (*path, 0))
        # What is native and has nothing of the region below it is the input's own business.
        # Not so where rows are looked up: there Spark runs nothing.
        if (
            len(inputs) == 1
            and inputs[0] is child
            and not isinstance(link, EvaluationLink)
            and not (self._looks_up and lookup_command(child) is not None)
        ):
            return [plan]
        self._add(link, path)
        return inputs

    def _read_join(self, plan: Plan, path: Path) -> list[Plan]:
        condition = catalyst.join_condition(plan)
        stable = condition is None or catalyst.is_deterministic(condition)
        if catalyst.join_type(plan) not in _INNER or not stable:
            return [plan]
        left, right = catalyst.children(plan)
        inputs = [*self.read(left, (*path, 0)), *self.read(right, (*path, 1))]
        self._add(_join_link(plan, condition), path)
        self.joins += 1
        return inputs

    def _add(self, link: Link, path: Path) -> None:
        self.links.append(link)
        self.paths.append(path)


def _join_link(plan: Plan, condition: CatalystExpression | None) -> FilterLink:
    if condition is None:
        return FilterLink(plan, ())
    return FilterLink(plan, tuple(Tree.of(condition).terms("And")))
