"""What the command line accepts. Imports nothing large, so that ``--help`` answers at once."""

from __future__ import annotations

import argparse
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from eddyline import __version__
from eddyline.app import help_texts
from eddyline.app.invocation import (
    DemoInvocation,
    DemoLookupsInvocation,
    DemoRulesInvocation,
    ExplainInvocation,
    FunctionSource,
    Invocation,
    JarInvocation,
    Query,
    ReportInvocation,
    RulesAskInvocation,
    RulesRunInvocation,
    Script,
    SqlInvocation,
    TableSource,
)
from eddyline.app.output_kind import OutputKind

SHOWN_ROWS = 20
"""Rows that ``eddyline sql`` prints unless told otherwise, as many as ``DataFrame.show``."""

POLICIES = ("adaptive", "benefit", "rank", "lottery", "windowed_lottery", "naive", "static")
"""The routing policies, the default first; the engine, which knows them, is large to import."""

_DEMO_RUNS = 3
_DEMO_PAGE = Path("eddyline-demo.html")

_LOOKUP_RUNS = 1
_LOOKUP_SAMPLE = 1_500
"""Flights that the demo of lookups joins by hand: about 20 seconds."""

_MOST_ROWS = 2**31 - 2
"""Spark counts a limit in 32 bits, and one more row is asked for to see if there are more."""


