"""The plug-in's jar: where it is, and how it is built.

A wheel brings it, built by ``make wheel``. In a development tree it is built when it is asked for
and the sources have changed: with ``javac`` where there is a JDK, else with the Janino that PySpark
brings and nothing but a Java to run it. The same sources, Spark and compiler give the same bytes.

Everything in it is compiled for the Spark at hand. What the plug-in itself needs (the classes of
``eddyline.spark``, and those of ``catalyst`` that they use) keeps to what all Sparks from 4.0 on
have; the rest stands below ``compiled/``, and is taken on the very same version of Spark only
(``CompiledClasses.java``).
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eddyline import __version__

NAME: Final = "eddyline.jar"

_HERE: Final = Path(__file__).parent

_PROPERTIES: Final = "eddyline/spark/jar.properties"
"""The file in the jar that says what it was made of."""

_SOURCES_OF_DATA: Final = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
"""The file in the jar that names the class behind ``USING eddyline_lookup``: where Java looks."""

_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
"""When all files of the jar were made: the earliest time that an archive can tell."""

_JANINO: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"

_RELEASE: Final = "17"
"""The oldest Java that Spark 4 runs on."""


def jar() -> str:
    """Return the path of the plug-in's jar, for ``spark.jars`` or ``spark-submit --jars``.

    With it and ``spark.plugins=eddyline.spark.EddylinePlugin`` an application is adapted whatever
    client sends its queries: Spark Connect, Thrift and JDBC, SQL, Scala, or a script in Python that
    stays as it is. On the command line ``eddyline jar`` prints the path.

    Raises ``FileNotFoundError`` where the package has no jar, as one that was not installed from a
    wheel. In a development tree it is built when its sources have changed, and ``RuntimeError`` is
    raised where that fails.
    """
    path = _HERE / NAME
    if (_HERE.parents[2] / "pyproject.toml").is_file():
        _build_where_stale(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: install Eddyline from its wheel")
    return str(path)


def built(javac: str | None) -> bytes:
    """Return the jar, compiled by this ``javac``, by Janino for None.

    Raises ``RuntimeError`` with what the compiler says, ``PySparkMissingError`` without PySpark.
    """
    texts = _sources()
    classes = _compiled(texts, javac)
    return _archive(classes, _digest(texts, javac))


def _build_where_stale(path: Path) -> None:
    texts, javac = _sources(), shutil.which("javac")
    try:
        with zipfile.ZipFile(path) as kept:
            about = kept.read(_PROPERTIES).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        about = ""
    if f"digest={_digest(texts, javac)}\n" in about:
        return
    descriptor, draft = tempfile.mkstemp(".draft", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(built(javac))
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)


def _sources() -> Mapping[str, str]:
    """Return the sources by the names of their classes, as the Spark at hand compiles them."""
    from eddyline.quirks.catalyst_arguments import java_as_known_here  # noqa: PLC0415 - needs PySpark

    texts = {}
    for folder, package in (
        (_HERE, "eddyline.spark"),
        (_HERE.parent / "catalyst", "eddyline.catalyst"),
    ):
        for file in sorted(folder.glob("*.java")):
            texts[f"{package}.{file.stem}"] = java_as_known_here(file.read_text("utf-8"))
    return texts


def _digest(texts: Mapping[str, str], javac: str | None) -> str:
    parts = (__version__, _spark_version(), str(javac is None), *texts, *texts.values())
    own = Path(__file__).read_text("utf-8")
    return hashlib.sha256("\0".join((own, *parts)).encode()).hexdigest()


def _spark_version() -> str:
    from eddyline.host.versions import installed_version  # noqa: PLC0415 - a wheel's users need none

    return installed_version()


def _jars() -> Path:
    import pyspark  # noqa: PLC0415 - likewise

    home = os.environ.get("SPARK_HOME")
    return (Path(home) if home else Path(pyspark.__file__).parent) / "jars"


def _compiled(texts: Mapping[str, str], javac: str | None) -> Mapping[str, bytes]:
    """Return the classes by their names."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, text in texts.items():
            file = Path(folder, "sources", *name.split(".")).with_suffix(".java")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            files.append(str(file))
        out = Path(folder, "classes")
        out.mkdir()
        _run((*_command(javac), "-d", str(out), "-classpath", _class_path(javac), *files))
        found = sorted(out.rglob("*.class"))
        return {
            ".".join(file.relative_to(out).with_suffix("").parts): file.read_bytes()
            for file in found
        }


def _command(javac: str | None) -> Sequence[str]:
    if javac is not None:
        return (javac, "--release", _RELEASE, "-nowarn", "-Xlint:none", "-encoding", "UTF-8")
    from eddyline.host.java import find_java  # noqa: PLC0415 - only where there is no JDK

    return (str(find_java().home / "bin" / "java"), "-cp", f"{_jars()}/*", _JANINO)


def _class_path(javac: str | None) -> str:
    if javac is not None:
        return f"{_jars()}/*"
    return os.pathsep.join(map(str, sorted(_jars().glob("*.jar"))))


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if ran.returncode:
        raise RuntimeError(f"The plug-in's jar could not be built:\n{ran.stdout}{ran.stderr}")


def _archive(classes: Mapping[str, bytes], digest: str) -> bytes:
    from eddyline.catalyst import ON_CLASS_PATH  # noqa: PLC0415 - needs PySpark

    about = {"digest": digest, "spark": _spark_version(), "version": __version__}
    files = {}
    for name, code in sorted(classes.items()):
        package, _, own = name.rpartition(".")
        source = own.partition("$")[0]
        path = f"{name.replace('.', '/')}.class"
        if package == "eddyline.catalyst" and source not in ON_CLASS_PATH:
            about[f"compiled.{source}"] = ",".join(
                filter(None, (about.get(f"compiled.{source}"), name))
            )
            path = f"compiled/{path}"
        files[path] = code
    files[_SOURCES_OF_DATA] = b"eddyline.spark.LookupSource\n"
    files[_PROPERTIES] = "".join(
        f"{key}={value}\n" for key, value in sorted(about.items())
    ).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, code in sorted(files.items()):
            info = zipfile.ZipInfo(path, _LONG_AGO)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, code)
    return content.getvalue()
