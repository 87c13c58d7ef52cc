"""What values become in the JVM, to which Spark sends those of plain functions pickled.

A library there (``net.razorvine.pickle``) makes Java's objects of a pickle, and Spark takes the
texts of those objects for strings. Here the same objects are made in Python: their texts, their
hash codes, and so the order in which Java's maps and sets list their entries. Python's own
``None``, ``bool``, ``int``, ``float``, ``str``, ``Decimal`` and ``list`` stand for Java's null,
Boolean, Integer, Long or BigInteger (by size), Double, String, BigDecimal and ArrayList, a
``tuple`` for an ``Object[]``, and ``bytes`` for a ``byte[]``.
"""

from __future__ import annotations

from eddyline.errors import ResultNotTransferableError
from eddyline.tasks.java.containers import JavaMap, PrimitiveArray, Single
from eddyline.tasks.java.objects import Value, text_of
from eddyline.tasks.java.transfer import Transfer

__all__ = [
    "JavaMap",
    "PrimitiveArray",
    "ResultNotTransferableError",
    "Single",
    "Transfer",
    "Value",
    "text_of",
]
