"""Lookup tables of a block: their access methods, and what a query lacks to use any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.decline import DeclineReason, EndsBelowError
from eddyline.blocks.lookup_table import BlockLookup, LookupTable
from eddyline.catalyst import CatalystExpression
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation, Lookup
from eddyline.errors import NotExecutableError, UnboundLookupError
from eddyline.expressions import Argument, Comparison, ComparisonOperator, Expression
from eddyline.planner.claim.column_constants import Constants
from eddyline.planner.claim.join_terms import JoinTerms
from eddyline.planner.read.chains import ProjectLink, Tree
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.regions import Region


def looked_up_relation(
    table: LookupTable, columns: Sequence[int], types: Sequence[pa.DataType]
) -> tuple[JoinRelation, tuple[BlockLookup, ...]]:
    """Return the relation of a lookup table, with the columns that a block has, and its lookups.

    An access method counts where the block has all of its bind columns: else nothing can bind
    them. UnboundLookupError where none does, and the table has no scan.
    """
    place = {column: n for n, column in enumerate(columns)}
    methods = [method for method in table.methods if place.keys() >= set(method.bind)]
    if not methods and not table.scan:
        missing = _missing(table, place)
        raise UnboundLookupError(
            f"{table.name} is a lookup table: it answers only for given values of "
            f"{_alternatives(table)}, and the query says nothing about {' and '.join(missing)}. "
            f"{_advice(missing)}"
        )
    several = len(methods) + table.scan > 1
    key = tuple(place[column] for column in table.key) if several else ()
    relation = JoinRelation(
        table.name,
        tuple(types),
        scan=table.scan,
        lookups=tuple(Lookup(tuple(place[column] for column in method.bind)) for method in methods),
        key=key,
    )
    lookups = tuple(
        BlockLookup(m.name, tuple(columns), m.width, keys_per_call=m.keys_per_call) for m in methods
    )
    return relation, lookups


def end_below_values(
    conjunct: Tree,
    region: Region,
    tables: Mapping[int, LookupTable],
    definitions: Definitions,
    terms: JoinTerms,
) -> None:
    """Have a region end below a value for a lookup that Spark can compute and no eddy does.

    It is one that may fail, or is of several inputs; a projection names it, and becomes an input.
    Raises EndsBelowError with the path to it; returns where a condition has no such value.
    """
    if conjunct.name != "EqualTo":
        return
    for column, value in (conjunct.children, conjunct.children[::-1]):
        if value.name != "AttributeReference" or not is_bound(column, region, tables, definitions):
            continue
        name = value
        meaning = definitions.known_alias(name.identity)
        while meaning is not None and meaning.name == "AttributeReference":
            name, meaning = meaning, definitions.known_alias(meaning.identity)
        if meaning is None or definitions.is_dependent(meaning):
            continue
        if terms.is_native(meaning) and not definitions.may_throw(meaning):
            continue
        for link, path in zip(region.links, region.paths, strict=True):
            items = link.items if isinstance(link, ProjectLink) else ()
            if any(item.name == "Alias" and item.identity == name.identity for item in items):
                text = definitions.text(meaning)
                raise EndsBelowError(DeclineReason.JOIN_KEY, "", text, path)


def is_bound(
    tree: Tree, region: Region, tables: Mapping[int, LookupTable], definitions: Definitions
) -> bool:
    """Whether an expression is a column by which rows of a lookup table are looked up."""
    column = definitions.named(tree)
    if column.name != "AttributeReference":
        return False
    for number, table in tables.items():
        columns = catalyst.output_numbers(region.inputs[number])
        if column.identity[0] in columns:
            place = columns.index(column.identity[0])
            return any(place in method.bind for method in table.methods)
    return False


def without_what_equalities_say(
    conjuncts: Iterable[Tree],
    predicates: Iterable[Expression],
    constants: Iterable[Constants],
    handles: Sequence[CatalystExpression],
) -> list[Tree]:
    """Return conditions above a block without those that equalities in it imply: ``IS NOT NULL``.

    Spark infers these from equalities. Above the block they would drop no row, and hide from it
    that a limit needs no more. ``handles`` are what the arguments of the predicates stand for.
    """
    sides = [constant.column for constant in constants]
    for predicate in predicates:
        if isinstance(predicate, Comparison) and predicate.operator is ComparisonOperator.EQUAL:
            sides += [
                side for side in (predicate.left, predicate.right) if isinstance(side, Argument)
            ]
    trees = [Tree.of(handles[side.index]) for side in sides]
    equated = {tree.identity for tree in trees if tree.name == "AttributeReference"}

    def says_no_more(conjunct: Tree) -> bool:
        if conjunct.name != "IsNotNull":
            return False
        (column,) = conjunct.children
        return column.name == "AttributeReference" and column.identity in equated

    return [conjunct for conjunct in conjuncts if not says_no_more(conjunct)]


def called_too_early(tables: Sequence[str], functions: Sequence[str]) -> UnboundLookupError:
    """Return the error for tables on whose rows concurrent functions are called before a join."""
    many = len(functions) > 1
    return UnboundLookupError(
        f"{' and '.join(tables)} cannot be asked: {' and '.join(functions)} "
        f"{'are concurrent functions' if many else 'is a concurrent function'}, called on its rows "
        f"before the query has values to look them up by. Adapt what gives the values first, and "
        f"call {'them' if many else 'it'} on the result, as in "
        f"eddyline.adapt(eddyline.adapt(joined).where({functions[0]}(...)))."
    )


def require_bound(
    query: JoinQuery, column_names: Sequence[Sequence[str]], said: Sequence[str] = ()
) -> None:
    """Raise UnboundLookupError where some lookup of a query never gets its values.

    ``said`` are the conditions of the query, as texts.
    """
    try:
        JoinGraph(query)
    except NotExecutableError as error:
        raise UnboundLookupError(_unbound(query, column_names, error.lost, said)) from error


def _unbound(
    query: JoinQuery,
    column_names: Sequence[Sequence[str]],
    lost: Sequence[int],
    said: Sequence[str],
) -> str:
    """Return what is missing for the first of the tables that cannot be asked.

    That is what no relation has; where each lacks only what others have that cannot be asked
    either, it is what all of them wait for.
    """
    graph = JoinGraph(_all_scanned(query))
    everything = (1 << len(query.relations)) - 1
    reached = everything & ~sum(1 << r for r in lost)

    def lacking(r: int, spanned: int) -> list[list[str]]:
        """Return for each lookup of a relation the columns that these give no values for."""
        given = {key.stored for key in graph.keys(spanned, r)}
        return [
            [column_names[r][column] for column in lookup.bind if column not in given]
            for lookup in query.relations[r].lookups
        ]

    for r in lost:
        never = lacking(r, everything & ~(1 << r))
        if all(never):
            wanted = min(never, key=len)
            return (
                f"{query.relations[r].name} cannot be asked: the query has no values for "
                f"{' and '.join(wanted)}. {_without_values(said, wanted)}{_advice(wanted)}"
            )
    waiting = [
        f"{query.relations[r].name} cannot be asked without "
        f"{' or '.join(dict.fromkeys(' and '.join(columns) for columns in lacking(r, reached)))}"
        for r in lost
    ]
    return (
        f"{', and '.join(waiting)}: each waits for values that only the "
        f"other{'s have' if len(lost) > 2 else ' has'}. "  # noqa: PLR2004 - of two there is one other
        f"Give values for one of them, as constants or columns of a table that can be scanned."
    )


def _without_values(said: Sequence[str], columns: Sequence[str]) -> str:
    """Return what is said of columns though it gives no values for them, as a sentence."""
    names = "|".join(map(re.escape, columns))
    about = [text for text in dict.fromkeys(said) if re.search(rf"(?<!\w)({names})(?!\w)", text)]
    about = [text for text in about if not text.rstrip(")").endswith("IS NOT NULL")]
    if not about:
        return ""
    null_safe = any("<=>" in text for text in about)
    why = "By <=>, or IS NOT DISTINCT FROM, a NULL matches NULL, and no row is looked up by NULL: "
    return (
        f"What is said of it gives none: {'; '.join(about)}. "
        f"{why + 'write = instead. ' if null_safe else ''}"
    )


def _advice(columns: Sequence[str]) -> str:
    name = " or ".join(columns)
    return (
        f"Set {'each' if len(columns) > 1 else 'it'} by itself equal to constants (=, IN), or to "
        f"what can be computed of another table in a join, as {columns[0]} = a - 1 for "
        f"{columns[0]} + 1 = a; of an outer join that must be the table whose rows all stay. Where "
        f"Spark casts {name}, as for values of another type, cast these to the column's."
    )


def _all_scanned(query: JoinQuery) -> JoinQuery:
    relations = tuple(JoinRelation(relation.name, relation.types) for relation in query.relations)
    return JoinQuery(relations, query.predicates, query.outputs)


def _missing(table: LookupTable, place: dict[int, int]) -> list[str]:
    fewest = min(([c for c in m.bind if c not in place] for m in table.methods), key=len)
    return [table.columns[column] for column in fewest]


def _alternatives(table: LookupTable) -> str:
    return " or ".join(
        dict.fromkeys(" and ".join(table.columns[c] for c in m.bind) for m in table.methods)
    )
