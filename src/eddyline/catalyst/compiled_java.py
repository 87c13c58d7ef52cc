"""Classes in Java that Spark's own compiler, Janino, has compiled, kept on disk.

To compile all of them takes 0.6 to 1.4 s of CPU time in a JVM that has just started and has other
things to do; to define what was kept takes 0.02 s. What is kept holds for the very sources, the
very Spark and the very Java; whatever is wrong with it, the sources are compiled.

It is kept in ``EDDYLINE_CACHE_DIR``, by default ``eddyline`` in the user's folder for caches; if
the variable is set to nothing, nothing is kept. As this is code that will run, it is read only from
a folder that belongs to this user and to which nobody else may write.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import io
import logging
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from eddyline import __version__
from eddyline.quirks.catalyst_arguments import java_as_known_here

VARIABLE: Final = "EDDYLINE_CACHE_DIR"

_FORMAT: Final = "1"
"""To be raised whenever classes are compiled or kept in another way."""

_VERSIONS: Final = 8
"""Of each source so many compiled versions are kept, the latest ones; one has 2 to 15 KB."""

ON_CLASS_PATH: Final = ("AdaptingRule", "PythonSide", "KnownRewritings", "ThreadConnections")
"""Sources whose classes the plug-in's own ones need: they stand in its jar as these do."""

_OTHERS_MAY_WRITE: Final = 0o022

_DIGEST: Final = hashlib.sha256().digest_size
"""Bytes at the front of a file that tell whether all others are as they were written."""

Classes = Mapping[str, bytes]
"""Compiled classes by their names."""

_log: Final = logging.getLogger("eddyline")


class ClassFiles:
    """A folder with compiled classes: for each source and version of all else a file.

    It has an archive behind its digest. Many processes may read and write at the same time: a file
    comes to be as a whole, and whoever reads one compares the digest.
    """

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder

    def read(self, source: str, version: str) -> Classes | None:
        """Return the classes of a source; None where they are not kept, damaged, or not safe."""
        file = self._file(source, version)
        try:
            if not (_is_ours(self._folder) and _is_ours(file)):
                return None
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.info("%s is compiled again, as what was kept cannot be read: %s", source, error)
            return None
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            _log.info("%s is compiled again, as what was kept is damaged.", source)
            return None
        with zipfile.ZipFile(io.BytesIO(content[_DIGEST:])) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def write(self, source: str, version: str, classes: Classes) -> None:
        """Keep the classes of a source, if that is possible, and not too many versions."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, code in classes.items():
                archive.writestr(name, code)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_ours(self._folder):
                return
            descriptor, draft = tempfile.mkstemp(".draft", f"{source}-", self._folder)
            try:
                with os.fdopen(descriptor, "wb") as opened:
                    opened.write(hashlib.sha256(content.getvalue()).digest() + content.getvalue())
                Path(draft).replace(self._file(source, version))
            finally:
                Path(draft).unlink(missing_ok=True)
            for old in sorted(self._folder.glob(f"{source}-*"), key=_age)[_VERSIONS:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _log.info("Compiled classes are not kept: %s", error)

    def _file(self, source: str, version: str) -> Path:
        return self._folder / f"{source}-{version}.classes"


def _is_ours(path: Path) -> bool:
    """Whether a file or folder belongs to this user alone; said of all where nobody owns any."""
    if os.name != "posix":
        return True
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & _OTHERS_MAY_WRITE


def _age(file: Path) -> float:
    """Return what is the less the later a file was written."""
    with contextlib.suppress(FileNotFoundError):  # another process has removed it
        return -file.stat().st_mtime
    return 0.0


def kept_classes() -> ClassFiles | None:
    """Return the folder of this user; None where nothing is to be kept."""
    if VARIABLE in os.environ:
        return ClassFiles(Path(os.environ[VARIABLE])) if os.environ[VARIABLE] else None
    try:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return ClassFiles(Path(caches, "eddyline"))


def loader_with(jvm: Any, source: str, parent: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return a loader of the classes of a source, for which ``parent`` loads what they need.

    Where the plug-in's jar is on the class path they come from there, or are kept there as long as
    the JVM lives.

    Raises ``Py4JError`` or ``TypeError`` where they are not kept and nothing can be compiled.
    """
    jar = jar_in(id(jvm))
    if jar is None:
        return _kept_or_compiled(jvm, source, parent)
    if source in ON_CLASS_PATH:
        return parent
    there = jar.loader(source, parent, jvm.org.apache.spark.package.SPARK_VERSION())
    return jar.keep(source, _kept_or_compiled(jvm, source, parent)) if there is None else there


