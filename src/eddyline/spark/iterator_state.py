"""Tells whether an iterator function maps batch to batch and remembers nothing.

Spark feeds an iterator function all batches of a task in order. An eddy feeds it
only some rows of each, in an order of its own, so a function that carries
anything from one batch to the next must stay where Spark put it. The function's
source decides, on the driver; whatever is not plainly harmless is declined.
"""

from __future__ import annotations
