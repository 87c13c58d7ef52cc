"""The settings that tests run Spark with: it validates every plan, and each step of making it."""

from __future__ import annotations

from typing import Final

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.quick_files import CHECKPOINTS

VALIDATED: Final = {
    "spark.sql.planChangeValidation": "true",
    "spark.sql.planChangeValidation.nullability": "true",
    "spark.sql.lightweightPlanChangeValidation": "true",
}
"""Off by default: a malformed plan runs, until a rule of the optimizer relies on its form."""

SETTINGS: Final = {
    **VALIDATED,
    # Thousands of small queries, each planned and run once: code that the JVM compiles quickly
    # and not well is enough. Files at the beginning of the suite took 0.7 of the time so, those
    # after them as long as with code that is compiled well. No whole-stage code generation; and
    # what else Spark compiles for a query, a tenth of the time, it does without only where it is
    # told that it is tested. The heap has its full size of 1 GB from the start, half of it for
    # what is new: for 115 small queries the JVM took 50 s of CPU, and 54 where the heap grows.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-Xms1g -Xmn480m -XX:ReservedCodeCacheSize=256m -Dspark.testing=true "
    # A process takes half the time to start so: Hadoop starts one for each file that it makes
    # where `quick_files` is not used.
    "-Djdk.lang.Process.launchMechanism=VFORK",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Where it is told that it is tested, Spark also analyzes each query by an analyzer to come.
    "spark.sql.analyzer.singlePassResolver.dualRunWithLegacy": "false",
    # What a sort or a join of a few rows begins with. Of 16 MB, the default, the heap is
    # soon full, and whatever runs then waits for the garbage collector.
    "spark.buffer.pageSize": "1m",
    # Else Spark notes where in the program each column was made: a seventh of the time of tests
    # over many columns.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Each query's plan is also kept as a text, for a page that nobody opens.
    "spark.sql.ui.explainMode": "simple",
    "spark.python.daemon.module": "tests.warm_daemon",
    # Over TCP, whatever a worker answers to plain PySpark waits 40 ms for an acknowledgement:
    # 603 tests of plans took 159 s so, and 120 without. Sparks of their own have the default.
    "spark.python.unix.domain.socket.enabled": "true",
    **CHECKPOINTS,
    # Of dates long ago Spark 3.5 asks which calendar the writer of a file had.
    **({"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"} if MINOR < (4, 0) else {}),
}
"""All settings of the sessions that tests share."""
