"""Values as Spark's settings state them."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from eddyline.spark.host.catalyst.gateway import java_class, jvm


def default_settings(keys: tuple[str, ...]) -> Mapping[str, str]:
    """Return what this Spark takes for settings of a session that does not set them.

    Without those that it does not know.
    """
    return _default_settings_in(id(jvm()), keys)


@functools.cache
def _default_settings_in(_gateway: int, keys: tuple[str, ...]) -> Mapping[str, str]:
    nothing_set = java_class("org.apache.spark.sql.internal.SQLConf")()
    return {
        key: str(nothing_set.getConfString(key)) for key in keys if nothing_set.isModifiable(key)
    }


def bytes_of(text: str) -> int:
    """Return a size as Spark's settings state it, as ``10MB``, in bytes."""
    network = java_class("org.apache.spark.network.util.JavaUtils")
    return int(text) if text.lstrip("-").isdigit() else int(network.byteStringAsBytes(text))
