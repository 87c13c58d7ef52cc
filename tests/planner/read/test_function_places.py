"""Where functions were written is read from their pickles, and nothing in these is made."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.cloudpickle import dumps
from pyspark.sql.types import BooleanType

from eddyline.planner.read import function_places
from eddyline.planner.read.function_places import lambda_name, place_of


class Heavy:
    """Cannot be made anew: whoever unpickles it fails."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return _explode, ("unpickled",)


def _explode(why: str) -> None:
    raise AssertionError(why)


def command_of(function: Callable[..., object]) -> bytes:
    return pickled((function, BooleanType()))


def pickled(value: object) -> bytes:
    return bytes(dumps(value))  # type: ignore[no-untyped-call]  # PySpark's own is untyped


def named(source: str, folder: Path, **values: object) -> list[str]:
    """What the functions are called that a script makes a list of."""
    path = folder / "job.py"
    path.write_text(source, "utf-8")
    linecache.checkcache(str(path))
    scope: dict[str, Any] = {"__name__": "job", **values}
    exec(compile(source, str(path), "exec"), scope)  # noqa: S102 - our own
    return [lambda_name(place_of(command_of(each))) for each in scope["found"]]


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("lambda n: n % 10 == 0", "n % 10 == 0"),
        ("lambda n, m=3: (n > m or n < 0) and n != 5", "(n > m or n < 0) and n != 5"),
        ("(lambda n: (n + 1) * (n + 2))", "(n + 1) * (n + 2)"),
        ("lambda s: s.upper() if s else None", "s.upper() if s else None"),
        ("lambda n: sum(i * n for i in\n   range(3))", "sum(i * n for i in range(3))"),
        ("lambda s: s == 'äöü' and s != 'ß'", "s == 'äöü' and s != 'ß'"),
        ("lambda x: x", "x"),
        ("lambda x: 5", "5"),
        ("lambda x: helper(x, heavy)", "helper(x, heavy)"),
        (
            "lambda n: n * 11111111111 + n * 222222222222 + 33333333",
            "n * 11111111111 + n * 222222222222 + 33…",
        ),
    ],
)
def test_a_lambda_is_named_by_its_line_and_its_source(
    source: str, body: str, tmp_path: Path
) -> None:
    script = f"def helper(x, y):\n    return x\n\nfound = [{source}, lambda q: q > 1]\n"
    first, second = named(script, tmp_path, heavy=Heavy())
    assert first == f"<lambda> line 4: {body}"
    assert second.endswith(": q > 1")


def test_two_lambdas_of_one_line_differ(tmp_path: Path) -> None:
    names = named("found = [lambda n: n > 1, lambda n: n > 2]\n", tmp_path)
    assert names == ["<lambda> line 1: n > 1", "<lambda> line 1: n > 2"]


def test_without_its_source_a_lambda_is_named_by_its_place() -> None:
    def made_in(file: str) -> Callable[..., object]:
        made: Callable[..., object] = eval(compile("\n\nlambda n: n > 1", file, "eval"))  # noqa: S307
        return made

    assert lambda_name(place_of(command_of(made_in("/gone/job.py")))) == "<lambda> at job.py:3"
    assert lambda_name(place_of(command_of(made_in("<stdin>")))) == "<lambda>"


def test_a_source_that_has_changed_since_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    made = eval(compile("lambda n: n > 1", str(path), "eval"))  # noqa: S307 - our own
    path.write_text("# something else\n", "utf-8")
    assert lambda_name(place_of(command_of(made))) == "<lambda> at job.py:1"


@pytest.mark.parametrize("command", [b"", b"no pickle", pickled(5), pickled((len, BooleanType()))])
def test_what_tells_no_place_has_none(command: bytes) -> None:
    assert place_of(command) is None


def test_classes_of_the_script_and_what_is_in_the_way_are_not_made(tmp_path: Path) -> None:
    script = (
        "class Own:\n    def __init__(self):\n        self.table = {1: [2, {3}]}\n\n"
        "own = Own()\nfound = [lambda n: own.table.get(n, heavy)]\n"
    )
    assert named(script, tmp_path, heavy=Heavy()) == ["<lambda> line 6: own.table.get(n, heavy)"]


def test_a_function_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_of(lambda number: number == 12345)
    place = place_of(command)
    assert place is not None
    monkeypatch.setattr(function_places, "_code_of", _explode)
    assert place_of(bytes(bytearray(command))) == place
