"""Functions of Spark's own, which are not looked through each time that they are handed on.

Before each job Spark reads the classes of its functions, byte by byte, for references that the
functions need not take along and for a ``return`` in them, and serializes the functions once more
than it has to: a fifth of what the JVM computes for small queries, where it has run such before.
That is of use to functions written in Scala, which no test of ours has.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from eddyline.quirks.pyspark_at_hand import MINOR

CLEANER: Final = "org.apache.spark.util.SparkClosureCleaner$"

AS_THEY_ARE: Final = """
package org.apache.spark.util;

public final class SparkClosureCleaner$ {
    public static final SparkClosureCleaner$ MODULE$ = new SparkClosureCleaner$();

    public Object clean(Object function, boolean serialized, boolean deeply) {
        return function;
    }

    public boolean clean$default$2() {
        return true;
    }

    public boolean clean$default$3() {
        return true;
    }
}
"""
"""What stands in for Spark's class of that name, and has its methods in Spark 4.3."""

DEFINING: Final = """
package tests;

import java.lang.invoke.MethodHandles;

public class Defining {
    public boolean beside(Class other, byte[] code) throws IllegalAccessException {
        try {
            MethodHandles.privateLookupIn(other, MethodHandles.lookup()).defineClass(code);
            return true;
        } catch (LinkageError known) {  // in a JVM that has run something before
            return false;
        }
    }
}
"""


def use(spark: SparkSession) -> None:
    """Have a session that has run nothing yet take functions as they are."""
    if MINOR != (4, 3):
        return
    jvm: Any = spark._jvm
    cleaner, defining = (jvm.org.codehaus.janino.SimpleCompiler() for _ in range(2))
    cleaner.setParentClassLoader(jvm.java.lang.ClassLoader.getPlatformClassLoader())
    cleaner.cook(AS_THEY_ARE)
    defining.cook(DEFINING)
    definer = defining.getClassLoader().loadClass("tests.Defining").newInstance()
    beside = jvm.java.lang.Class.forName("org.apache.spark.util.Utils")
    definer.beside(beside, cleaner.getBytecodes().get(CLEANER))
