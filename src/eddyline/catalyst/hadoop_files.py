"""Folders of the file systems that Hadoop knows: HDFS, object stores and many others.

Spark has the file systems, with whatever ``spark.hadoop`` says of them. Each thread that asks for
files has a connection into the JVM of its own, so a folder is best used from one thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from eddyline.catalyst.gateway import java_class, static

_HADOOP: Final = "org.apache.hadoop.fs."

_LEAVE: Final = False
"""Whether what is copied is deleted: it is not."""

_OVERWRITE: Final = True

_WITHOUT_CHECKSUM: Final = True
"""No file beside a copy on this machine has its checksum."""

_BELOW: Final = False
"""Whether what is deleted may be a folder, with all that is below: it may not."""

_NAME: Final = re.compile(r"[^/]+(?=, [A-Za-z][A-Za-z0-9+.-]*:/|\)$)")
"""The last part of each path in a list, as Scala prints it."""


def knows_file_system(scheme: str) -> bool:
    """Whether Spark has a file system for URLs that begin like this; OSError where none runs."""
    with _as_os_errors():
        try:
            static(_HADOOP + "FileSystem", "getFileSystemClass")(scheme, settings_of_hadoop())
        except Py4JJavaError as error:
            if _kind(error) == _HADOOP + "UnsupportedFileSystemException":
                return False
            raise
    return True


@dataclass(frozen=True, slots=True)
class HadoopFolder:
    """A folder by its URL. What fails raises OSError, also where Spark has stopped."""

    url: str

    def names(self) -> list[str]:
        """Return the names of the files in it, in one call; none where there is no folder."""
        with _as_os_errors():
            system, folder = self._system(), self._path()
            try:
                found = system.listStatus(folder)
            except Py4JJavaError as error:
                if _is_missing(error):
                    return []
                raise
            paths = static(_HADOOP + "FileUtil", "stat2Paths")(found)
            # For 64 files one call of 0.7 ms, instead of three for each.
            text = str(static("scala.runtime.ScalaRunTime", "stringOf")(paths))
            return _NAME.findall(text.removeprefix("Array("))

    def fetch(self, name: str, into: Path) -> None:
        """Copy a file to this machine; FileNotFoundError where it is gone."""
        with _as_os_errors():
            self._system().copyToLocalFile(
                _LEAVE, self._path(name), _local(into), _WITHOUT_CHECKSUM
            )

    def put(self, file: Path, draft: str, name: str) -> None:
        """Copy a file of this machine there as ``draft``, and rename it when it is whole."""
        with _as_os_errors():
            system = self._system()
            system.copyFromLocalFile(_LEAVE, _OVERWRITE, _local(file), self._path(draft))
            if not system.rename(self._path(draft), self._path(name)):
                raise OSError(f"{self.url}/{draft} cannot be renamed")

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those that are gone do not matter."""
        with _as_os_errors():
            system = self._system()
            for name in names:
                system.delete(self._path(name), _BELOW)

    def _path(self, name: str | None = None) -> Any:  # noqa: ANN401  # Py4J has no types
        path = java_class(_HADOOP + "Path")
        return path(self.url) if name is None else path(self.url, name)

    def _system(self) -> Any:  # noqa: ANN401  # Py4J has no types
        """Return the file system; Hadoop keeps it, and closes it when the JVM ends."""
        return self._path().getFileSystem(settings_of_hadoop())


def _local(file: Path) -> Any:  # noqa: ANN401  # Py4J has no types
    # Not as_uri: Hadoop takes a URL as it stands, and would look for %20 where a space is.
    return java_class(_HADOOP + "Path")(f"file:///{file.absolute().as_posix().lstrip('/')}")


def settings_of_hadoop() -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the settings of Hadoop in the driver; OSError where Spark has stopped."""
    context = SparkContext._active_spark_context
    java = None if context is None else context._jsc
    if java is None:
        raise OSError("Spark is not running")
    return java.hadoopConfiguration()


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        kind = FileNotFoundError if _is_missing(error) else OSError
        raise kind(_first_line(str(error.java_exception.toString()))) from None
    except (Py4JError, PySparkException) as error:
        raise OSError(_first_line(str(error)) or type(error).__name__) from None


def _is_missing(error: Py4JJavaError) -> bool:
    return _kind(error) == "java.io.FileNotFoundException"


def _kind(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
