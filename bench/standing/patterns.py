r"""``python -m bench patterns``: rules that look for a pattern in log lines, RLIKE beside LIKE.

Ten thousand rules with a regular expression each, as people write them (alternatives, classes,
anchors, quantifiers, some ``(?i)``), and ten thousand with a LIKE pattern of the same subjects,
over the same log lines, a file a micro-batch. Each run is a job of its own; the two kinds take
turns. The first micro-batch of a run, in which workers index the patterns, is left out.

Then three hundred of the regular expressions beside plain Spark: a join with the table of rules,
once with the rules broadcast and once with the lines (so that a pattern is compiled once and not
for each pair), and one array of CASE expressions with constant patterns.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.standing.rules import written
from bench.turns import Spread, in_turns
from eddyline.standing.standing_queries import StandingQueries

SCHEMA: Final = "id bigint, message string"

RULES: Final = 10_000
SOME_RULES: Final = 300
"""Rules beside plain Spark: all of them would take it minutes a micro-batch."""

LINES: Final = 20_000
"""Events of a micro-batch."""

CHECKED_LINES: Final = 500
"""Events by which all rules are compared with plain Spark."""

BATCHES: Final = 6
"""Files; the first of them is not counted."""

SUBJECTS: Final = 12_000
"""Users, paths and hosts that lines are about: most of them stand in some rule."""

QUERY: Final = "SELECT id FROM events WHERE message {} :pattern"


class PatternPair(NamedTuple):
    """What a rule looks for, as a regular expression and as a LIKE pattern."""

    regular: str
    like: str


KINDS: Final = (
    PatternPair(
        r"(?i)failed password for (invalid user )?user{n} from \d{{1,3}}\.\d{{1,3}}\.",
        "%ailed password for %user{n} from%",
    ),
    PatternPair(r"^\w{{3}} +\d+ [\d:]+ host{n} .*(denied|refused|dropped)", "%host{n} %denied%"),
    PatternPair(r"sshd\[\d+\]: .* (for|user=)\s?user{n} ", "%sshd[%user{n} %"),
    PatternPair(r'"(GET|POST|PUT) /app{n}/[^ "?]*\.(php|aspx?|jsp)', "%/app{n}/%.php%"),
    PatternPair(r"path=/app{n}/\S* .*status=(5\d\d|40[13])", "%path=/app{n}/%status=5%"),
    PatternPair(r"(user{n}|uid={n}) .*(sudo|su|doas)[:\[]", "%user{n} %sudo%"),
    PatternPair(r"(?i)host{n}[^a-z0-9].*(error|fatal|panic)", "%host{n} %error%"),
    PatternPair(r"table app_?{n}[\s,;].*(timed out|deadlock)$", "%table app_{n} %timed out"),
)

LINE_KINDS: Final = (
    "Nov 28 10:{m:02}:41 host{h} sshd[{p}]: Failed password for user{n} from 10.{a}.{b}.7 port {p}",
    "Nov 28 10:{m:02}:42 host{h} sshd[{p}]: Accepted key for user{n} from 10.{a}.{b}.9 port {p}",
    "Nov 28 10:{m:02}:43 host{n} kernel: [UFW BLOCK] IN=eth0 SRC=10.{a}.{b}.3 DPT={p} was {w}",
    '10.{a}.{b}.1 - - [28/Nov/2026:10:{m:02}:44] "GET /app{n}/index.{e}?q={p} HTTP/1.1" 200 {p}',
    "level=warn path=/app{n}/{e} method=POST duration={p}ms status={s} trace=00{p}{a}{b}",
    "Nov 28 10:{m:02}:45 host{h} user{n} tty=pts/{a} sudo[{p}]: command=/usr/bin/systemctl {w}",
    "2026-11-28T10:{m:02}:46Z host{n} app[{p}]: worker {a} {w} after {b} attempts, giving up now",
    "ERROR database: statement on table app_{n} in shard {a} of {b} by session {p} timed out",
)


def make_rules(count: int, seed: int = 1) -> pd.DataFrame:
    """Return rules of all kinds, with both of their patterns."""
    chance = random.Random(seed)
    subjects = chance.sample(range(SUBJECTS), count)
    pairs = [KINDS[n % len(KINDS)] for n in range(count)]
    return pd.DataFrame(
        {
            "name": [f"rule-{n}" for n in range(count)],
            "regular": [p.regular.format(n=n) for p, n in zip(pairs, subjects, strict=True)],
            "like": [p.like.format(n=n) for p, n in zip(pairs, subjects, strict=True)],
        }
    )


def make_lines(count: int, chance: random.Random) -> list[str]:
    """Return log lines."""
    return [
        chance.choice(LINE_KINDS).format(
            m=chance.randrange(60),
            h=chance.randrange(SUBJECTS),
            n=chance.randrange(SUBJECTS),
            p=chance.randrange(1_000, 60_000),
            a=chance.randrange(256),
            b=chance.randrange(256),
            w=chance.choice(["denied", "dropped", "restart", "error", "fatal", "panic", "done"]),
            e=chance.choice(["php", "html", "aspx", "js"]),
            s=chance.choice([200, 302, 401, 404, 500, 503]),
        )
        for _ in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Lines:
    """Files of log lines."""

    spark: SparkSession
    files: Path

    def write(self, files: int, lines: int) -> None:
        """Write the files."""
        chance = random.Random(2)
        self.files.mkdir()
        for number in range(files):
            ids = range(number * lines, (number + 1) * lines)
            table = pa.table({"id": list(ids), "message": make_lines(lines, chance)})
            pq.write_table(table, self.files / f"{number}.parquet")

    def stream(self) -> DataFrame:
        """Return the stream of the files."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.files))

    def rows(self) -> DataFrame:
        """Return all lines."""
        return self.spark.read.schema(SCHEMA).parquet(str(self.files))

    def seconds(
        self,
        operator: str,
        rules: pd.DataFrame,
        sink: Callable[[DataFrame], object] = written,
    ) -> list[float]:
        """Return what each micro-batch of standing queries takes; the operator is LIKE or RLIKE."""
        patterns = rules["like" if operator == "LIKE" else "regular"]
        parameters = pd.DataFrame({"name": rules["name"], "pattern": patterns})
        with (
            tempfile.TemporaryDirectory() as state,
            StandingQueries(self.spark, streams={"events": self.stream()}, state=state) as them,
        ):
            them.add_many(QUERY.format(operator), parameters)
            them.start(lambda results, _: sink(results), availableNow=True)
            them.await_termination()
            return [float(row["seconds"]) for row in them.batches().collect()]


