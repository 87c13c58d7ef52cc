"""Settings of Spark's that a user has made outside of the program."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyspark


def settings_of_the_user(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the names of all settings in ``PYSPARK_SUBMIT_ARGS`` and ``spark-defaults.conf``.

    That file is looked for where Spark's launcher does: in ``SPARK_CONF_DIR``, else in ``conf``
    below ``SPARK_HOME``, else below the package; ``--properties-file`` names another one instead.
    """
    options = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    chosen = list(_values(options, "--properties-file"))
    files = [Path(path) for path in chosen] or [_folder(environment) / "spark-defaults.conf"]
    names = {pair.partition("=")[0].strip() for pair in _values(options, "--conf", "-c")}
    for file in files:
        names.update(_names_in(file))
    return frozenset(names)


def _folder(environment: Mapping[str, str]) -> Path:
    if folder := environment.get("SPARK_CONF_DIR"):
        return Path(folder)
    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "conf"


def _values(options: list[str], *names: str) -> Iterator[str]:
    """Yield what follows an option, as a word of its own or after a sign of equality.

    >>> list(_values(["--conf", "a=1", "--conf=b=2", "pyspark-shell"], "--conf"))
    ['a=1', 'b=2']
    """
    for option, following in zip(options, [*options[1:], ""], strict=False):
        name, sign, value = option.partition("=")
        if name in names:
            yield value if sign else following


def _names_in(file: Path) -> Iterator[str]:
    """Yield the names in a file of Java's properties."""
    with suppress(OSError):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            text = line.strip()
            if text and text[0] not in "#!":
                yield re.split(r"[\s=:]", text, maxsplit=1)[0]
