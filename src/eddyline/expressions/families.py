"""The families of expressions, and where to look up what they say of Spark's classes.

An expression is added in the file of its family: its class, and its entry in the family's
``CATALYST``. A new family is a new file, and one line here.
"""

from __future__ import annotations

from typing import Final

from eddyline.expressions import (
    arithmetic,
    casts,
    choice,
    comparison,
    leaves,
    logic,
    membership,
    spark_alone,
    strings,
)
from eddyline.expressions.catalyst_classes import CatalystClass, yes

FAMILIES: Final = (
    arithmetic,
    casts,
    choice,
    comparison,
    leaves,
    logic,
    membership,
    spark_alone,
    strings,
)

_CLASSES: Final = {entry.name: entry for family in FAMILIES for entry in family.CATALYST}


def catalyst_class(name: str) -> CatalystClass:
    """Return what is known of a class of Catalyst's.

    One that is not known stays with Spark, and may raise.

    >>> catalyst_class("Like").recipe is None, catalyst_class("Unheard").recipe is None
    (False, True)
    """
    return _CLASSES.get(name) or CatalystClass(name, may_raise=yes)
