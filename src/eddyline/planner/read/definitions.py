"""What the attributes inside a chain stand for.

The links of a chain refer to one another by attributes: a projection names an
expression, an evaluation names a function's result. Read from the bottom up,
every attribute is a column of the base, an alias, or a result; this file keeps
the last two, so that any expression of the chain can be put in terms of the base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, FilterLink, Link, Tree
from eddyline.planner.read.function_names import FunctionNames
from eddyline.planner.read.throwing import may_throw


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The result of a Python function.

    ``guarded`` if a filter that depends on Python functions stands below its
    evaluation: Spark computes the arguments only for the rows that passed it.
    """

    function: Tree
    guarded: bool


class Definitions:
    """The definitions made by the links of a chain, added from the bottom up."""

    def __init__(self, unstable: Mapping[ExpressionId, Tree]) -> None:
        """``unstable`` are the functions that are not deterministic, by their results."""
        self._unstable = unstable
        self.functions = FunctionNames()
        # The names, not what they stand for: that may not be read yet, and may never be needed.
        self._names: dict[ExpressionId, Tree] = {}
        self._results: dict[ExpressionId, FunctionResult] = {}
        self._dependent: set[ExpressionId] = set()

    @property
    def results(self) -> dict[ExpressionId, FunctionResult]:
        """The results of functions by the attribute that carries them."""
        return self._results

    def define(self, link: Link, *, guarded: bool) -> None:
        """Add what a link defines; a filter defines nothing."""
        if isinstance(link, EvaluationLink):
            for index in link.indexes:
                identity = link.results[index].identity
                self._results[identity] = FunctionResult(link.functions[index], guarded)
                self.functions.add(link.functions[index])
                self._dependent.add(identity)
        elif not isinstance(link, FilterLink):
            for item in link.items:
                if item.name == "Alias":
                    self._names[item.identity] = item
                    if self.is_dependent(item):
                        self._dependent.add(item.identity)

    def define_more(self, link: Link, *, guarded: bool) -> None:
        """Add what a link defines unless it was added before."""
        known = isinstance(link, EvaluationLink) and all(
            link.results[index].identity in self._results for index in link.indexes
        )
        if not known:
            self.define(link, guarded=guarded)

    def known_alias(self, identity: ExpressionId) -> Tree | None:
        """Return the expression that an attribute is a name for; None if it is none."""
        name = self._names.get(identity)
        return None if name is None else name.children[0]

    def alias(self, attribute: Tree) -> Tree:
        """Return the expression that an attribute, which is no result, is a name for."""
        return self._names[attribute.identity].children[0]

    def is_dependent(self, tree: Tree) -> bool:
        """Whether an expression depends on the result of a function of the chain."""
        return not self._dependent.isdisjoint(tree.attributes())

    def depends(self, identity: ExpressionId) -> bool:
        """Whether an attribute depends on the result of a function of the chain."""
        return identity in self._dependent

    def results_in(self, tree: Tree) -> frozenset[ExpressionId]:
        """Return the results of functions that an expression is made of, through aliases."""
        results: set[ExpressionId] = set()
        for identity in tree.attributes():
            if identity in self._results:
                results.add(identity)
            elif (alias := self.known_alias(identity)) is not None:
                results |= self.results_in(alias)
        return frozenset(results)

    def unstable_functions(self, tree: Tree) -> str:
        """Return the names of functions that are not deterministic and that a value depends on."""
        functions = (self._unstable.get(identity) for identity in tree.attributes())
        return ", ".join(
            self.functions.of(function) for function in functions if function is not None
        )

    def may_throw(self, tree: Tree) -> bool:
        """Whether an expression, its aliases looked through, could raise on some row."""
        aliases = (self.known_alias(identity) for identity in tree.attributes())
        return may_throw(tree) or any(
            self.may_throw(alias) for alias in aliases if alias is not None
        )

    def named(self, tree: Tree) -> Tree:
        """Return what an attribute is a name for, also through other names; else the tree."""
        while tree.name == "AttributeReference":
            alias = self.known_alias(tree.identity)
            if alias is None:
                break
            tree = alias
        return tree

    def over_base(self, tree: Tree) -> CatalystExpression:
        """Return an expression that depends on no function in terms of the base."""
        if self._names.keys().isdisjoint(tree.attributes()):
            return tree.handle
        if tree.name == "AttributeReference":
            return self.over_base(self.alias(tree))
        return catalyst.with_operands(tree.handle, [self.over_base(c) for c in tree.children])

    def tree_over_base(self, tree: Tree) -> Tree:
        """Return an expression that depends on no function in terms of the base, read anew."""
        if self._names.keys().isdisjoint(tree.attributes()):
            return tree
        return Tree.of(self.over_base(tree))

    def text(self, tree: Tree) -> str:
        """Return an expression as users would write it, with their functions and columns."""
        text = self._written(tree)
        return text[1:-1] if _is_parenthesized(text) else text

    def _written(self, tree: Tree) -> str:
        """Return an expression as Spark would write it; Spark is asked for what is not done here.

        Terms mostly consist of what is done here: a copy of an expression with functions in place
        of their results, which Spark could write, takes ten calls for each of its nodes.
        """
        if tree.name == "AttributeReference":
            meaning = self._meaning(tree.identity)
            return str(tree.node.fields["name"]) if meaning is None else self._written(meaning)
        if self._calls_by_name(tree):
            return self.functions.call(tree, [self._written(child) for child in tree.children])
        if tree.name in {"And", "Or"}:
            left, right = map(self._written, tree.children)
            return f"({left} {tree.name.upper()} {right})"
        if tree.name == "Not":
            return f"(NOT {self._written(tree.children[0])})"
        return self.functions.put_into(catalyst.pretty(self._shown(tree)), self._called(tree))

    def _called(self, tree: Tree) -> Iterator[Tree]:
        """Yield the functions that are called in an expression, as its text has them."""
        if tree.node.attributes is not None:  # what is below is not read: there is no function
            for identity in tree.attributes():
                if (meaning := self._meaning(identity)) is not None:
                    yield from self._called(meaning)
            return
        if tree.name == "PythonUDF":
            yield tree
        meaning = self._meaning(tree.identity) if tree.name == "AttributeReference" else None
        for part in tree.children if meaning is None else (meaning,):
            yield from self._called(part)

    def _calls_by_name(self, tree: Tree) -> bool:
        """Whether this is a function of columns and of such functions, by whatever names."""
        if tree.name == "AttributeReference":
            meaning = self._meaning(tree.identity)
            return meaning is None or self._calls_by_name(meaning)
        return tree.name == "PythonUDF" and all(map(self._calls_by_name, tree.children))

    def _shown(self, tree: Tree) -> CatalystExpression:
        if tree.name == "AttributeReference":
            meaning = self._meaning(tree.identity)
            return tree.handle if meaning is None else self._shown(meaning)
        # A copy is ten calls into the JVM: none of what stays as it is.
        if all(self._meaning(identity) is None for identity in tree.attributes()):
            return tree.handle
        return catalyst.with_operands(tree.handle, [self._shown(child) for child in tree.children])

    def _meaning(self, identity: ExpressionId) -> Tree | None:
        if (result := self._results.get(identity)) is not None:
            return result.function
        return self.known_alias(identity) or self._unstable.get(identity)


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
