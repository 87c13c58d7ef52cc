"""DataFrames of Spark Connect, each with what a client by itself makes of it.

A client sees through them without Spark's optimizer, or leaves them as they are: a shape says what
``explain`` must tell, and what not. Rows, columns and types are those of plain Spark either way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql.functions import col, lit, udf
from pyspark.sql.types import BooleanType, DateType, DoubleType, LongType, StringType

REMEMBERS: Final = "and remembers"
HANDS_ON: Final = "and hands on the results of"

Build = Callable[[SparkSession], DataFrame]


@dataclass(frozen=True)
class ClientShape:
    """A query; texts of which ``told`` are in its explanation, and ``untold`` not.

    ``raises`` is what plain Spark says against it.
    """

    build: Build
    told: tuple[str, ...]
    untold: tuple[str, ...]
    settings: dict[str, str]
    raises: str

    @property
    def name(self) -> str:
        return self.build.__name__


CLIENT_SHAPES: list[ClientShape] = []


def shape(
    *told: str,
    untold: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
    raises: str = "",
) -> Callable[[Build], Build]:
    """Add a shape."""

    def add(build: Build) -> Build:
        CLIENT_SHAPES.append(ClientShape(build, told, untold, settings or {}, raises))
        return build

    return add


# ---------------------------------------------------------------- functions


@udf(BooleanType(), useArrow=True)
def even(n: int) -> bool:
    return n % 2 == 0


@udf(BooleanType(), useArrow=False)
def pickled_third(n: int) -> bool:
    return n % 3 == 0


@udf(LongType(), useArrow=True)
def drawn(n: int) -> int:
    return n + int(random.random())  # which is 0, and looks like chance


@udf(StringType(), useArrow=True)
def label(n: int) -> str:
    return f"<{n}>"


@udf(StringType(), useArrow=True)
def loud(text: str) -> str:
    return text.upper() + "!"


@udf(BooleanType(), useArrow=True)
def alike(one: str, other: str) -> bool:
    return one[1] == other[1]


@udf(BooleanType(), useArrow=True)
def longer(one: str, other: str) -> bool:
    return len(one) > len(other)


@udf(DoubleType(), useArrow=False)
def as_it_is(n: int) -> int:
    return n  # as a double, Spark makes NULL of it


@udf(BooleanType(), useArrow=False)
def is_whole(n: int) -> bool:
    return n >= 0


@udf(BooleanType(), useArrow=False)
def is_not_seven(n: int) -> bool:
    return n != 7


@udf(StringType(), useArrow=False)
def kind(value: Any) -> str:  # noqa: ANN401 - whatever comes
    return type(value).__name__


@udf(LongType(), useArrow=True)
def fails_on_seven(n: int) -> int:
    if n == 7:
        raise ValueError("seven")
    return n


noise = udf(lambda n: n, LongType(), useArrow=True).asNondeterministic()


def numbers(spark: SparkSession) -> DataFrame:
    """Return 120 rows: ``id``, ``k`` from 0 to 9, and ``w``, another text for each."""
    some = spark.range(0, 120, 1, 1).withColumn("k", col("id") % 10)
    return some.withColumn("w", F.concat(lit("w"), (col("id") * 7 % 120).cast("string")))


def others(spark: SparkSession) -> DataFrame:
    """Return 120 rows: ``n`` as ``id`` is, ``m`` from 1 to 10, and ``v``, another text for each."""
    some = numbers(spark).select(col("id").alias("n"), (col("k") + 1).alias("m"), "w")
    return some.withColumnRenamed("w", "v")


# ---------------------------------------------------------------- filters with one term


@shape(f"computes even {REMEMBERS}", "the function still remembers")
def one_term(spark: SparkSession) -> DataFrame:
    return numbers(spark).filter(even("k") & (col("id") > 5))


@shape(f"computes label {REMEMBERS}")
def one_function_in_several_filters(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") > "<2>").filter(col("id") > 7)
    return some.filter((label("k") < "<8>") & ~label("k").isin("<4>", "<5>"))


@shape("fewer than two terms", untold=(REMEMBERS,))
def one_term_beside_what_is_left(spark: SparkSession) -> DataFrame:
    return numbers(spark).filter(even("k") & (F.concat(label("k"), lit("x")) > "<5"))


@shape(f"computes pickled_third {REMEMBERS}")
def one_term_of_each_side_of_a_join(spark: SparkSession) -> DataFrame:
    joined = numbers(spark).join(others(spark), col("id") == col("n") * 2)
    return joined.filter(pickled_third("k")).filter(pickled_third("m"))


@shape(f"computes pickled_third {REMEMBERS}", f"computes even {REMEMBERS}")
def kinds_of_functions_that_may_stay_above_a_join(spark: SparkSession) -> DataFrame:
    joined = numbers(spark).join(others(spark), col("id") == col("n"), "left")
    return joined.filter(pickled_third("k") & even("m"))


@shape("fewer than two terms", untold=(REMEMBERS,))
def one_term_that_another_guards(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(is_not_seven("k")).withColumn("z", col("k") + 0)
    return some.select("id", "z").filter(fails_on_seven("z") > 3)


@shape(untold=(HANDS_ON,))
def not_handed_below_what_it_guards(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(is_not_seven("k")).select("k", is_not_seven("k").alias("s"))
    return some.filter(fails_on_seven("k") > 3)


@shape(raises="seven")
def one_term_that_raises(spark: SparkSession) -> DataFrame:
    return numbers(spark).filter(fails_on_seven("k") > 3)


@shape("is_whole(id)", "as_it_is(k) IS NULL")
def a_day_that_is_written_down(spark: SparkSession) -> DataFrame:
    day = udf(lambda n: __import__("datetime").date(2022, 1, n + 1), DateType(), useArrow=True)
    late = (day("k") >= lit("2022-01-03").cast("date")) & is_whole("id") & as_it_is("k").isNull()
    return numbers(spark).filter(late)


# ---------------------------------------------------------------- values that are handed on


@shape(f"{HANDS_ON} label", untold=(REMEMBERS,))
def handed_to_a_select_list(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.select("id", label("k").alias("l"), label("k"), F.upper(label("k")))


@shape(f"{HANDS_ON} label", f"computes loud {REMEMBERS}")
def handed_beside_other_functions(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter((label("k") != "<3>") & even("id") & (col("id") > 3))
    return some.select(loud("w").alias("other"), F.concat(label("k"), loud("w")))


@shape(f"{HANDS_ON} label", untold=(REMEMBERS,))
def handed_beside_a_star(spark: SparkSession) -> DataFrame:
    return numbers(spark).filter(label("k") != "<3>").select(label("k"), "*", label("k"))


@shape(f"{HANDS_ON} label", untold=(REMEMBERS,))
def handed_to_an_added_column(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.withColumn("l", label("k")).withColumn("m", F.upper("l"))


@shape(f"{HANDS_ON} label", untold=(REMEMBERS,))
def handed_to_groups(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.groupBy(label("k"), "k").agg(F.count("*"), F.upper(label("k")).alias("u"))


@shape(
    f"{HANDS_ON} label",
    untold=(REMEMBERS,),
    settings={"spark.sql.retainGroupColumns": "false"},
)
def handed_to_groups_that_are_not_shown(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.groupBy(label("k")).agg(F.count("*"), F.max(F.upper(label("k"))))


@shape(f"{HANDS_ON} label", untold=(REMEMBERS,))
def handed_through_columns_of_a_chain(spark: SparkSession) -> DataFrame:
    some = numbers(spark).withColumn("l", label("k")).filter(col("l") != "<3>")
    return some.filter(even("id")).select("id", some.l, label("k").alias("m"))


@shape(f"{HANDS_ON} label", settings={"spark.sql.ansi.enabled": "false"})
def handed_without_ansi(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter((label("k") != "<7>") & (loud("w") > "W2"))
    return some.select(label("k").alias("l"), (col("id") / (col("k") - 5)).alias("q"))


@shape(raises="seven")
def handed_on_what_raises(spark: SparkSession) -> DataFrame:
    return numbers(spark).filter(fails_on_seven("k") > 3).select(fails_on_seven("k").alias("f"))


@shape(f"computes label {REMEMBERS}", untold=(HANDS_ON,))
def not_handed_where_a_struct_has_all_columns(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.select(F.struct("*").alias("all"), label("k").alias("l"))


@shape(f"computes label {REMEMBERS}", untold=(HANDS_ON,))
def not_handed_beside_text(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.select(F.expr("to_json(struct(*))").alias("all"), label("k").alias("l"))


@shape(f"computes label {REMEMBERS}", untold=(HANDS_ON,))
def not_handed_to_windows_and_cubes(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    ranked = F.row_number().over(Window.orderBy("id"))
    ranks = some.select(ranked.alias("r"), label("k").alias("l"))
    cubes = some.cube(label("k").alias("l")).agg(F.count("*"))
    shown = [one.select(F.concat_ws("|", "*").alias("t")) for one in (ranks, cubes)]
    return shown[0].union(shown[1])


@shape(f"computes label {REMEMBERS}", untold=(HANDS_ON,))
def not_handed_to_what_is_called_for_each_group(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    return some.groupBy("k").agg(label("k").alias("l"), F.upper(label("k")).alias("u"))


@shape(f"computes label {REMEMBERS}", untold=(HANDS_ON,))
def remembered_in_grouping_sets(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>")
    sets = some.groupingSets([[label("k")], [label("k"), col("w")], []], label("k"), col("w"))
    return sets.agg(F.count("*"))


@shape(f"computes label {REMEMBERS}", untold=(HANDS_ON,))
def not_handed_through_a_limit(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(label("k") != "<3>").limit(20)
    return some.select("id", label("k").alias("l"))


@shape(untold=(HANDS_ON,))
def not_handed_where_nothing_is_certain(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter((noise("k") > 3) & (label("k") != "<3>"))
    return some.select("id", noise("k").alias("l"))


@shape(untold=(HANDS_ON, f"computes drawn {REMEMBERS}"))
def not_handed_where_chance_may_be(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter((drawn("k") > 3) & (label("k") != "<5>"))
    return some.select("id", drawn("k").alias("l"))


@shape(untold=(REMEMBERS,))
def a_name_that_tells_of_a_keyword(spark: SparkSession) -> DataFrame:
    return numbers(spark).select(label(n=col("k")))  # type: ignore[call-arg]  # it takes any


@shape(f"computes label {REMEMBERS}")
def letters_of_another_size(spark: SparkSession) -> DataFrame:
    return numbers(spark).filter(label("k") != "<3>").select("ID", label("K"), label("k"))


@shape(untold=(HANDS_ON,))
def not_handed_into_a_nest(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter(as_it_is("id").isNull() & is_whole("id"))
    return some.select(kind(as_it_is("id")).alias("inner"))


@shape("is_whole(id)")
def not_handed_into_a_nest_of_an_added_column(spark: SparkSession) -> DataFrame:
    some = numbers(spark).withColumn("s", as_it_is("id")).withColumn("t", kind(as_it_is("id")))
    return some.filter(col("s").isNull() & is_whole("id"))


@shape(f"computes label {REMEMBERS}")
def what_is_grouped_by_is_known_again(spark: SparkSession) -> DataFrame:
    grouped = numbers(spark).groupBy(label("k"))
    return grouped.agg(F.upper(label("k")).alias("u"), F.count(label("k")))


@shape(untold=(REMEMBERS, HANDS_ON))
def what_is_grouped_by_inside_of_a_nest(spark: SparkSession) -> DataFrame:
    some = numbers(spark).filter((label("k") != "<3>") & even("id"))
    return some.groupBy(label("k").alias("l")).agg(loud(label("k")).alias("u"))


# ---------------------------------------------------------------- limits above sorts


@shape("computes loud")
def latest(spark: SparkSession) -> DataFrame:
    some = numbers(spark).select(col("id").alias("n"), "k", loud("w"), loud("w").alias("l"))
    return some.orderBy(F.desc("k"), some.n).limit(7)


@shape("computes loud")
def latest_with_added_columns(spark: SparkSession) -> DataFrame:
    some = numbers(spark)
    more = some.withColumn("l", loud("w")).withColumns({"w": loud("l"), "u": F.upper("w")})
    few = more.orderBy(some.id.desc()).limit(7)
    return few.select(few.l, more.w, "u", few.id).filter(few.k != 8)


@shape("computes loud")
def latest_beside_a_star(spark: SparkSession) -> DataFrame:
    more = numbers(spark).select("*", F.upper("w"), loud("w").alias("l"), lit(3).alias("c"))
    in_order = more.orderBy(more.id.desc())
    return in_order.offset(2).limit(7).select(in_order.l, "*")


@shape("computes fails_on_seven")
def latest_without_what_raises(spark: SparkSession) -> DataFrame:
    some = numbers(spark).select("id", fails_on_seven((col("k") + 1) % 7).alias("f"))
    return some.orderBy("id").limit(7)


@shape(raises="DIVIDE_BY_ZERO")
def latest_beside_what_raises(spark: SparkSession) -> DataFrame:
    some = numbers(spark).select("id", loud("w").alias("l"), (lit(1) / (col("id") - 5)).alias("q"))
    return some.orderBy(F.desc("id")).limit(7)


@shape("computes loud")
def sorted_by_what_a_function_makes(spark: SparkSession) -> DataFrame:
    return numbers(spark).select("id", loud("w").alias("l")).orderBy("l").limit(7)


@shape("computes loud")
def sorted_by_what_is_made(spark: SparkSession) -> DataFrame:
    some = numbers(spark).select((-col("id")).alias("id"), loud("w").alias("l"))
    return some.orderBy("id").limit(7)


@shape("computes loud")
def latest_with_names_of_each_other(spark: SparkSession) -> DataFrame:
    some = numbers(spark).select("id", loud("w").alias("l"), F.upper("l").alias("u"))
    return some.orderBy(F.desc("id")).limit(7)


@shape()
def latest_of_chance(spark: SparkSession) -> DataFrame:
    some = numbers(spark).select("id", noise("id").alias("r"))
    return some.orderBy(F.desc("id")).limit(7)


# ---------------------------------------------------------------- above joins


@shape("alike(w, v)", "longer(w, v)", "in any order")
def both_sides_of_a_join(spark: SparkSession) -> DataFrame:
    one, other = numbers(spark), others(spark)
    joined = one.join(other, one.k == other.m)
    return joined.filter(alike(one.w, other.v) & longer("w", "v")).select("id", "n")


@shape("alike(w, v)", "longer(w, v)", "in any order", f"computes even {REMEMBERS}")
def both_sides_and_one_side(spark: SparkSession) -> DataFrame:
    joined = numbers(spark).crossJoin(others(spark).filter(col("n") < 9))
    return joined.filter(alike("w", "v") & longer("w", "v") & (col("k") == col("m")) & even("k"))


@shape("above a join", untold=("in any order",))
def both_sides_of_an_outer_join(spark: SparkSession) -> DataFrame:
    there = F.coalesce(col("v"), lit("w"))
    joined = numbers(spark).join(others(spark), col("id") == col("n"), "left")
    return joined.filter(alike("w", there) & ~longer(there, "w"))
