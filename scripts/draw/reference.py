"""Draws ``docs/reference.md`` from the docstrings of the public names and from the command line.

Only what stands between the marks is drawn; the text around them is written by hand.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

import eddyline
from eddyline import errors
from eddyline.app import parser as command_line

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference.md"

WIDTH: Final = 100

NAMES: Final = (
    "session",
    "adapt",
    "Policy",
    "enable",
    "disable",
    "jar",
    "status",
    "forget",
    "show_versions",
    "explain",
    "report",
    "learned",
    "ledger",
    "progress",
    "live",
    "telemetry",
    "watch",
    "lookup_table",
    "HttpLookup",
    "SqlLookup",
    "PythonLookup",
    "LookupMethod",
    "concurrent",
    "kept",
    "cascade",
    "StandingQueries",
    "deterministic",
    "forgetful",
    "stateless",
)
"""The public names in the order of the page; errors and the version have places of their own."""

METHODS: Final = {
    "Policy": ("name", "start", "route", "sent", "returned", "order"),
    "SqlLookup": ("scan",),
    "StandingQueries": (
        "add",
        "add_many",
        "replace",
        "drop",
        "pause",
        "resume",
        "start",
        "subscribe",
        "await_termination",
        "stop",
        "queries",
        "batches",
        "windows",
        "stems",
        "operators",
        "progress",
    ),
}
"""Methods that users call; what else sources have is for the server that asks them."""

RESULTS: Final = {
    "Policy": (
        "eddyline.policies.Allotment",
        "eddyline.policies.TakesPriors",
        "eddyline.testing.check_policy",
        "eddyline.testing.simulate",
        "eddyline.testing.SimulatedSelection",
        "eddyline.testing.RoutingTime",
        "eddyline.testing.SimulationResult",
    ),
    "session": ("eddyline.host.session.SettingsIgnoredWarning",),
    "enable": ("eddyline.host.versions.UntestedPySparkWarning",),
    "status": ("eddyline.monitor.status.Status",),
    "explain": (
        "eddyline.explanation.Explanation",
        "eddyline.reports.forecast.Forecast",
        "eddyline.reports.forecast.CallForecast",
        "eddyline.reports.expected.Expected",
    ),
    "report": ("eddyline.reports.routing_report.RoutingReport",),
    "progress": ("eddyline.monitor.progress.ProgressDisplay",),
    "live": ("eddyline.monitor.live_page.LivePage",),
    "telemetry": ("eddyline.monitor.telemetry.Telemetry",),
    "watch": (
        "eddyline.watching.watch.Watch",
        "eddyline.watching.parts.Part",
        "eddyline.watching.running_aggregates.Estimates",
    ),
    "HttpLookup": (
        "eddyline.asking.http_request.NextLink",
        "eddyline.asking.http_request.PageNumber",
        "eddyline.asking.http_request.Cursor",
    ),
    "StandingQueries": ("eddyline.standing.sinks.Batch",),
}
"""Classes of what public names return, give or take, and what goes with them."""

GUIDES: Final = {
    "jar": "everywhere.md",
    "adapt": "guide.md",
    "Policy": "policies.md",
    "enable": "guide.md#adapt-all-that-a-session-runs",
    "status": "lasting.md",
    "forget": "lasting.md",
    "learned": "guide.md#what-earlier-queries-have-learned",
    "ledger": "functions.md#answers-that-are-kept",
    "progress": "live.md",
    "live": "live.md",
    "telemetry": "operating.md#with-opentelemetry",
    "watch": "watching.md",
    "lookup_table": "lookups.md",
    "concurrent": "functions.md",
    "kept": "models.md",
    "cascade": "cascades.md",
    "StandingQueries": "standing-queries.md",
    "deterministic": "guide.md#functions-that-look-non-deterministic",
    "stateless": "guide.md#iterator-functions",
}
"""Pages that show how a name is used."""

STARS: Final[Mapping[object, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}

ROLE: Final = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(~?)([\w.]+)`")

EXAMPLE: Final = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


def functions() -> Iterator[str]:
    """Give the sections of all public names."""
    missing = set(eddyline.__all__) - {*NAMES, "EddylineError", "__version__"}
    if missing:
        raise ValueError(
            f"no place on the page for {', '.join(sorted(missing))}: "
            "add it to NAMES in scripts/draw/reference.py"
        )
    for name in NAMES:
        value = getattr(eddyline, name)
        yield f"## {name}\n"
        if not is_protocol(value):  # which nobody makes an object of
            yield fenced(f"eddyline.{name}", value)
        yield markdown(value)
        if name in GUIDES:
            yield f"How to use it: [{title(GUIDES[name])}]({GUIDES[name]}).\n"
        for method in METHODS.get(name, ()):
            yield member(name, method, getattr(value, method))
        for path in RESULTS.get(name, ()):
            yield from described(path)


def described(path: str) -> Iterator[str]:
    """Give what is to be said of a class or function that belongs to a public name."""
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    yield f"### {name}\n"
    yield f"`{path}`\n"
    if not isinstance(value, type):
        yield fenced(path, value)
    yield markdown(value)
    if not isinstance(value, type) or issubclass(value, Warning):
        return
    for method, function in vars(value).items():
        if method.startswith("_") or not (callable(function) or isinstance(function, property)):
            continue
        if inspect.getdoc(function):
            yield member(name, method, function)


def member(owner: str, name: str, value: object) -> str:
    """Return what is to be said of a method or a property."""
    parameters = f"({', '.join(signature(value))})" if callable(value) else ""
    return f"#### `{owner}.{name}{parameters}`\n\n{markdown(value)}"


def fenced(name: str, value: Callable[..., object]) -> str:
    """Return how a function is called, as a block of code."""
    parts = signature(value)
    line = f"{name}({', '.join(parts)})"
    if len(line) > WIDTH:
        line = "\n    ".join([f"{name}(", *packed(parts)]) + "\n)"
    return f"```text\n{line}\n```\n"


def signature(value: Callable[..., object]) -> list[str]:
    """Return the parameters of a function with their defaults, without types."""
    made = inspect.signature(value).parameters.values()
    fields = {each.name: each for each in dataclasses.fields(value)} if is_dataclass(value) else {}  # type: ignore[arg-type]
    bare = not any(each.kind is each.VAR_POSITIONAL for each in made)  # then a star stands alone
    parts: list[str] = []
    for each in made:
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and bare:
            parts.append("*")
            bare = False
        default = each.default
        if each.name in fields and fields[each.name].default_factory is not dataclasses.MISSING:
            default = fields[each.name].default_factory()  # type: ignore[operator]
        stars = STARS.get(each.kind, "")
        text = each.name if default is each.empty else f"{each.name}={shown(default)}"
        parts.append(stars + text)
    return parts


def is_dataclass(value: object) -> bool:
    """Whether something is a class of data."""
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def is_protocol(value: object) -> bool:
    """Whether something is a protocol."""
    return isinstance(value, type) and Protocol in value.__bases__


def packed(parts: Iterable[str]) -> list[str]:
    """Return parameters as lines that are no longer than the page is wide."""
    lines = [""]
    for part in parts:
        if len(lines[-1]) + len(part) + 2 > WIDTH - 4:
            lines.append("")
        lines[-1] += f"{part}, "
    return [line.rstrip() for line in lines]


def shown(default: object) -> str:
    """Return a default as users write it."""
    if inspect.isfunction(default):
        return default.__name__
    return f'"{default}"' if isinstance(default, str) else repr(default)


def markdown(value: object) -> str:
    """Return a docstring as Markdown."""
    text = inspect.getdoc(value) or ""
    text = ROLE.sub(lambda found: linked(found[2]), text).replace("``", "`")
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text) + "\n"


def linked(name: str) -> str:
    """Return a reference of a docstring: a link where the page has a section of that name."""
    last = name.removeprefix("eddyline.")
    if last in NAMES:
        return f"[`{last}`](#{last.lower()})"
    return f"`{name.rpartition('.')[2] if name.startswith('eddyline.') else name}`"


def title(page: str) -> str:
    """Return the title of a page."""
    return (PAGE.parent / page.partition("#")[0]).read_text("utf-8").splitlines()[0].lstrip("# ")


def errors_table() -> Iterator[str]:
    """Give the table of all errors."""
    yield "| error | is also | raised where |"
    yield "|---|---|---|"
    for name, value in sorted(vars(errors).items()):
        if not (isinstance(value, type) and issubclass(value, errors.EddylineError)):
            continue
        bases = [each.__name__ for each in value.__bases__ if each is not errors.EddylineError]
        if name == "EddylineError":
            continue
        line = (inspect.getdoc(value) or "").partition("\n")[0].replace("``", "`")
        yield f"| `{name}` | {', '.join(f'`{each}`' for each in bases)} | {line} |"


def commands() -> Iterator[str]:
    """Give a section for each command of the command line."""
    for path, parser in walked("eddyline", command_line._parser()):  # noqa: SLF001 - our own
        yield f"### {path}\n"
        if parser.description:
            yield f"{parser.description.strip()}\n"
        yield "| argument | |"
        yield "|---|---|"
        for action in parser._actions:  # noqa: SLF001 - argparse has no other way to them
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                for each in action._choices_actions:  # noqa: SLF001
                    yield f"| `{each.dest} …` | {each.help} |"
            elif not isinstance(action, argparse._HelpAction):  # noqa: SLF001
                yield f"| `{escaped(written(action))}` | {escaped(action.help or '')} |"
        yield ""
        if parser.epilog:
            yield f"```text\n{parser.epilog.strip()}\n```\n"


def walked(path: str, parser: ArgumentParser) -> Iterator[tuple[str, ArgumentParser]]:
    """Give a parser and those of its commands, with the words that reach them."""
    yield path, parser
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, child in action.choices.items():
                yield from walked(f"{path} {name}", child)


def escaped(text: str) -> str:
    """Return a text as a cell of a table."""
    return text.replace("|", r"\|")


def written(action: argparse.Action) -> str:
    """Return an argument as it is written on the command line."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"{name}…" if action.nargs == "+" else name
    takes_none = action.nargs == 0
    return action.option_strings[0] + ("" if takes_none else f" {name}")


PARTS: Final = {"public names": functions, "errors": errors_table, "commands": commands}


def drawn(text: str) -> str:
    """Return the page with its drawn parts as they are now."""
    for name, part in PARTS.items():
        begin, end = f"<!-- drawn: {name} -->\n", f"<!-- end: {name} -->\n"
        head, _, rest = text.partition(begin)
        if end not in rest:
            raise ValueError(f"{PAGE.name} has no {begin.strip()} … {end.strip()}")
        lines = "\n".join(part()).rstrip("\n")
        text = f"{head}{begin}\n{lines}\n\n{end}{rest.partition(end)[2]}"
    return text


def pages() -> dict[Path, str]:
    """Return the page as it should be."""
    return {PAGE: drawn(PAGE.read_text("utf-8"))}
