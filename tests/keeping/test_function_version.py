"""What makes a function another one, and what does not."""

from __future__ import annotations

import datetime as dt
import functools
import logging
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from eddyline.keeping.function_version import version_of
from tests.fresh_process import printed_lines


def made(code: str, name: str = "f", **variables: object) -> Callable[..., Any]:
    """Return a function of a module of its own."""
    module = ModuleType("prompts")
    module.__dict__.update(variables)
    exec(textwrap.dedent(code), module.__dict__)  # noqa: S102 - of this file
    function: Callable[..., Any] = module.__dict__[name]
    return function


PLAIN = "def f(a, b=1):\n    return a + b"


@pytest.mark.parametrize(
    "code",
    [
        "# a comment\n\ndef f(a, b=1):\n    # another\n    return a + b  # and one",
        'def f(a, b=1):\n    """What it does."""\n\n    return a + b',
        "def f(\n    a,\n    b=1,\n):\n    return (\n        a + b\n    )",
        "def f(a: int, b: int = 1) -> int:\n    return a + b",
    ],
)
def test_what_does_the_same_is_the_same(code: str) -> None:
    assert version_of(made(code)) == version_of(made(PLAIN))


@pytest.mark.parametrize(
    "code",
    [
        "def f(a, b=2):\n    return a + b",
        "def f(a, b=1):\n    return a - b",
        "def f(a, c=1):\n    return a + c",
        "def f(a, *, b=1):\n    return a + b",
        "async def f(a, b=1):\n    return a + b",
        "def f(a, b=1):\n    return a + b + 0",
        "def f(a, b=True):\n    return a + b",
    ],
)
def test_what_does_something_else_is_another(code: str) -> None:
    assert version_of(made(code)) != version_of(made(PLAIN))


def test_what_it_finds_in_its_module_counts() -> None:
    code = "def f(a):\n    return helper(PROMPT + a)"
    helper = made("def helper(a):\n    return a.lower()", "helper")
    other = made("def helper(a):\n    return a.upper()", "helper")
    known = version_of(made(code, helper=helper, PROMPT="Say: "))
    assert version_of(made(code, helper=helper, PROMPT="Say: ", UNUSED=1)) == known
    assert version_of(made(code, helper=other, PROMPT="Say: ")) != known
    assert version_of(made(code, helper=helper, PROMPT="Tell: ")) != known


def test_closures_and_nested_functions_count() -> None:
    code = """
        def outer(n):
            def f(a):
                return [b + n for b in a]
            return f
        """
    outer = made(code, "outer")
    assert version_of(outer(1)) == version_of(outer(1)) != version_of(outer(2))
    twice = made(code.replace("b + n", "b * n"), "outer")
    assert version_of(twice(1)) != version_of(outer(1))


def test_a_clients_model_counts_and_its_secret_does_not() -> None:
    class Client:
        def __init__(self, model: str, api_key: str) -> None:
            self.model = model
            self.api_key = api_key
            self.connection = object()

    code = "def f(a):\n    return client.complete(a)"
    versions = [
        version_of(made(code, client=Client(*arguments)))
        for arguments in (("small", "a"), ("small", "b"), ("large", "a"))
    ]
    assert versions[0] == versions[1] != versions[2]


def test_all_of_a_data_class_counts() -> None:
    @dataclass(frozen=True, slots=True)
    class Source:
        url: str
        headers: dict[str, str]
        token: str = "t"  # noqa: S105 - the name is what counts

        def __call__(self, a: str) -> str:
            return self.url + a

    known = version_of(Source("http://a", {"x": "1"}))
    assert version_of(Source("http://a", {"x": "1"}, "u")) == known
    assert version_of(Source("http://a", {"x": "2"})) != known
    assert version_of(Source("http://b", {"x": "1"})) != known


def test_what_wraps_a_function_does_not_hide_it() -> None:
    code = "@cache\ndef f(a):\n    return a + {}"
    one, two = (made(code.format(n), cache=functools.cache) for n in (1, 2))
    assert version_of(one) != version_of(two)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal(1), Decimal(2)),
        (1j, 2j),
        (np.float64(1), np.float64(2)),
        (np.array([1, 2]), np.array([1, 3])),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (Path("a"), Path("b")),
        (dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
        ([1, [2]], [1, [3]]),
        ({"a": {1, 2}}, {"a": {1, 3}}),
    ],
)
def test_constants_of_a_module(one: object, other: object) -> None:
    code = "def f(a):\n    return a, CONSTANT"
    first = version_of(made(code, CONSTANT=one))
    assert first == version_of(made(code, CONSTANT=one)) != version_of(made(code, CONSTANT=other))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("API_KEY", False),
        ("accessToken", False),
        ("password", False),
        ("KEYWORDS", True),
        ("max_tokens", True),
        ("key", True),
    ],
)
def test_secrets_do_not_count(name: str, *, counts: bool) -> None:
    code = f"def f(a):\n    return a, {name}"
    texts: list[dict[str, Any]] = [{name: "one"}, {name: "two"}]
    numbers: list[dict[str, Any]] = [{name: 1}, {name: 2}]
    versions = {version_of(made(code, **each)) for each in texts}
    assert len(versions) == 1 + counts
    assert len({version_of(made(code, **each)) for each in numbers}) == 2


