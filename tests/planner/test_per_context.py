"""One thing for each Spark context."""

from __future__ import annotations

import gc

from eddyline.host.per_context import PerContext


class Context:
    """Stands for a Spark context."""


def test_each_context_has_one_and_the_next_closes_the_last() -> None:
    closed: list[list[str]] = []
    things = PerContext[list[str]](lambda _: ["thing"], closed.append)
    first, second = Context(), Context()
    one = things.of(first)  # type: ignore[arg-type]  # stands for a context
    assert things.of(first) is one  # type: ignore[arg-type]  # stands for a context
    assert not closed
    two = things.of(second)  # type: ignore[arg-type]  # stands for a context
    assert two is not one
    assert closed == [one]


def test_it_goes_with_its_context() -> None:
    things = PerContext[Context](lambda _: Context())
    context = Context()
    things.of(context)  # type: ignore[arg-type]  # stands for a context
    del context
    gc.collect()
    assert not things._made
