"""The file that describes a job of standing queries."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from eddyline.app.endings import UsageError

CONSOLE: Final = "console"
"""The sink that prints results."""


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """A stream as ``spark.readStream`` takes it; ``watermark`` is a column and a delay."""

    format: str
    schema: str | None = None
    path: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    watermark: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class QueryConfig:
    """A query; ``keep`` says how far apart the event times of joined rows may be."""

    sql: str
    keep: str | None = None


@dataclass(frozen=True, slots=True)
class TemplateConfig:
    """Queries of one template: ``parameters`` is a CSV or Parquet file with a row for each."""

    name: str
    sql: str
    parameters: Path
    keep: str | None = None


@dataclass(frozen=True, slots=True)
class RulesConfig:
    """A job: paths are relative to the folder of its file."""

    state: Path
    sink: str
    streams: Mapping[str, StreamConfig]
    tables: Mapping[str, Path]
    queries: Mapping[str, QueryConfig]
    templates: tuple[TemplateConfig, ...]
    trigger: str | None
    history: str | None = None
    by_query: bool = False
    function_seconds: float | None = None
    max_results: int | None = None


def read_rules(path: Path) -> RulesConfig:
    """Return what a file says; UsageError where it cannot be read or says something else."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no TOML: {error}") from error
    return _Reader(path).config(document)


def state_of(where: Path) -> Path:
    """Return the state directory of a job, given this directory or the job's file."""
    return where if where.is_dir() else read_rules(where).state


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def config(self, found: Mapping[str, Any]) -> RulesConfig:
        self._only(found, set(RulesConfig.__slots__), "the file")
        streams = self._mapping(found.get("streams", {}), "streams")
        if not streams:
            raise self._wrong("there is no [streams.NAME]")
        sink = self._text(found.get("sink", CONSOLE), "sink")
        return RulesConfig(
            state=self._place(self._text(found.get("state"), "state")),
            sink=sink if sink == CONSOLE or "://" in sink else str(self._place(sink)),
            streams={name: self._stream(name, stream) for name, stream in streams.items()},
            tables={
                name: self._place(self._text(path, f"tables.{name}"))
                for name, path in self._mapping(found.get("tables", {}), "tables").items()
            },
            queries={
                name: self._query(name, query)
                for name, query in self._mapping(found.get("queries", {}), "queries").items()
            },
            templates=tuple(map(self._template, found.get("templates", []))),
            trigger=self._text(found["trigger"], "trigger") if "trigger" in found else None,
            history=self._text(found["history"], "history") if "history" in found else None,
            by_query=self._switch(found.get("by_query", False), "by_query"),
            function_seconds=self._number(found, "function_seconds"),
            max_results=None if (most := self._number(found, "max_results")) is None else int(most),
        )

    def _stream(self, name: str, found: object) -> StreamConfig:
        where = f"streams.{name}"
        fields = self._mapping(found, where)
        self._only(fields, set(StreamConfig.__slots__), where)
        watermark = fields.get("watermark")
        if watermark is not None and not (
            isinstance(watermark, list)
            and len(watermark) == 2  # noqa: PLR2004 - a column and a delay
            and all(isinstance(part, str) for part in watermark)
        ):
            raise self._wrong(f'{where}.watermark is ["column", "delay"], not {watermark!r}')
        path = fields.get("path")
        return StreamConfig(
            format=self._text(fields.get("format"), f"{where}.format"),
            schema=self._text(fields["schema"], f"{where}.schema") if "schema" in fields else None,
            path=None if path is None else self._address(self._text(path, f"{where}.path")),
            options=self._mapping(fields.get("options", {}), f"{where}.options"),
            select=tuple(fields.get("select", ())),
            watermark=None if watermark is None else (watermark[0], watermark[1]),
        )

    def _query(self, name: str, found: object) -> QueryConfig:
        """Return a query: its text, or a table that has it as ``sql``."""
        where = f"queries.{name}"
        if not isinstance(found, dict):
            return QueryConfig(self._text(found, where))
        self._only(found, set(QueryConfig.__slots__), where)
        return QueryConfig(self._text(found.get("sql"), f"{where}.sql"), self._keep(found, where))

    def _template(self, found: object) -> TemplateConfig:
        fields = self._mapping(found, "templates")
        self._only(fields, set(TemplateConfig.__slots__), "templates")
        name, sql, parameters = (
            self._text(fields.get(name), f"templates.{name}")
            for name in ("name", "sql", "parameters")
        )
        return TemplateConfig(name, sql, self._place(parameters), self._keep(fields, "templates"))

    def _keep(self, fields: Mapping[str, Any], where: str) -> str | None:
        return self._text(fields["keep"], f"{where}.keep") if "keep" in fields else None

    def _switch(self, found: object, where: str) -> bool:
        if not isinstance(found, bool):
            raise self._wrong(f"{where} is true or false, not {found!r}")
        return found

    def _number(self, fields: Mapping[str, Any], name: str) -> float | None:
        found = fields.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or found <= 0:
            raise self._wrong(f"{name} is a number above 0, not {found!r}")
        return found

    def _place(self, text: str) -> Path:
        return self._path.parent / text

    def _address(self, text: str) -> str:
        return text if "://" in text else str(self._place(text).absolute())

    def _text(self, found: object, where: str) -> str:
        if found is None:
            raise self._wrong(f"there is no {where}")
        if not isinstance(found, str) or not found.strip():
            raise self._wrong(f"{where} is a text, not {found!r}")
        return found

    def _mapping(self, found: object, where: str) -> Mapping[str, Any]:
        if not isinstance(found, dict):
            raise self._wrong(f"{where} is a table, not {found!r}")
        return found

    def _only(self, found: Mapping[str, Any], known: set[str], where: str) -> None:
        for name in found:
            if name not in known:
                raise self._wrong(f"{where} has no {name!r}; it has {', '.join(sorted(known))}")

    def _wrong(self, message: str) -> UsageError:
        return UsageError(f"{self._path}: {message}")
