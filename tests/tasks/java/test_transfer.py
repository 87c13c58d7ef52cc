"""Values become what the JVM's own unpickler makes of them, to the order of maps and sets."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.serializers import CPickleSerializer
from pyspark.sql import SparkSession

from eddyline.blocks.filter_block import JavaRuntime
from eddyline.errors import ResultNotTransferableError
from eddyline.planner.claim.session_settings import session_settings
from eddyline.tasks.java import Transfer, text_of
from eddyline.tasks.java.unpickling import as_in_java
from tests.properties import examples
from tests.tasks.java.odd_values import (
    KNOWN,
    PLACE,
    REFUSED,
    UNPICKLABLE,
    random_value,
    returned,
)

REFUSAL = "<refused>"


def pickled(value: object) -> bytes:
    made: bytes = CPickleSerializer().dumps(value)  # type: ignore[no-untyped-call]
    return made


def said_by_java(spark: SparkSession, pickle: bytes) -> str:
    """Return the text of the list that the JVM makes of a pickle."""
    jvm: Any = spark._jvm
    try:
        return PLACE.sub("@", jvm.net.razorvine.pickle.Unpickler().loads(pickle).toString())
    except Py4JJavaError:
        return REFUSAL


def said_here(spark: SparkSession, value: object, pickle: bytes | None = None) -> str:
    """Return the text of what stands for it, by the long way if a pickle is given."""
    java = session_settings(spark).java
    try:
        sent = Transfer(java)(value) if pickle is None else as_in_java(pickle, java)
    except ResultNotTransferableError:
        return REFUSAL
    return PLACE.sub("@", text_of(sent, java.version))


@pytest.mark.parametrize("name", KNOWN)
def test_texts_are_those_of_javas_objects(spark: SparkSession, name: str) -> None:
    value = [KNOWN[name]]
    pickle = pickled(value)
    said = said_by_java(spark, pickle)
    assert said != REFUSAL
    assert said_here(spark, value, pickle) == said
    assert said_here(spark, value) == said


@pytest.mark.parametrize("name", REFUSED)
def test_what_java_cannot_unpickle_is_refused(spark: SparkSession, name: str) -> None:
    value = [REFUSED[name]]
    assert said_by_java(spark, pickled(value)) == REFUSAL
    assert said_here(spark, value) == REFUSAL


@pytest.mark.parametrize("name", UNPICKLABLE)
def test_what_cannot_be_pickled_raises_what_pyspark_raises(name: str) -> None:
    with pytest.raises(Exception, match="cannot pickle") as said:
        pickled(UNPICKLABLE[name])
    with pytest.raises(type(said.value), match=re.escape(str(said.value))):
        Transfer(JavaRuntime())(UNPICKLABLE[name])


@given(st.lists(returned, max_size=6))
@examples(30, suppress_health_check=list(HealthCheck))
def test_any_nested_values_have_the_texts_of_javas(spark: SparkSession, values: list[Any]) -> None:
    pickle = pickled(values)
    said = said_by_java(spark, pickle)
    assert said_here(spark, values, pickle) == said
    assert said_here(spark, values) == said


def test_random_nested_values_have_the_texts_of_javas(spark: SparkSession) -> None:
    random = Random(44)
    for _ in range(5):
        values = [random_value(random) for _ in range(50)]
        pickle = pickled(values)
        said = said_by_java(spark, pickle)
        assert said_here(spark, values, pickle) == said
        assert said_here(spark, values) == said
