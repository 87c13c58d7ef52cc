"""Selections of a template, made at once, are those that each would be by itself."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.expressions import (
    And,
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    with_arguments,
)
from eddyline.standing.engine.predicate_templates import selections_of
from eddyline.standing.engine.ranges import Range
from eddyline.standing.engine.selections import split

NUMBER, FLOAT, TEXT = (
    Argument(n, t) for n, t in enumerate((pa.int64(), pa.float64(), pa.string()))
)
CONSTANTS = (pa.int64(), pa.float64(), pa.string())

operators = st.sampled_from(
    [each for each in ComparisonOperator if each is not ComparisonOperator.NULL_SAFE_EQUAL]
)


@st.composite
def with_parameter(draw: st.DrawFn) -> Expression:
    """Draw a comparison of a column with a parameter, either first."""
    number = draw(st.integers(0, 2))
    column, parameter = (NUMBER, FLOAT, TEXT)[number], Argument(-1 - number, CONSTANTS[number])
    sides = (column, parameter) if draw(st.booleans()) else (parameter, column)
    return Comparison(draw(operators), *sides)


@st.composite
def without(draw: st.DrawFn) -> Expression:
    """Draw a predicate that is one box."""
    bound = Literal(draw(st.integers(-3, 3)), pa.int64())
    return draw(
        st.sampled_from(
            [
                Comparison(draw(operators), NUMBER, bound),
                Not(IsNull(FLOAT)),
                IsNull(TEXT),
                Like(TEXT, "a%", "\\"),
            ]
        )
    )


floats = st.sampled_from([None, -1.0, -0.0, 0.0, 2.5, float("nan"), float("inf")])
rows = st.lists(
    st.tuples(st.none() | st.integers(-3, 3), floats, st.none() | st.text("ab", max_size=2)),
    min_size=1,
    max_size=4,
)


@given(st.lists(with_parameter(), min_size=1, max_size=3), st.lists(without(), max_size=2), rows)
def test_equal_to_each_by_itself(
    changing: list[Expression],
    fixed: list[Expression],
    parameters: list[tuple[int | None, float | None, str | None]],
) -> None:
    predicate = And((*fixed, *changing))
    columns = [pa.array([row[n] for row in parameters], CONSTANTS[n]) for n in range(3)]
    found = selections_of(predicate, columns)
    assert found is not None
    for row, selection in zip(parameters, found, strict=True):

        def filled(
            argument: Argument, row: tuple[int | float | str | None, ...] = row
        ) -> Expression:
            if argument.index >= 0:
                return argument
            return Literal(row[-1 - argument.index], argument.type)

        alone = split(with_arguments(predicate, filled))
        assert selection.rest == alone.rest == ()
        assert [written(box) for box in selection.boxes] == [written(box) for box in alone.boxes]


def written(box: object) -> set[tuple[str, str]]:
    assert isinstance(box, dict)
    assert all(isinstance(range_, Range) for range_ in box.values())
    return {(str(attribute), str(range_)) for attribute, range_ in box.items()}


def test_what_has_to_be_split_one_by_one() -> None:
    low = Comparison(ComparisonOperator.GREATER, NUMBER, Argument(-1, pa.int64()))
    columns = [pa.array([1, 2])]
    assert selections_of(Or((low, IsNull(TEXT))), columns) is None
    assert selections_of(And((low, Or((IsNull(TEXT), IsNull(FLOAT))))), columns) is None
    null_safe = Comparison(ComparisonOperator.NULL_SAFE_EQUAL, NUMBER, Argument(-1, pa.int64()))
    assert selections_of(null_safe, columns) is None
    assert selections_of(IsNull(TEXT), columns) is None
