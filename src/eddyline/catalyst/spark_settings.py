"""Values as Spark's settings state them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import TypedDict

from pyspark.sql import SparkSession

from eddyline.catalyst.gateway import java_class, java_session, jvm
from eddyline.catalyst.pipeline import pipeline, questions


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


class JavaFacts(TypedDict):
    """What the texts of Java's values depend on in a JVM, by the names of a block's settings."""

    version: int
    zone: str
    zone_text: str
    zone_hash: int
    first_day_of_week: int
    days_in_first_week: int


def java_facts() -> JavaFacts:
    """Return what the texts of Java's values depend on in the driver's JVM."""
    return _java_facts_of(id(jvm()))


@functools.cache
def _java_facts_of(_gateway: int) -> JavaFacts:
    calendar = java_class("java.util.Calendar").getInstance()
    zone = calendar.getTimeZone()
    return JavaFacts(
        version=int(java_class("java.lang.Runtime").version().feature()),
        zone=str(zone.getID()),
        zone_text=str(zone.toString()),
        zone_hash=int(zone.hashCode()),
        first_day_of_week=int(calendar.getFirstDayOfWeek()),
        days_in_first_week=int(calendar.getMinimalDaysInFirstWeek()),
    )


def settings_of(spark: SparkSession, keys: Sequence[str]) -> Mapping[str, str]:
    """Return what a session sets, without those that it does not set."""
    of_thread = pipeline()
    if of_thread is None:
        values = [spark.conf.get(key, None) for key in keys]
    else:
        text = questions(of_thread).settings(java_session(spark), list(keys))
        values = json.loads(str(text))
    given = zip(keys, values, strict=True)
    return {key: str(value) for key, value in given if value is not None}


def bytes_of(text: str) -> int:
    """Return a size as Spark's settings state it, as ``10MB``, in bytes."""
    return int(text) if text.lstrip("-").isdigit() else _bytes_in(id(jvm()), text)


@functools.cache
def _bytes_in(_gateway: int, text: str) -> int:
    network = java_class("org.apache.spark.network.util.JavaUtils")
    return int(network.byteStringAsBytes(text))
