"""Files of this machine as Hadoop writes them, without a process for each."""

from __future__ import annotations

import functools
import logging
import os

from py4j.protocol import Py4JError

from eddyline.catalyst.gateway import java_class, jvm
from eddyline.catalyst.hadoop_files import settings_of_hadoop
from eddyline.catalyst.pipeline import new_alone

_CLASS = "LocalFiles"


def write_local_files_directly() -> bool:
    """Have the driver's JVM write local files itself; return whether it does from now on.

    Without its native library, which no ``pip install pyspark`` brings, Hadoop starts a process,
    ``chmod``, for each file that it creates. In a micro-batch without rows that, and the renaming
    of its files, is most of the time (see ``stream_settings``). Where the library is there, another
    file system stands in, or somebody has asked for files to be deleted at the end, all stays as it
    is.
    """
    return os.name == "posix" and _written_in(id(jvm()))


@functools.cache
def _written_in(_gateway: int) -> bool:
    if java_class("org.apache.hadoop.io.nativeio.NativeIO").isAvailable():
        return False
    try:
        return bool(new_alone(_CLASS).use(settings_of_hadoop()))
    except (Py4JError, TypeError) as error:  # TypeError: no such class
        logging.getLogger("eddyline").info("Local files are written as always: %s", error)
        return False
