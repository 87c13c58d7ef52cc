"""What a release is made of says the same everywhere."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import eddyline

ROOT = Path(__file__).parents[1]
NOTES: Any = runpy.run_path(str(ROOT / "scripts/make_release.py"))["notes"]

CHANGES = """# Changes

## 0.2.0 (2026-12-01)

- New.

## 0.1.0 (unreleased)

- Begun.
"""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


def test_the_notes_are_the_versions_section() -> None:
    assert NOTES(CHANGES, "0.2.0", draft=False) == "- New.\n"
    assert NOTES(CHANGES, "0.1.0", draft=True) == "- Begun.\n"
    with pytest.raises(ValueError, match=r"gives 0\.1\.0 no date"):
        NOTES(CHANGES, "0.1.0", draft=False)
    with pytest.raises(ValueError, match=r"no section of 0\.3\.0"):
        NOTES(CHANGES, "0.3.0", draft=True)
    with pytest.raises(ValueError, match=r"no section of 0\.2\."):
        NOTES(CHANGES, "0.2", draft=True)


def test_conda_needs_what_pip_needs(project: dict[str, Any]) -> None:
    recipe = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == eddyline.__version__

    def told(requirements: list[str]) -> set[str]:
        return {each.replace(" ", "") for each in requirements}

    needed = {f"python{project['requires-python']}", *project["dependencies"]}
    assert told(recipe["requirements"]["run"]) == needed
    (spark,) = (
        each for each in project["optional-dependencies"]["spark"] if each.startswith("pyspark")
    )
    assert told(recipe["requirements"]["run_constraints"]) == {spark}
    (entry,) = recipe["build"]["python"]["entry_points"]
    name, _, target = entry.partition(" = ")
    assert project["scripts"] == {name: target}


def test_the_workflow_asks_for_no_password() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert jobs["publish"]["needs"] == "build"
    assert "make release" in [step.get("run") for step in jobs["build"]["steps"]]
    assert "make docs-release ARGS=pages" in [step.get("run") for step in jobs["site"]["steps"]]
    assert "secrets." not in text
