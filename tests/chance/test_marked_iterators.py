"""Functions that are marked as stateless: the driver finds the mark however they are pickled."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable

import eddyline
from tests.chance.iterator_probes import ADVICE, Chunks, compiled, packed, reason


@eddyline.stateless
def marked(batches: Chunks) -> Chunks:
    largest = 0
    for batch in batches:
        largest = max(largest, len(batch))
        yield batch


PLAIN = compiled("for batch in batches:\n    yield batch")


def test_the_mark_is_found_in_a_function_that_is_pickled_by_name() -> None:
    assert len(packed(marked)[0]) < len(packed(eddyline.stateless(_in_full()))[0])
    assert reason(marked) is None


def test_the_mark_travels_with_a_function_that_is_pickled_in_full() -> None:
    function = _in_full()
    assert str(reason(function)).endswith(ADVICE)
    assert reason(eddyline.stateless(function)) is None
    assert reason(marked, function, PLAIN) is None
    assert str(reason(marked, _in_full())).endswith(ADVICE)


def test_a_method_is_marked_where_it_is_defined() -> None:
    class Model:
        @eddyline.stateless
        def marked(self, batches: Chunks) -> Chunks:
            return iter(batches)

        def other(self, batches: Chunks) -> Chunks:
            return iter(batches)

    assert reason(Model().marked) is None
    assert str(reason(Model().other)).endswith(ADVICE)


def test_what_wraps_a_marked_function_is_not_marked() -> None:
    @functools.wraps(marked)
    def counting(batches: Chunks) -> Chunks:
        return map(operator.add, marked(batches), itertools.count())

    assert str(reason(counting)).endswith(ADVICE)
    assert str(reason(functools.partial(marked))).endswith(ADVICE)
    assert reason(eddyline.stateless(counting)) is None
    assert reason(eddyline.stateless(functools.partial(marked))) is None


def _in_full() -> Callable[[Chunks], Chunks]:
    """Return a function that no module has by its name."""

    def inner(batches: Chunks) -> Chunks:
        return iter(batches)

    return inner