def _kept_or_compiled(jvm: Any, source: str, parent: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    kept = kept_classes()
    version = None if kept is None else _version(id(jvm))
    if kept is None or version is None:
        return _compiler_of(jvm, source, parent).getClassLoader()
    classes = kept.read(source, version)
    if classes is not None:
        try:
            return _loader_of(jvm, classes, parent)
        except (Py4JError, TypeError) as error:  # TypeError: no such loader
            _log.info("%s is compiled again, as what was kept cannot be loaded: %s", source, error)
    compiler = _compiler_of(jvm, source, parent)
    with contextlib.suppress(Py4JError, TypeError):  # a Janino that does not tell
        kept.write(source, version, _classes_of(compiler))
    return compiler.getClassLoader()


@functools.cache
def jar_in(_gateway: int) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return what the plug-in's jar has of compiled classes; None where there is no such jar."""
    jvm = cast("Any", SparkContext._jvm)
    try:
        jar = jvm.eddyline.spark.CompiledClasses
        known = isinstance(jar, JavaClass) and str(jar.version()) == __version__
    except (Py4JError, TypeError):
        return None
    return jar if known else None


def mistakes_in(jvm: Any, sources: Iterable[str]) -> dict[str, str]:  # noqa: ANN401 - as above
    """Compile sources, each with those before it; return what is wrong with each, or ""."""
    loader = parent_of_all(jvm)
    mistakes = {}
    for source in sources:
        try:
            loader = _compiler_of(jvm, source, loader).getClassLoader()
        except Py4JJavaError as error:
            mistakes[source] = str(error.java_exception.getMessage())
        else:
            mistakes[source] = ""
    return mistakes


def parent_of_all(jvm: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return the loader of Spark's classes."""
    return jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()


def _compiler_of(jvm: Any, source: str, parent: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(_text_of(source))
    return compiler


def _classes_of(compiler: Any) -> Classes:  # noqa: ANN401 - Py4J has no types
    codes = compiler.getBytecodes()
    return {str(name): bytes(codes.get(name)) for name in codes.keySet().toArray()}


def _loader_of(jvm: Any, classes: Classes, parent: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    codes = jvm.java.util.HashMap()
    for name, code in classes.items():
        codes.put(name, code)
    reflect = jvm.org.codehaus.commons.compiler.util.reflect
    loader = reflect.ByteArrayClassLoader(codes, parent)
    for name in classes:  # so that what Java does not take is found now
        loader.loadClass(name)
    return loader


@functools.cache
def _version(_gateway: int) -> str | None:
    """Return what tells sources, Spark and Java from others; None where the JVM does not say."""
    jvm = cast("Any", SparkContext._jvm)
    try:
        system = jvm.java.lang.System
        plan = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
        domain = parent_of_all(jvm).loadClass(plan).getProtectionDomain()
        where = str(domain.getCodeSource().getLocation().toString())
        known = [
            *(str(system.getProperty(name)) for name in ("java.version", "java.vendor")),
            str(jvm.org.apache.spark.package.SPARK_VERSION()),
            where,
        ]
    except (Py4JError, TypeError, AttributeError):
        return None
    with contextlib.suppress(OSError):  # else a Spark of one's own, built again
        archive = Path(unquote(urlsplit(where).path)).stat()
        known += [str(archive.st_size), str(archive.st_mtime_ns)]
    texts = (_text_of(name) for name in sorted(sources()))
    return hashlib.sha256("\0".join((_FORMAT, *known, *texts)).encode()).hexdigest()[:32]


def sources() -> set[str]:
    """Return the names of all classes; the package may be an archive, as with ``--py-files``."""
    names = (file.name for file in importlib.resources.files(__package__).iterdir())
    return {name.removesuffix(".java") for name in names if name.endswith(".java")}


def _text_of(source: str) -> str:
    text = importlib.resources.files(__package__).joinpath(f"{source}.java").read_text("utf-8")
    return java_as_known_here(text)
