"""Lookup tables that any client makes in SQL: ``CREATE TABLE … USING eddyline_lookup OPTIONS (…)``.

The catalog keeps such a table, with its columns and options as texts (``LookupSource.java``). They
say what the arguments of :func:`eddyline.lookup_table` and :class:`eddyline.HttpLookup` of the same
names say elsewhere: numbers and switches as they are written, names separated by commas, and what
is a mapping there as an object in JSON. An environment variable is ``$(NAME)``, for Spark puts
values of its own in place of ``${NAME}`` before it reads a statement.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import eddyline
from eddyline import catalyst
from eddyline.errors import MissingSecretError
from eddyline.keeping.keep import keep_in
from eddyline.latest import Latest
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.tasks.not_adapted import BY_PLUGIN

if TYPE_CHECKING:
    from eddyline.asking.http_request import Cursor, NextLink, PageNumber

_TABLES: Final = 100
"""Tables whose leaves are kept, the latest; of others they are made again."""

_SETTINGS: Final = ("spark.sql.session.timeZone", "spark.sql.caseSensitive")
"""What a leaf depends on of the session that reads it."""


class SqlLookups:
    """The leaves of lookup tables that are read by what a catalog keeps of them."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._leaves: Final = Latest[tuple[str, ...], catalyst.Plan](_TABLES)
        self._making: Final = threading.Lock()

    def leaf(self, spark: SparkSession, definition: str) -> catalyst.Plan:
        """Return what stands in plans for a table: its name, columns and options, as JSON.

        Raises ``ValueError`` for options that are wrong, missing or unknown, and otherwise as
        :func:`eddyline.lookup_table` does.
        """
        settings = catalyst.settings_of(spark, _SETTINGS)
        known = lookup_tables_of(spark.sparkContext).keep
        key = (definition, str(known), *(settings.get(name, "") for name in _SETTINGS))
        with self._making:  # each once: its limits are for all queries together
            leaf = self._leaves.get(key)
            if leaf is None:
                leaf = _made(spark, json.loads(definition))
                self._leaves.put(key, leaf)
            return leaf


def _made(spark: SparkSession, defined: Mapping[str, Any]) -> catalyst.Plan:
    name = str(defined["name"])
    try:
        given = read_options(defined["options"])
        source = eddyline.HttpLookup(**_chosen(given, eddyline.HttpLookup))
        way = eddyline.LookupMethod(source=source, **_chosen(given, eddyline.LookupMethod))
        # Only users of lookup tables have what it needs.
        from eddyline.planner.declare.lookup_registration import lookup_leaf  # noqa: PLC0415

        return lookup_leaf(
            spark,
            name,
            StructType.fromJson(json.loads(defined["columns"])),
            (way,),
            on_error=given.get("on_error", "fail"),
            keep=keep_in(given.get("keep"), given.get("version"), given.get("valid")),
            advice=BY_PLUGIN,
        )
    except MissingSecretError as error:
        how = "spark.eddyline.environment names the variables that Eddyline's process inherits"
        raise MissingSecretError(f"{name}: {error}; {how}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error


def _chosen(given: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in given.items() if name in names}


def read_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return what options say, by the names of arguments; ValueError for what they cannot say.

    >>> read_options({"url": "https://api.example/{zip}", "bind": "zip", "rate": "2.5"})
    {'url': 'https://api.example/{zip}', 'bind': ['zip'], 'rate': 2.5}
    >>> read_options({"url": "https://api.example/{zip}?key=$(KEY)", "bind": "zip"})["url"]
    'https://api.example/{zip}?key=${KEY}'
    >>> read_options({"url": "https://api.example/{zip}"})
    Traceback (most recent call last):
    ValueError: the option bind is missing: the columns whose values are given, as 'station, hour'
    """
    unknown = sorted(options.keys() - _READERS.keys())
    if unknown:
        raise ValueError(
            f"there is no option {unknown[0]}; there are {', '.join(sorted(_READERS))}"
        )
    for name, what in _REQUIRED.items():
        if not options.get(name, "").strip():
            raise ValueError(f"the option {name} is missing: {what}")
    return {name: _read(name, text) for name, text in options.items()}


def _read(name: str, text: str) -> object:
    reader, kind = _READERS[name]
    try:
        return reader(_VARIABLE.sub(r"${\1}", text) if name in _WITH_VARIABLES else text)
    except (KeyError, TypeError, ValueError):
        # What was written may be a secret.
        shown = "" if name in _WITH_VARIABLES else f", not {text!r}"
        raise ValueError(f"the option {name} is {kind}{shown}") from None


def _names(text: str) -> list[str]:
    """Return names that commas separate.

    >>> _names("station, hour")
    ['station', 'hour']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def _switch(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError(text)
    return found


def _pages(text: str) -> Cursor | NextLink | PageNumber:
    """Return how answers continue, which the names in an object tell.

    >>> _pages('{"parameter": "page", "first": 0}'), _pages('{"path": "links.next"}')
    (PageNumber(parameter='page', first=0), NextLink(path='links.next'))
    """
    from eddyline.asking.http_request import Cursor, NextLink, PageNumber  # noqa: PLC0415 - as above

    said = _object(text)
    if {"path", "parameter"} <= said.keys():
        return Cursor(**said)
    return NextLink(**said) if "path" in said else PageNumber(**said)


_TEXT: Final = (str, "a text")
_WHOLE: Final = (int, "a whole number")
_NUMBER: Final = (float, "a number")
_OBJECT: Final = (_object, """an object in JSON, as '{"a": "b"}'""")

_READERS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "allow_hosts": (_names, "names"),
    "bind": (_names, "names"),
    "body": (json.loads, "a value in JSON"),
    "columns": _OBJECT,
    "headers": _OBJECT,
    "keep": _TEXT,
    "keys_per_call": _WHOLE,
    "max_bytes": _WHOLE,
    "max_in_flight": _WHOLE,
    "method": _TEXT,
    "on_error": _TEXT,
    "pages": (_pages, """an object in JSON, as '{"path": "links.next"}'"""),
    "params": _OBJECT,
    "patience": _TEXT,
    "rate": _NUMBER,
    "retries": _WHOLE,
    "rows": _TEXT,
    "timeout": _NUMBER,
    "url": _TEXT,
    "valid": _TEXT,
    "verify": (_switch, "true or false"),
    "version": _TEXT,
}
"""All options, with what reads them and what they are."""

_REQUIRED: Final = {
    "url": "what is asked, as 'https://api.example/{station}'",
    "bind": "the columns whose values are given, as 'station, hour'",
}

_WITH_VARIABLES: Final = {"headers", "params", "url"}

_VARIABLE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
