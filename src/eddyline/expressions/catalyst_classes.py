"""What the families say about Spark's own expressions: how they are built here, and if they raise.

Spark's expressions are Catalyst's classes. They are known here by name, and as plain data from the
reader of plans: no family asks a JVM or imports Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import pyarrow as pa

from eddyline.expressions.expression import Expression
from eddyline.expressions.vector import ErrorCondition

if TYPE_CHECKING:  # the family of constants has recipes, too
    from eddyline.expressions.leaves import Literal

FLOATS: Final = frozenset({'"double"', '"float"'})
WHOLE: Final = frozenset({'"byte"', '"short"', '"integer"', '"long"'})
NUMBERS: Final = FLOATS | WHOLE
"""Spark's types of numbers, as JSON; decimals are not among them."""


class EvaluationMode(StrEnum):
    """What an arithmetic expression or a cast does where it has no result; Spark's ``EvalMode``."""

    LEGACY = "LEGACY"  # wraps around, clamps, or gives NULL
    ANSI = "ANSI"  # raises
    TRY = "TRY"  # gives NULL


class NotTranslatedError(Exception):
    """A recipe has no exact equivalent of what it is given; says what that is."""


class CatalystFields(Protocol):
    """One of Spark's expressions by itself: its class, without the package, and its fields."""

    @property
    def name(self) -> str:
        """The class."""

    @property
    def fields(self) -> Mapping[str, object]:
        """The fields that Catalyst's JSON shows."""

    def hidden(self, field: str) -> str:
        """Return a field that Catalyst's JSON leaves out, as text; asks the JVM."""


class Ingredients(CatalystFields, Protocol):
    """What a recipe is given: an expression of Spark's whose operands are translated when asked.

    What cannot be translated ends the recipe.
    """

    def operand(self, position: int = 0) -> Expression:
        """Return an operand translated."""

    def operands(self) -> tuple[Expression, ...]:
        """Return all operands translated."""

    def below(self, position: int) -> Ingredients:
        """Return an operand as what another recipe would be given, to look into it."""

    def declared_type(self) -> pa.DataType:
        """Return the type in the expression's own field."""

    def literal(self) -> Literal:
        """Return the exact value of a ``Literal`` operand."""

    def constant_text(self, where: str) -> str:
        """Return the text of what must be a constant in ``where``."""

    def members(self, a_type: pa.DataType) -> Iterable[Literal]:
        """Return the members of an ``InSet``."""


class SparkOperator(CatalystFields, Protocol):
    """An expression of Spark's, asked about what Spark will do with it."""

    @property
    def kind(self) -> str:
        """The type of its values, as JSON."""

    @property
    def operand_names(self) -> Sequence[str]:
        """The classes of its operands."""

    def operand_kind(self, position: int) -> str:
        """Return the type of an operand, as JSON."""

    def constant(self, position: int) -> str | None:
        """Return an operand as text; None where it is no constant."""

    def hidden_texts(self, field: str) -> Sequence[str]:
        """Return a list of texts that Catalyst's JSON leaves out."""

    def always_casts(self) -> bool:
        """Whether Spark says that a ``Cast`` has a result for every value."""

    def groups_in(self, pattern: str) -> int | None:
        """Return how many groups a regular expression of Java's has; None where it is not valid."""


Recipe: TypeAlias = Callable[[Ingredients], Expression]
"""Builds an expression; raises :class:`NotTranslatedError` for what is not evaluated exactly."""

Question: TypeAlias = Callable[[SparkOperator], bool]


def no(_: SparkOperator) -> bool:
    """Answer a question about a class with no, for any operator."""
    return False


def yes(_: SparkOperator) -> bool:
    """Answer a question about a class with yes, for any operator."""
    return True


@dataclass(frozen=True, slots=True)
class CatalystClass:
    """What is known of a class of Catalyst's, by its name without the package.

    Without a ``recipe`` an expression stays with Spark. ``may_raise`` says whether one could
    raise on some row by itself, where its operands do not. One that ``is_strict`` looks at all
    operands of every row, and is NULL where one is. If it is NULL in no other case, ``condition``
    is Spark's name for its errors: it can be tried.
    """

    name: str
    recipe: Recipe | None = None
    may_raise: Question = no
    is_strict: Question = no
    condition: Callable[[SparkOperator], ErrorCondition] | None = None


def mode_of(node: CatalystFields) -> EvaluationMode:
    """Return what Spark's arithmetic, a cast or an access to an array does without a result."""
    if "failOnError" in node.fields:  # of UnaryMinus and Abs, which have no mode
        return EvaluationMode.ANSI if node.fields["failOnError"] is True else EvaluationMode.LEGACY
    return EvaluationMode(node.hidden("evalMode"))


def is_ansi(node: CatalystFields) -> bool:
    """Whether Spark's expression raises where it has no result."""
    return mode_of(node) is EvaluationMode.ANSI