class _Parser(ArgumentParser):
    """Answers a mistake with one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,  # noqa: ARG002 - argparse's protocol
        values: object,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> NoReturn:
        sys.stdout.write(f"eddyline {__version__}\n")
        parser.exit()


def parse(arguments: Sequence[str] | None = None) -> Invocation:
    """Return what the arguments ask for, by default those of this process.

    Ends the process by SystemExit: with 0 after ``--help`` and ``--version``,
    with 2 and one line on stderr after a mistake.
    """
    parser = _parser()
    namespace = parser.parse_args(arguments)
    if namespace.command is None:
        parser.error("a command is needed: demo, sql, explain, report, rules or jar")
    if namespace.command == "demo":
        return _demo_invocation(namespace)
    if namespace.command == "sql":
        return _sql_invocation(namespace)
    if namespace.command == "report":
        return ReportInvocation(
            namespace.event_log, namespace.action, namespace.html, namespace.json
        )
    if namespace.command == "jar":
        return JarInvocation()
    if namespace.command == "rules":
        return _rules_invocation(namespace)
    return _explain_invocation(namespace)


def _demo_invocation(
    namespace: Namespace,
) -> DemoInvocation | DemoLookupsInvocation | DemoRulesInvocation:
    if namespace.what is None:
        return DemoInvocation(
            namespace.runs or _DEMO_RUNS, namespace.sample, namespace.out or _DEMO_PAGE
        )
    if namespace.out is not None:
        what = namespace.what
        namespace.parser.error(f"--out belongs to the race; the demo of {what} writes no report")
    if namespace.what == "rules":
        if namespace.runs is not None:
            namespace.parser.error("--runs belongs to races; the demo of rules runs once")
        return DemoRulesInvocation(namespace.sample)
    return DemoLookupsInvocation(namespace.runs or _LOOKUP_RUNS, namespace.sample or _LOOKUP_SAMPLE)


def _sql_invocation(namespace: Namespace) -> SqlInvocation:
    limit = namespace.limit
    if limit is None and namespace.output is None:
        limit = SHOWN_ROWS
    if namespace.plain and namespace.report is not None:
        namespace.parser.error("--plain runs no eddy, so there is nothing for --report to show")
    if namespace.output is not None and namespace.output == namespace.report:
        namespace.parser.error("--output and --report name the same file")
    if namespace.plain and namespace.policy is not None:
        namespace.parser.error("--plain runs no eddy, so there is nothing for --policy to route")
    query = _query(namespace, namespace.query)
    policy = namespace.policy or POLICIES[0]
    return SqlInvocation(
        query, limit or None, namespace.plain, namespace.output, namespace.report, policy
    )


def _rules_invocation(namespace: Namespace) -> RulesRunInvocation | RulesAskInvocation:
    if namespace.action is None:
        namespace.parser.error("an action is needed: run, add, drop, pause, resume or list")
    if namespace.action == "run":
        return RulesRunInvocation(namespace.config)
    request: dict[str, object] = {"do": namespace.action}
    if namespace.action == "add":
        request |= {name: getattr(namespace, name) for name in ("name", "sql", "backfill", "keep")}
        if namespace.replace:
            request["do"] = "replace"
    elif namespace.action != "list":
        request["names"] = namespace.names
    return RulesAskInvocation(namespace.where, request)


def _explain_invocation(namespace: Namespace) -> ExplainInvocation:
    if (namespace.script is None) == (namespace.sql is None):
        namespace.parser.error("either a script or --sql is needed, and not both")
    if namespace.sql is not None:
        if namespace.name is not None:
            namespace.parser.error("--name belongs to a script, not to --sql")
        return ExplainInvocation(_query(namespace, namespace.sql), namespace.stage)
    if namespace.table or namespace.udf:
        namespace.parser.error("--table and --udf belong to --sql; a script makes its own")
    return ExplainInvocation(Script(namespace.script, namespace.name or "df"), namespace.stage)


def _query(namespace: Namespace, sql: str) -> Query:
    if not sql.strip():
        namespace.parser.error("the query is empty")
    for what, names in (
        ("table", [source.name.lower() for source in namespace.table]),
        ("function", [source.function.lower() for source in namespace.udf]),
    ):
        for name in names:
            if names.count(name) > 1:
                namespace.parser.error(f"there are two {what}s named {name}")
    return Query(sql, tuple(namespace.table), tuple(namespace.udf))


def _parser() -> _Parser:
    parser = _Parser(
        prog="eddyline",
        description=help_texts.DESCRIPTION,
        epilog=help_texts.EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    demo = _command(commands, "demo", "race plain Spark on real flights", help_texts.DEMO_EXAMPLES)
    demo.add_argument(
        "what",
        nargs="?",
        choices=["lookups", "rules"],
        metavar="lookups|rules",
        help="join the flights with HTTP services instead, and count the requests; or let a "
        "thousand rules watch them as a stream",
    )
    demo.add_argument(
        "--runs",
        type=partial(_positive, what="runs"),
        metavar="N",
        help=f"runs of each side (default: {_DEMO_RUNS}; lookups: {_LOOKUP_RUNS})",
    )
    demo.add_argument(
        "--sample",
        type=_positive,
        metavar="ROWS",
        help=f"take only so many flights (default: all; lookups: {_LOOKUP_SAMPLE:,})",
    )
    demo.add_argument(
        "--out",
        type=Path,
        metavar="FILE.html",
        help=f"where the report goes (default: {_DEMO_PAGE})",
    )

    sql = _command(
        commands, "sql", "run an SQL query over files and print the rows", help_texts.SQL_EXAMPLES
    )
    sql.add_argument(
        "query",
        metavar="QUERY",
        help="a SELECT in Spark's SQL; a file can stand for a table: FROM 'orders.csv'",
    )
    _add_sources(sql)
    sql.add_argument(
        "--limit",
        type=_natural,
        metavar="N",
        help=f"print only so many rows, 0 for all (default: {SHOWN_ROWS}; with --output: all)",
    )
    sql.add_argument(
        "--policy",
        choices=POLICIES,
        metavar="NAME",
        help=f"the routing policy: {', '.join(POLICIES)} (default: {POLICIES[0]})",
    )
    sql.add_argument("--plain", action="store_true", help="leave the query to Spark: no eddies")
    sql.add_argument(
        "--output",
        type=_output,
        metavar="FILE",
        help="write the rows to FILE.parquet, .csv or .json (lines) instead of printing them",
    )
    sql.add_argument(
        "--report", type=Path, metavar="FILE.html", help="write the routing report as a web page"
    )

    explain = _command(
        commands,
        "explain",
        "tell what would run in eddies, what would not, and why",
        help_texts.EXPLAIN_EXAMPLES,
    )
    explain.add_argument(
        "script",
        nargs="?",
        type=Path,
        metavar="FILE.py",
        help="a script that makes a DataFrame named df; `spark` is there already",
    )
    explain.add_argument("--name", help="the name of the DataFrame in the script (default: df)")
    explain.add_argument("--sql", metavar="QUERY", help="a query instead of a script")
    explain.add_argument(
        "--stage",
        choices=("read", "claim", "block", "plan"),
        help="show what the query looks like after one stage on its way instead",
    )
    _add_sources(explain)
    _add_report(commands)
    _add_rules(commands)
    _command(
        commands, "jar", "print where the jar of the driver's plug-in is", help_texts.JAR_EXAMPLES
    )
    return parser


def _add_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    report = _command(
        commands,
        "report",
        "show the reports of an application that is over, from Spark's event log",
        help_texts.REPORT_EXAMPLES,
    )
    report.add_argument(
        "--event-log",
        type=Path,
        required=True,
        metavar="FILE",
        help="a log of spark.eventLog.dir: a file, or the folder of one that was rolled",
    )
    report.add_argument(
        "--action",
        type=partial(_natural, what="an action"),
        metavar="N",
        help="only the report of this action, by Spark's number of the query (default: all)",
    )
    report.add_argument(
        "--html", type=Path, metavar="FILE.html", help="write a web page instead of printing"
    )
    report.add_argument(
        "--json", type=Path, metavar="FILE.json", help="write JSON instead of printing"
    )


def _add_rules(commands: argparse._SubParsersAction[_Parser]) -> None:
    rules = _command(
        commands,
        "rules",
        "run standing queries over streams, and change them",
        help_texts.RULES_EXAMPLES,
    )
    actions = rules.add_subparsers(dest="action", metavar="ACTION", parser_class=_Parser)
    run = actions.add_parser("run", help="run the queries of a file, until Ctrl-C")
    run.add_argument("config", type=Path, metavar="CONFIG.toml", help="streams, queries and sink")
    where = "the file that the job was started from, or its state directory"
    add = actions.add_parser("add", help="add a query to a running job")
    add.add_argument("where", type=Path, metavar="JOB", help=where)
    add.add_argument("name", metavar="NAME", help="the name of the query")
    add.add_argument("sql", metavar="QUERY", help="a SELECT over the job's streams")
    add.add_argument("--replace", action="store_true", help="put it in the place of one")
    add.add_argument(
        "--backfill", metavar="INTERVAL", help='see what is kept of "10 minutes" before, too'
    )
    add.add_argument(
        "--keep",
        metavar="INTERVAL",
        help='join streams whose event times are at most "1 hour" apart, or "forever"',
    )
    for action, what in (
        ("drop", "drop queries of a running job"),
        ("pause", "let queries of a running job stand still"),
        ("resume", "let them go on"),
    ):
        parser = actions.add_parser(action, help=what)
        parser.add_argument("where", type=Path, metavar="JOB", help=where)
        parser.add_argument("names", nargs="+", metavar="NAME", help="the name of a query")
    listing = actions.add_parser("list", help="list the queries of a running job")
    listing.add_argument("where", type=Path, metavar="JOB", help=where)


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, summary: str, examples: str
) -> _Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=examples,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser)
    return parser


def _add_sources(parser: _Parser) -> None:
    parser.add_argument(
        "--table",
        type=_table,
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="a table: a .parquet, .csv or .tsv (with a heading) or .json file, or a folder of "
        "them; a query can name them itself, as FROM 'orders.csv'",
    )
    parser.add_argument(
        "--udf",
        type=_function,
        action="append",
        default=[],
        metavar="MODULE:FUNCTION[:TYPE]",
        help="a Python function for the query; TYPE is Spark's name of what it returns, and can "
        "be left out for functions with an annotation and for those made by @udf",
    )


def _table(text: str) -> TableSource:
    name, sign, path = text.partition("=")
    if not sign or not path:
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=PATH")
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ArgumentTypeError(f"{name!r} cannot be the name of a table")
    return TableSource(name, path)


def _function(text: str) -> FunctionSource:
    module, _, rest = text.partition(":")
    function, sign, return_type = rest.partition(":")  # a struct's type has colons of its own
    if module.endswith(".py"):
        raise ArgumentTypeError(f"{text!r} names a file; its module is {module[:-3]}")
    names = [*module.split("."), function]
    if not all(name.isidentifier() for name in names) or (sign and not return_type.strip()):
        raise ArgumentTypeError(f"{text!r} is not of the form MODULE:FUNCTION[:TYPE]")
    return FunctionSource(module, function, return_type.strip() or None)


def _output(text: str) -> Path:
    path = Path(text)
    if OutputKind.of(path) is None:
        kinds = ", ".join(f".{kind}" for kind in OutputKind)
        raise ArgumentTypeError(f"{text!r} must end in one of {kinds}")
    return path


def _natural(text: str, what: str = "rows") -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not a number of {what}")
    if len(text) > len(str(_MOST_ROWS)) or int(text) > _MOST_ROWS:
        raise ArgumentTypeError(f"{text[:20]} is too large; the most is {_MOST_ROWS}")
    return int(text)


def _positive(text: str, what: str = "rows") -> int:
    number = _natural(text, what)
    if not number:
        raise ArgumentTypeError("0 is too few")
    return number
