"""Whether the workers of an application can run what eddies need, found out before a query does.

Under ``enable`` a query fails where executors have no Eddyline, and whoever wrote it is there to
read why. Here nobody has asked for Eddyline, so a query is left to Spark instead. On a cluster the
package is sent along, with the functions that need it: it has the process's version then.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Final

from pyspark import SparkContext

import eddyline
from eddyline.host.session import local_cores
from eddyline.tasks.trial import eddies_run_here


class Workers:
    """The Pythons of an application's workers: mostly one."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._known: Final[dict[str, str]] = {}
        self._asking: Final = threading.Lock()

    def why_not(self, python: str) -> str:
        """Return why this Python can run nothing of Eddyline's; empty where it can.

        The first time a task of a worker is asked, which takes as long as a worker takes to start.
        """
        with self._asking:
            known = self._known.get(python)
            if known is not None:
                return known
            fit, why = _probed(SparkContext.getOrCreate(), python)
            if fit is not None:
                self._known[python] = why
            return why


def _probed(context: SparkContext, python: str) -> tuple[bool | None, str]:
    """Return whether it can, None where that was not found out, and why not."""
    before, context.pythonExec = context.pythonExec, python
    try:
        context.parallelize([0], 1).map(eddies_run_here).collect()
    except Exception as error:  # noqa: BLE001 - whatever it is, a query would fail of it as well
        told = str(error).strip().splitlines() or [type(error).__name__]
        missing = next((line for line in told if "ModuleNotFoundError: " in line), None)
        why = f"nothing of Eddyline's runs in {python}, the Python of its workers"
        # Else the job was perhaps cancelled with the query.
        return None if missing is None else False, f"{why} ({missing or told[0]})"
    finally:
        context.pythonExec = before
    return True, ""


def send_package(context: SparkContext) -> None:
    """Have workers elsewhere find this package; does nothing where they are on this machine."""
    package = Path(eddyline.__file__).parent
    if local_cores(str(context.master)) is not None or not package.is_dir():
        return
    # Spark serves the file from where it is, as long as the application runs.
    folder = tempfile.mkdtemp(dir=context._temp_dir)  # noqa: SLF001 - Spark removes it at its end
    # A name of its own: a process that comes after this one sends another one.
    archive = Path(folder, f"eddyline-{os.getpid()}.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for file in sorted(package.rglob("*")):
            if file.suffix in {".py", ".java", ".properties"}:
                opened.write(file, str(file.relative_to(package.parent)))
    path = list(sys.path)
    context.addPyFile(str(archive))
    sys.path[:] = path  # this process has it
