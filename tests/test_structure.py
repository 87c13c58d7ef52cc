"""Rules of the code that no other tool checks."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import eddyline

SOURCE = Path(eddyline.__file__).parent
ROOT = Path(__file__).parents[1]

JVM_HANDLE = re.compile(r"\b_(?:jdf|jvm|jsparkSession|jsc)\b")


def sources() -> Iterator[Path]:
    """All modules of the packages that are installed."""
    for package in (SOURCE, SOURCE.parent / "eddyline_demos"):
        yield from package.rglob("*.py")


def test_only_one_room_touches_the_jvm() -> None:
    touching = {
        str(path.relative_to(SOURCE).parent)
        for path in SOURCE.rglob("*.py")
        if JVM_HANDLE.search(path.read_text(encoding="utf-8"))
    }
    assert touching == {"catalyst"}


def test_the_search_for_jvm_handles_finds_them() -> None:
    assert JVM_HANDLE.search("plan = frame._jdf.queryExecution()")
    assert JVM_HANDLE.search("spark._jsparkSession")
    assert not JVM_HANDLE.search("my_jdf_like_name")


def named_classes() -> dict[str, list[str]]:
    """Public classes by name, with the files that define one."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path))
    return found


def test_no_class_has_the_name_of_another() -> None:
    assert {name: files for name, files in named_classes().items() if len(files) > 1} == {}


def test_no_module_has_the_name_of_another() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        if not path.stem.startswith("__"):
            found[path.stem].append(str(path))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_public_errors_are_in_one_place() -> None:
    elsewhere = {
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in SOURCE.rglob("*.py")
        if path.name != "errors.py" and path.parts[-2] != "app"
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and "EddylineError" in map(ast.unparse, node.bases)
    }
    assert elsewhere == {"standing/running_job.py: JobStoppedError"}  # it is for Spark to read


def test_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|java))`", text))
    assert len(named) > 30
    roots = (SOURCE, ROOT)
    lost = {name for name in named if not any(any(root.rglob(name)) for root in roots)}
    assert lost == set()


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = set(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE))
    assert table == {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_links_to_decisions_have_their_numbers() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (path.name, said, linked)
        for path in pages
        for said, linked in re.findall(
            r"\[(?:decision\s+)?(\d+)\]\((?:[\w./]*/)?(\d{4})-", path.read_text(encoding="utf-8")
        )
    ]
    assert len(links) > 100
    assert [link for link in links if int(link[1]) != int(link[2])] == []


def test_public_names_are_known_to_type_checkers() -> None:
    """What is imported on first use has its type from an import that never runs."""
    tree = ast.parse(Path(eddyline.__file__).read_text("utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == eddyline._ON_FIRST_USE
    modules = {
        alias.name for node in checked.body if isinstance(node, ast.Import) for alias in node.names
    }
    assert modules == {f"eddyline.{name}" for name in eddyline._MODULES}
