"""Runs a user's script and takes the DataFrame that it makes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from pyspark.sql import DataFrame, SparkSession

from eddyline.app.endings import UsageError
from eddyline.app.file_errors import file_errors_explained
from eddyline.app.invocation import Script
from eddyline.app.script_errors import where_it_failed


def check_script(script: Script) -> None:
    """Raise :class:`UsageError` if there is no such file, or none that can be read."""
    with file_errors_explained(script.path, "read"):
        if script.path.is_dir():
            raise UsageError(f"{script.path} is a folder; name a script in it")
        if not script.path.exists():
            raise UsageError(f"there is no file {script.path}")
        script.path.open("rb").close()


def dataframe_of(script: Script, spark: SparkSession) -> DataFrame:
    """Run a script, with ``spark`` among its names, and return its DataFrame.

    What it prints goes to stderr. Raises :class:`UsageError` if it fails, with
    its own error and the line, or if it makes no DataFrame of that name.
    """
    try:
        code = compile(script.path.read_bytes(), str(script.path), "exec")
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"the script failed: {where_it_failed(error, str(script.path))}"
        ) from error
    names: dict[str, object] = {
        "__name__": "__main__",
        "__file__": str(script.path),
        "spark": spark,
    }
    try:
        with _arguments(script), redirect_stdout(sys.stderr):
            exec(code, names)  # noqa: S102 - that is what the user asked for
    except SystemExit as ended:
        if ended.code not in {None, 0}:
            raise UsageError(f"the script ended itself{_farewell(ended.code)}") from ended
    except Exception as error:
        raise UsageError(f"the script failed: {where_it_failed(error)}") from error
    frame = names.get(script.name)
    if isinstance(frame, DataFrame):
        return frame
    others = sorted(
        name
        for name, value in names.items()
        if isinstance(value, DataFrame) and not name.startswith("_")
    )
    known = f"it has {', '.join(others)}: choose by --name" if others else "it has none at all"
    raise UsageError(f"{script.path} makes no DataFrame named {script.name}; {known}")


def _farewell(code: object) -> str:
    """Return what a script passed to ``sys.exit``: a number, or a message.

    >>> _farewell(3), _farewell("no such day")
    (' with exit code 3', ': no such day')
    """
    return (
        f" with exit code {code}" if isinstance(code, int) else f": {' '.join(str(code).split())}"
    )


@contextmanager
def _arguments(script: Script) -> Iterator[None]:
    """Let the script see itself as the program, as if Python had started it."""
    before = sys.argv
    sys.argv = [str(script.path)]
    try:
        yield
    finally:
        sys.argv = before