def by_rule(lines: DataFrame, rules: DataFrame, operator: str = "RLIKE") -> DataFrame:
    """Return the join of rules with lines that are broadcast: a pattern is compiled once."""
    column = "like" if operator == "LIKE" else "regular"
    found = F.expr(f"message {operator} `{column}`")
    return rules.join(F.broadcast(lines), found).select(F.col("name").alias("query"), "id")


def by_line(lines: DataFrame, rules: DataFrame) -> DataFrame:
    """Return the join of lines with the rules that are broadcast."""
    found = F.expr("message RLIKE regular")
    return lines.join(F.broadcast(rules), found).select(F.col("name").alias("query"), "id")


def one_array(lines: DataFrame, rules: pd.DataFrame) -> DataFrame:
    """Return the array of the names of all rules that match, exploded."""
    message = F.col("message")
    cases = [
        F.when(message.rlike(regular), name)
        for name, regular in zip(rules["name"], rules["regular"], strict=True)
    ]
    names = F.explode(F.array_compact(F.array(*cases)))
    return lines.select(names.alias("query"), "id")


def check(lines: Lines, rules: pd.DataFrame, operator: str) -> int:
    """Compare the rows of standing queries with those of plain Spark; return how many."""
    found: list[pd.DataFrame] = []
    lines.seconds(operator, rules, lambda results: found.append(results.toPandas()))
    table = lines.spark.createDataFrame(rules).repartition(4)
    wanted = by_rule(lines.rows(), table, operator).toPandas()
    columns = ["query", "id"]
    ours = pd.concat(found)[columns].sort_values(columns, ignore_index=True)
    pd.testing.assert_frame_equal(ours, wanted[columns].sort_values(columns, ignore_index=True))
    return len(wanted)


def compared(lines: Lines, rules: pd.DataFrame, turns: int) -> Table:
    """Measure RLIKE beside LIKE, and return the table."""
    took: dict[str, list[list[float]]] = {"LIKE": [], "RLIKE": []}
    for turn in range(turns):
        for operator in sorted(took, reverse=turn % 2 == 1):
            took[operator].append(lines.seconds(operator, rules))
    later = {
        operator: [statistics.median(batches[1:BATCHES]) for batches in runs]
        for operator, runs in took.items()
    }
    table = Table(title=f"{len(rules):,} rules, {LINES:,} lines a micro-batch")
    for heading in ("", "seconds", "over LIKE"):
        table.add_column(heading, justify="left" if not heading else "right")
    for operator, seconds in later.items():
        over = Spread.of(own / like for own, like in zip(seconds, later["LIKE"], strict=True))
        table.add_row(operator, str(Spread.of(seconds)), str(over))
    return table


def against_plain(lines: Lines, rules: pd.DataFrame, turns: int) -> Table:
    """Measure some of the rules beside plain Spark, and return the table."""
    one = pq.read_table(lines.files / "0.parquet").to_pandas()
    batch = lines.spark.createDataFrame(one, SCHEMA).repartition(2).cache()
    table = lines.spark.createDataFrame(rules).repartition(2).cache()
    batch.count(), table.count()
    contestants = {
        "eddyline": lambda: statistics.median(lines.seconds("RLIKE", rules)[1:BATCHES]),
        "join, lines broadcast": lambda: _seconds(lambda: written(by_rule(batch, table))),
        "join, rules broadcast": lambda: _seconds(lambda: written(by_line(batch, table))),
        "one array": lambda: _seconds(lambda: written(one_array(batch, rules))),
    }
    took = in_turns(contestants, turns)
    shown = Table(title=f"{len(rules):,} regular expressions, {LINES:,} lines")
    for heading in ("", "seconds", "Eddyline is faster by"):
        shown.add_column(heading, justify="left" if not heading else "right")
    for name, seconds in took.items():
        pairs = zip(took["eddyline"], seconds, strict=True)
        ratio = Spread.of(other / mine for mine, other in pairs)
        shown.add_row(name, str(Spread.of(seconds)), str(ratio))
    return shown


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main(arguments: Sequence[str]) -> int:
    """Compare answers, then measure."""
    parser = report.argument_parser("bench patterns", __doc__, turns=3)
    parser.add_argument("--rules", type=int, default=RULES)
    options = parser.parse_args(arguments)
    spark = start()
    rules = make_rules(options.rules)
    with tempfile.TemporaryDirectory() as name:
        few = Lines(spark, Path(name, "few"))
        few.write(1, CHECKED_LINES)
        results = {operator: check(few, rules, operator) for operator in ("LIKE", "RLIKE")}
        lines = Lines(spark, Path(name, "lines"))
        lines.write(BATCHES, LINES)
        report.show(compared(lines, rules, options.turns))
        report.show(against_plain(lines, rules.head(SOME_RULES), options.turns))
    for operator, count in results.items():
        print(f"{operator}: {count:,} results of {CHECKED_LINES:,} lines as in plain Spark")
    return 0
