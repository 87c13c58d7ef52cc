"""``eddyline jar``: prints where the plug-in's jar is, for ``spark-submit --jars``."""

from __future__ import annotations

import sys

from eddyline.app.endings import ExitCode, RunError
from eddyline.app.file_errors import printing
from eddyline.app.invocation import JarInvocation
from eddyline.plugin.jar_file import jar


def run(_: JarInvocation) -> ExitCode:
    """Run the command."""
    try:
        path = jar()
    except (FileNotFoundError, RuntimeError) as error:
        raise RunError(str(error)) from error
    with printing():
        sys.stdout.write(f"{path}\n")
    return ExitCode.DONE
