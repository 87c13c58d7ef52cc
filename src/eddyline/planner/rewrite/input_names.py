"""What the inputs of a join are called, and the predicates over them where columns share names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from eddyline import catalyst
from eddyline.expressions import Argument, Comparison, ComparisonOperator, Expression
from eddyline.planner.claim.join_inputs import Input


def told_apart(names: Sequence[str], inputs: Sequence[Input]) -> list[str]:
    """Return a name for each input: its table's or file's, its alias, or its number.

    ``names`` are those of tables and files, empty where there is none. Where several inputs are of
    one table, each has its alias; where that does not tell them apart either, a number follows.
    """
    counted = Counter(names)
    found = []
    for number, (name, each) in enumerate(zip(names, inputs, strict=True), start=1):
        if not name or counted[name] > 1:
            name = _alias(each) or name  # noqa: PLW2901 - the same input
        found.append(name or f"input {number}")
    taken: Counter[str] = Counter()
    for place, name in enumerate(found):
        taken[name] += 1
        if taken[name] > 1:
            found[place] = f"{name} ({taken[name]})"
    return found


def _alias(each: Input) -> str:
    """Return the alias under which the query knows an input; empty where it has none."""
    return catalyst.qualifier(each.handles[0]).rpartition(".")[2] if each.handles else ""


def qualified(
    predicate: Expression, text: str, inputs: Sequence[str], columns: Sequence[Sequence[str]]
) -> str:
    """Return a predicate's text such that it says of which input its columns are.

    That is said of both sides of a key, and of columns that several inputs have by one name;
    ``columns`` are the names of each input's. Arguments count through all inputs.
    """
    places = [(name, column) for name, own in zip(inputs, columns, strict=True) for column in own]
    owners: dict[str, set[str]] = {}
    for name, column in places:
        owners.setdefault(column, set()).add(name)
    match predicate:
        case Comparison(ComparisonOperator.EQUAL, Argument(index=left), Argument(index=right)):
            return " = ".join(".".join(places[index]) for index in (left, right))
    meant: dict[str, list[str]] = {}
    for name, column in (places[index] for index in _arguments(predicate)):
        if len(owners[column]) > 1 and column.isidentifier():
            meant.setdefault(column, []).append(f"{name}.{column}")
    for column, full in meant.items():
        pieces = re.split(rf"(?<![\w.]){column}(?![\w(])", text)
        if len(set(full)) == 1:
            text = full[0].join(pieces)
        elif len(pieces) == len(full) + 1:  # else nobody knows which is which
            text = pieces[0] + "".join(map(str.__add__, full, pieces[1:]))
    return text


def _arguments(predicate: Expression) -> Iterator[int]:
    """Yield the arguments of an expression by number, as its text has them."""
    for node in predicate.walk():
        if isinstance(node, Argument):
            yield node.index