def test_a_password_in_an_address_does_not_count() -> None:
    code = "def f(a):\n    return a, URL"
    urls = ("https://me:one@host/a", "https://me:two@host/a", "https://me:one@host/b")
    versions = [version_of(made(code, URL=url)) for url in urls]
    assert versions[0] == versions[1] != versions[2]


def test_how_much_is_logged_does_not_count() -> None:
    function = made("def f(a):\n    log.info(a)", log=logging.getLogger("test_versions"))
    before = version_of(function)
    logging.getLogger("test_versions").setLevel(logging.DEBUG)
    assert version_of(function) == before


def test_what_a_method_calls_counts() -> None:
    def kept(more: int) -> Callable[[int], int]:
        class Client:
            def ask(self, number: int) -> int:
                return self._helped(number)

            def _helped(self, number: int) -> int:
                return number + (1 if more else 2)

        return Client().ask

    def other(_more: int) -> Callable[[int], int]:
        class Client:
            def ask(self, number: int) -> int:
                return self._helped(number)

            def _helped(self, number: int) -> int:
                return number + 3

        return Client().ask

    assert version_of(kept(1)) != version_of(other(1))


def test_functions_that_all_name_one_another_are_visited_once_each() -> None:
    names = [f"f{n}" for n in range(40)]
    body = " + ".join(f"{name}(a)" for name in names)
    code = "\n".join(f"def {name}(a):\n    return {body}" for name in names)
    assert version_of(made(code, "f0")) == version_of(made(code, "f0"))


def test_parts_of_functions_and_methods() -> None:
    function = made(PLAIN)
    assert version_of(functools.partial(function, 1)) != version_of(functools.partial(function, 2))
    assert version_of("a".join) != version_of(print)


def test_what_refers_to_itself_ends() -> None:
    ring: list[object] = []
    ring.append(ring)
    assert version_of(made("def f(a):\n    return f(a) if a else ring", ring=ring))


def test_another_process_says_the_same() -> None:
    code = f"""
    from eddyline.keeping.function_version import version_of
    names = {{"b", "a", "c", "zz", "y"}}
    {PLAIN.replace(chr(10), chr(10) + "    ")}
    def g(a):
        return f(a) in {{"one", "two", "three"}} or a in names
    print(version_of(f), version_of(g))
    """
    first, second = (printed_lines(textwrap.dedent(code)) for _ in range(2))
    assert first == second
    assert first[0].split()[0] == version_of(made(PLAIN))


PROMPTS = """
import prompts
import prompts.inner
def function(text):
    import late
    return prompts.TOPIC + prompts.helper() + prompts.inner.LEVEL + late.WORD
"""


@pytest.mark.parametrize(
    "changed",
    ["prompts.TOPIC = 'b'", "prompts.helper = lambda: '2'", "inner.LEVEL = '2'", "late.WORD = 'z'"],
)
def test_what_modules_of_the_project_have_counts(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, inner, late = (ModuleType(name) for name in ("prompts", "prompts.inner", "late"))
    prompts.TOPIC, prompts.helper, prompts.inner = "a", _helper, inner  # type: ignore[attr-defined]
    inner.LEVEL, late.WORD = "1", "y"  # type: ignore[attr-defined]
    inner.UNUSED = 1  # type: ignore[attr-defined]
    for module in (prompts, inner, late):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    names: dict[str, Any] = {"__name__": "project"}
    exec(PROMPTS, names)  # noqa: S102 - of this file
    before = version_of(names["function"])
    inner.UNUSED = 2  # type: ignore[attr-defined]
    assert version_of(names["function"]) == before
    exec(changed, {"prompts": prompts, "inner": inner, "late": late})  # noqa: S102 - likewise
    assert version_of(names["function"]) != before


def _helper() -> str:
    return "1"


CLASSES = {
    "an attribute of a class": "class C: p = {}\ndef function(v): return C.p",
    "a member of an enum": (
        "import enum\nclass E(enum.Enum): A = {}\ndef function(v): return E.A.value"
    ),
    "a property": (
        "class C:\n @property\n def p(self): return {}\nc = C()\ndef function(v): return c.p"
    ),
    "an inherited method": (
        "class B:\n def m(self): return {}\n"
        "class C(B): pass\nc = C()\ndef function(v): return c.m()"
    ),
    "a slot": (
        "class C:\n __slots__ = ('p',)\n def __init__(self): self.p = {}\nc = C()\n"
        "def function(v): return c.p"
    ),
    "an attribute of an attribute": (
        "class D: pass\nclass C: pass\nc = C()\nc.d = D()\nc.d.p = {}\n"
        "def function(v): return c.d.p"
    ),
}


@pytest.mark.parametrize("what", CLASSES)
def test_what_classes_and_objects_of_the_project_have_counts(what: str) -> None:
    versions = []
    for value in (1, 1, 2):
        names: dict[str, Any] = {"__name__": "project"}
        exec(CLASSES[what].format(value), names)  # noqa: S102 - of this file
        versions.append(version_of(names["function"]))
    assert versions[0] == versions[1] != versions[2]
