"""Values as Spark's settings state them."""

from __future__ import annotations

from eddyline.spark.host.catalyst.gateway import java_class, static


def default_time_zone() -> str:
    """Return the time zone of a session that sets none."""
    return str(static("java.util.TimeZone", "getDefault")().getID())


def bytes_of(text: str) -> int:
    """Return a size as Spark's settings state it, as ``10MB``, in bytes."""
    network = java_class("org.apache.spark.network.util.JavaUtils")
    return int(text) if text.lstrip("-").isdigit() else int(network.byteStringAsBytes(text))
