"""What the families say of Spark's classes."""

from __future__ import annotations

from collections import Counter

from eddyline.expressions import Expression, catalyst_class
from eddyline.expressions.families import FAMILIES


def test_no_class_of_spark_is_in_two_families() -> None:
    names = Counter(entry.name for family in FAMILIES for entry in family.CATALYST)
    assert [name for name, times in names.items() if times > 1] == []


def kinds_below(kind: type[Expression]) -> dict[str, type[Expression]]:
    below = {sub.__name__: sub for sub in kind.__subclasses__() if "eddyline." in sub.__module__}
    for sub in list(below.values()):
        below |= kinds_below(sub)
    return below


def test_each_expression_says_all_of_itself() -> None:
    kinds = kinds_below(Expression)
    assert len(kinds) > 15
    for name in set(kinds) - {"OfOne", "TextTest"}:
        bases = kinds[name].__mro__
        said = {word for base in bases[: bases.index(Expression)] for word in vars(base)}
        assert {"fault", "text"} <= said, name
        assert {"run", "program"} & said, name


def test_what_nobody_knows_may_raise_and_has_no_recipe() -> None:
    unknown = catalyst_class("Unheard")
    assert unknown.recipe is None
    assert unknown.condition is None
