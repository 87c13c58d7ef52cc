"""The columns of a lookup table, as users describe them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eddyline.blocks.column_types import can_travel
from eddyline.expressions.value_types import MOST_FIELDS


def described_columns(schema: StructType | str, *, sensitive: bool) -> StructType:
    """Return the columns that a schema describes, all of them nullable, whatever a source promises.

    ``sensitive``: names that differ in case are different ones, as Spark is set. TypeError for no
    schema, ValueError for a name that two columns have or a type that no eddy carries, PySpark's
    errors for what is no DDL.
    """
    if isinstance(schema, str):
        parsed = StructType.fromDDL(schema) if schema.strip() else StructType()
        if not isinstance(parsed, StructType):
            raise TypeError(f"a schema describes columns, which {schema!r} does not")
    elif isinstance(schema, StructType):
        parsed = StructType.fromJson(schema.jsonValue())
    else:
        raise TypeError(f"a schema is a StructType or its DDL, not {schema!r}")
    names = Counter(name if sensitive else name.lower() for name in parsed.fieldNames())
    for field in parsed.fields:
        if names[field.name if sensitive else field.name.lower()] > 1:
            raise ValueError(f"a schema names each column once, and {field.name} again")
        if not can_travel(field.dataType.json()):
            raise ValueError(
                f"{field.name} is of type {field.dataType.simpleString()}, which cannot be "
                f"carried to an eddy"
            )
        field.nullable = True
    return parsed


def column_numbers(
    table: str, struct: StructType, wanted: Sequence[str], what: str, *, sensitive: bool
) -> tuple[int, ...]:
    """Return the places of the columns that ``bind`` or ``key`` names, as Spark resolves names.

    TypeError for what is no list of names, ValueError for a column that there is not, is named
    twice, or of which no key is made: arrays and maps, and to be looked up by structs as well.
    """
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise TypeError(f"{what} is a list of columns, not {wanted!r}")
    if len(wanted) > MOST_FIELDS:
        raise ValueError(f"{what} of {table} has {len(wanted)} columns: {MOST_FIELDS} at the most")
    columns = struct.fieldNames()
    places = {(name if sensitive else name.lower()): n for n, name in enumerate(columns)}
    found: list[int] = []
    for name in wanted:
        if not isinstance(name, str):
            raise TypeError(f"{what} is a list of columns' names, of which {name!r} is none")
        place = places.get(name if sensitive else name.lower())
        if place is None:
            raise ValueError(f"{table} has no column {name}; it has {', '.join(columns)}")
        if place in found:
            raise ValueError(f"{what} of {table} names {name} twice")
        _require_key(table, columns[place], struct.fields[place].dataType, what)
        found.append(place)
    return tuple(found)


def _require_key(table: str, column: str, kind: DataType, what: str) -> None:
    nested = ArrayType | MapType | StructType if what == "bind" else ArrayType | MapType
    if isinstance(kind, nested):
        raise ValueError(  # noqa: TRY004 - the type is a column's, not the argument's
            f"{table} cannot have {column} in {what}: it is of type {kind.simpleString()}, of "
            f"which no key is made"
        )
