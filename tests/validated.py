"""The settings that tests run Spark with: it validates every plan, and each step of making it."""

from __future__ import annotations

from typing import Final

VALIDATED: Final = {
    "spark.sql.planChangeValidation": "true",
    "spark.sql.planChangeValidation.nullability": "true",
    "spark.sql.lightweightPlanChangeValidation": "true",
}
"""Off by default: a malformed plan runs, until a rule of the optimizer relies on its form."""
