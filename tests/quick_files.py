"""Files of the tests' Spark, without what Hadoop does for each of them on a machine of its own.

Without its native library, Hadoop starts a process (``chmod``) for each file whose permissions it
sets, and others (``readlink``) for each that it renames by the checkpoints' way; and it sends 1,100
settings, each compressed by itself, to the tasks of every scan. Of 102 s for 14 tests of standing
queries, 13 went into such processes; of a small query's 94 ms the settings took 15. Sessions that
tests start in processes of their own have Hadoop as users have it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark.sql import SparkSession

from eddyline.quirks.checkpoint_files import RENAMED

FILES: Final = """
package tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class QuickFiles extends LocalFileSystem {
    public QuickFiles() {
        super(new Raw());
    }

    public static void keep(Configuration settings, String beginnings) {
        ArrayList others = new ArrayList();
        for (Iterator each = settings.iterator(); each.hasNext();) {
            String name = (String) ((Map.Entry) each.next()).getKey();
            if (!name.matches("(" + beginnings + ").*")) {
                others.add(name);
            }
        }
        for (Iterator each = others.iterator(); each.hasNext();) {
            settings.unset((String) each.next());
        }
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String text = permission.toString().replace('t', 'x').replace('T', '-');
            Files.setPosixFilePermissions(
                pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
        }
    }
}
"""

CHECKPOINTS: Final = {"spark.sql.streaming.checkpointFileManagerClass": RENAMED}
"""Checkpoints by the file system that is here, where the other way asks ``readlink``."""

KEPT: Final = (
    "file.",
    "fs.AbstractFileSystem.file",
    "fs.automatic.close",
    "fs.client",
    "fs.defaultFS",
    "fs.file",
    "fs.permissions",
    "hadoop.security.authentication",
    "hadoop.security.group",
    "hadoop.tmp",
    "hive",
    "io.",
    "mapreduce.fileoutput",
    "mapreduce.output",
    "parquet",
    "spark",
)
"""How settings of Hadoop begin that something on this machine asks for."""


def use(spark: SparkSession) -> None:
    """Have a session write its files so, and send only settings that count."""
    jvm: Any = spark._jvm
    settings = spark._jsc.hadoopConfiguration()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(FILES)
    # Hadoop keeps a file system for all that ask for local files, whatever their settings.
    known = jvm.org.apache.hadoop.conf.Configuration(settings)
    known.setClassLoader(compiler.getClassLoader())
    known.set("fs.file.impl", "tests.QuickFiles")
    local = jvm.java.net.URI("file:///")
    jvm.org.apache.hadoop.fs.FileSystem.get(local, known).close()
    quick = jvm.org.apache.hadoop.fs.FileSystem.get(local, known)
    assert quick.getClass().getName() == "tests.QuickFiles"
    quick.setWriteChecksum(False)
    quick.keep(settings, "|".join(map(re.escape, KEPT)))
