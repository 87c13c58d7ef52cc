"""What works without what only lookups need."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for module in ("aiolimiter", "httpx", "jmespath", "sqlalchemy"):
    sys.modules[module] = None
import eddyline
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has none of the modules."""
    command = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_all_but_lookups_works_without_the_extra() -> None:
    done = run("eddyline.adapt, eddyline.explain, eddyline.report, eddyline.session")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["lookup_table", "HttpLookup", "SqlLookup", "PythonLookup"])
def test_lookups_say_what_to_install(name: str) -> None:
    done = run(f"eddyline.{name}")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"eddyline.{name} needs " in last
    assert last.endswith('pip install "eddyline[lookups]"')
