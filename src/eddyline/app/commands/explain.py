"""``eddyline explain``: tells what would run in eddies of a query or a script's DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame

import eddyline
from eddyline.app.endings import ExitCode
from eddyline.app.file_errors import printing
from eddyline.app.invocation import ExplainInvocation, Script
from eddyline.app.prepared_query import prepared_query
from eddyline.app.script import check_script, dataframe_of
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import importable, importable_by_workers, running_spark
from eddyline.app.terminal import chatter


def run(invocation: ExplainInvocation) -> ExitCode:
    """Run the command: the explanation goes to stdout."""
    subject = invocation.subject
    if isinstance(subject, Script):
        _explain_script(subject, invocation.stage)
    else:
        with prepared_query(subject, chatter()) as frame:
            _print(frame, invocation.stage)
    return ExitCode.DONE


def _explain_script(script: Script, stage: str | None) -> None:
    check_script(script)
    folder = script.path.parent
    with (
        importable(folder),
        running_spark(chatter()) as spark,
        importable_by_workers(folder, spark),
        spark_errors_explained(),
    ):
        _print(dataframe_of(script, spark), stage)


def _print(frame: DataFrame, stage: str | None) -> None:
    with printing():
        print(eddyline.explain(frame, stage=stage))  # noqa: T201 - what the command is for
