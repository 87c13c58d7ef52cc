"""Routes: which precedences are refused."""

from __future__ import annotations

import time

import pytest

from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING


@pytest.mark.parametrize(
    ("precedence", "complaint"),
    [
        ({0: 0b001}, "no order: module 0 after 0$"),
        ({0: 0b010, 1: 0b001}, "no order: module 0 after 1 after 0$"),
        ({0: 0b010, 1: 0b100, 2: 0b010}, "no order: module 1 after 2 after 1$"),
        ({3: 0b001}, "is of module 3, but there are 3$"),
        ({-1: 0b001}, "is of module -1, but there are 3$"),
        ({0: 0b1010}, "module 0 comes after those of the mask 0b1010, but there are 3 modules$"),
        ({0: -2}, "module 0 comes after those of the mask -0b10, but there are 3 modules$"),
    ],
)
def test_a_precedence_that_is_no_order_is_refused(
    precedence: dict[int, int], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Routes(3, precedence)


def test_a_module_may_be_reached_by_several_ways() -> None:
    routes = Routes(4, {0: 0b0110, 1: 0b1000, 2: 0b1000})
    assert routes.candidates(ENTERING) == (3,)


@pytest.mark.parametrize("chain", [range(1000), range(999, -1, -1)])
def test_an_order_of_a_thousand_modules_is_cheap_to_check(chain: range) -> None:
    everything_before = {module: (1 << module) - 1 for module in chain}
    just_before = {module: 1 << module >> 1 for module in chain}
    start = time.perf_counter()
    for precedence in (everything_before, just_before):
        assert Routes(1000, precedence).candidates(ENTERING) == (0,)
    assert time.perf_counter() - start < 0.5
