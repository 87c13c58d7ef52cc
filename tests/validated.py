"""The settings that tests run Spark with: it validates every plan, and each step of making it."""

from __future__ import annotations

from typing import Final

VALIDATED: Final = {
    "spark.sql.planChangeValidation": "true",
    "spark.sql.planChangeValidation.nullability": "true",
    "spark.sql.lightweightPlanChangeValidation": "true",
}
"""Off by default: a malformed plan runs, until a rule of the optimizer relies on its form."""

SETTINGS: Final = {
    **VALIDATED,
    # Thousands of small queries, each planned and run once: code that the JVM compiles quickly
    # and not well is enough. A tenth of the suite took 152 s with these two, 241 without.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}
"""All settings of the sessions that tests share."""
