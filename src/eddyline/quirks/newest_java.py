"""The newest Java that a Spark runs on."""

from __future__ import annotations


def newest_java(minor: tuple[int, int]) -> int | None:
    """Return the feature release, None for a Spark that runs on all there are.

    ``minor`` are the first two numbers of PySpark's version. Up to 4.1 Hadoop asks for its user by
    ``Subject.getSubject``, which Java refuses from 23 on: 3.5, 4.0.5 and 4.1.4 do not start
    on Java 25; 4.0.5 and 4.1.4 do on 21, and 4.2.1 on 25.

    >>> newest_java((4, 1)), newest_java((4, 2))
    (22, None)
    """
    return 22 if minor < (4, 2) else None
