"""What can be marked as stateless, and what is said of the rest."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import LongType

import eddyline
from eddyline.stateless_mark import is_marked_stateless


def passing(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    return iter(batches)


class Passing:
    def __call__(self, batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        return iter(batches)

    def each(self, batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        return iter(batches)


@pytest.mark.parametrize("function", [passing, functools.partial(passing), Passing()])
def test_the_mark_returns_the_very_function(function: Callable[..., object]) -> None:
    assert not is_marked_stateless(function)
    assert eddyline.stateless(function) is function
    assert is_marked_stateless(function)
    assert is_marked_stateless(pickle.loads(pickle.dumps(function)))  # noqa: S301 - our own


def test_what_spark_returns_is_not_marked() -> None:
    made = pandas_udf(passing, LongType())  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="below @pandas_udf or @arrow_udf"):
        eddyline.stateless(made)
    with pytest.raises(TypeError, match="below @pandas_udf or @arrow_udf"):
        eddyline.stateless(made._unwrapped)


@pytest.mark.parametrize("thing", [Passing, int])
def test_a_class_is_not_marked(thing: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="marks a function, not <class"):
        eddyline.stateless(thing)


@pytest.mark.parametrize("thing", [iter, Passing().each, 3])
def test_what_takes_no_attributes_is_not_marked(thing: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="takes no attributes: put @eddyline"):
        eddyline.stateless(thing)
