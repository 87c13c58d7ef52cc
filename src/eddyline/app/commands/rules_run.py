"""``eddyline rules run``: runs the standing queries that a file describes, until it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import eddyline
from eddyline.app.endings import ExitCode, RunError, UsageError
from eddyline.app.file_errors import file_errors_explained, printing
from eddyline.app.file_tables import create_view, find_table
from eddyline.app.invocation import RulesRunInvocation, TableSource
from eddyline.app.row_lines import table_lines
from eddyline.app.rules_config import CONSOLE, RulesConfig, StreamConfig, TemplateConfig, read_rules
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import running_spark
from eddyline.app.terminal import chatter
from eddyline.errors import NotShareableError, StateError
from eddyline.reports.wording import counted
from eddyline.standing.arguments import keep_text, kept_for

_EVERY = 0.5
"""Seconds between two looks at what was done."""


def run(invocation: RulesRunInvocation) -> ExitCode:
    """Run the command."""
    config = read_rules(invocation.config)
    parameters = {template.name: _parameters(template) for template in config.templates}
    console = chatter()
    with running_spark(console) as spark, spark_errors_explained(list(config.streams)):
        streams = {name: _stream(spark, name, stream) for name, stream in config.streams.items()}
        tables = {name: _table(spark, name, path) for name, path in config.tables.items()}
        try:
            queries = eddyline.StandingQueries(
                spark,
                streams=streams,
                tables=tables,
                state=config.state,
                history=config.history,
                function_seconds=config.function_seconds,
                max_results=config.max_results,
            )
        except (StateError, ValueError) as error:
            raise RunError(str(error)) from error
        with queries:
            _add(queries, config, parameters)
            count = queries.queries().count()
            said = counted(count, "query", "queries")
            console.print(f"{said} over {', '.join(streams)}; Ctrl-C stops them.")
            queries.start(_sink(config), by_query=_by_query(config), **_trigger(config))
            _watch(queries, console)
    return ExitCode.DONE


def _add(
    queries: eddyline.StandingQueries, config: RulesConfig, parameters: dict[str, pd.DataFrame]
) -> None:
    """Add the queries of the file that are not there yet, and replace those that have changed."""
    known = {row["name"]: (row["sql"], row["keep"]) for row in queries.queries().collect()}
    try:
        for name, query in config.queries.items():
            if name not in known:
                queries.add(query.sql, name=name, keep=query.keep)
            elif known[name] != (query.sql, keep_text(kept_for(query.keep))):
                queries.replace(name, query.sql, keep=query.keep)
        for template in config.templates:
            rows = parameters[template.name]
            if "name" not in rows:
                rows.insert(0, "name", [f"{template.name}-{n}" for n in range(len(rows))])
            new = rows[~rows["name"].isin(known)]
            if len(new):
                queries.add_many(template.sql, new, name=template.name, keep=template.keep)
    except (NotShareableError, ValueError) as error:
        raise UsageError(str(error)) from error


def _stream(spark: SparkSession, name: str, config: StreamConfig) -> DataFrame:
    reader = spark.readStream.format(config.format)
    if config.schema is not None:
        reader = reader.schema(config.schema)
    for option, value in config.options.items():
        reader = reader.option(option, value)  # type: ignore[arg-type]  # of TOML
    stream = reader.load(config.path) if config.path is not None else reader.load()
    if config.select:
        stream = stream.selectExpr(*config.select)
    if config.watermark is not None:
        if config.watermark[0] not in stream.columns:
            raise UsageError(f"the stream {name} has no column {config.watermark[0]}")
        stream = stream.withWatermark(*config.watermark)
    return stream


def _table(spark: SparkSession, name: str, path: Path) -> DataFrame:
    create_view(spark, find_table(TableSource(name, str(path))))
    return spark.table(name)


def _parameters(template: TemplateConfig) -> pd.DataFrame:
    path = template.parameters
    with file_errors_explained(path, "read", UsageError):
        try:
            return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        except ValueError as error:
            raise UsageError(f"{path} cannot be read: {error}") from error


def _trigger(config: RulesConfig) -> dict[str, Any]:
    if config.trigger is None:
        return {}
    if config.trigger == "available now":
        return {"availableNow": True}
    return {"processingTime": config.trigger}


def _by_query(config: RulesConfig) -> bool:
    return config.by_query and config.sink != CONSOLE


def _sink(config: RulesConfig) -> str | Callable[[DataFrame, object], None]:
    return _print if config.sink == CONSOLE else config.sink


def _print(results: DataFrame, batch: object) -> None:
    rows = results.collect()
    if not rows:
        return
    width = None
    with printing():
        sys.stdout.write(f"{batch}\n")
        for line in table_lines(results.schema, rows, width):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _watch(queries: eddyline.StandingQueries, console: Console) -> None:
    """Say what was done, until all jobs have ended."""
    with console.status("Waiting for events") as status:
        while not queries.await_termination(_EVERY):
            done = queries.progress()
            if done.batches:
                status.update(
                    f"{counted(done.batches, 'micro-batch', 'micro-batches')}: "
                    f"{counted(done.rows_in, 'event')}, "
                    f"{counted(done.results, 'result')}; the last took {done.seconds:.1f} s"
                )
    if queries.progress().batches == 0:
        raise RunError("the jobs have ended before any event came")
