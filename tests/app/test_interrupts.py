"""Ctrl-C at any moment ends a command, its processes and its folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from eddyline.app import processes
from eddyline.app.interrupts import (
    before_interrupts,
    interrupts_handled,
    interrupts_put_off,
    temporary_folder,
)
from eddyline.app.processes import children, end

pytestmark = pytest.mark.slow(50)

PATIENCE = 120.0  # seconds that a busy machine may take for anything

RULES = """
    import os
    import time
    from pathlib import Path


    def waits(number: int) -> bool:
        Path(os.environ["MARKS"], "query").touch()
        time.sleep(60)
        return True


    def odd(number: int) -> bool:
        return number % 2 == 1
"""


@pytest.fixture
def mark() -> str:
    """What all processes of a command have in their environment."""
    return f"EDDYLINE_TEST={uuid.uuid4()}"


@contextmanager
def command(folder: Path, mark: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    name, _, value = mark.partition("=")
    for each in ("tmp", "marks", "here"):
        (folder / each).mkdir()
    (folder / "here" / "waiting.py").write_text(dedent(RULES), encoding="utf-8")
    variables = {"TMPDIR": str(folder / "tmp"), "MARKS": str(folder / "marks"), name: value}
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, "-m", "eddyline", *arguments],
        cwd=folder / "here",
        env=os.environ | variables | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def running(mark: str) -> list[str]:
    """The processes that have a mark, by their command lines."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " ")[:200])
        except OSError:
            continue
    return [each for each in found if each]


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def require_nothing_left(
    folder: Path, mark: str, process: subprocess.Popen[str], code: int = 130
) -> None:
    out, err = process.communicate(timeout=PATIENCE)
    left = running(mark)
    assert left == []
    assert list((folder / "tmp").iterdir()) == []
    assert [each.name for each in (folder / "here").iterdir() if each.suffix != ".py"] in (
        [],
        ["__pycache__"],
    )
    assert process.returncode == code, err
    assert out == ""
    assert "Traceback" not in err


QUERY = (
    "sql",
    "--udf=waiting:waits",
    "--udf=waiting:odd",
    "SELECT count(*) FROM range(1000) WHERE waits(id) AND odd(id)",
)

needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


@needs_proc
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("moment", ["folder", "child", "JVM", "JVM starts", "context", "query"])
def test_nothing_is_left_behind(tmp_path: Path, mark: str, moment: str, times: int) -> None:
    temporary = tmp_path / "tmp"
    reached: dict[str, Callable[[], object]] = {
        "folder": lambda: list(temporary.iterdir()),
        "child": lambda: len(running(mark)) > 1,
        "JVM": lambda: any("SparkSubmit" in each for each in running(mark)),
        "JVM starts": lambda: list(temporary.glob("eddyline-*/tmp/*/")),
        "context": lambda: list(temporary.glob("eddyline-*/tmp/blockmgr-*")),
        "query": (tmp_path / "marks" / "query").exists,
    }
    with command(tmp_path, mark, *QUERY) as process:
        wait_for(reached[moment])
        for _ in range(times):
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            time.sleep(0.1)
        require_nothing_left(tmp_path, mark, process)


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_behind_by_other_signals(
    tmp_path: Path, mark: str, number: signal.Signals
) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # under nohup children would ignore it
    try:
        with command(tmp_path, mark, *QUERY) as process:
            wait_for((tmp_path / "marks" / "query").exists)
            process.send_signal(number)
            require_nothing_left(tmp_path, mark, process, 128 + number)
    finally:
        signal.signal(number, before)


def test_nohup_stays_what_it_is() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts_handled():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@needs_proc
def test_nothing_is_left_behind_by_a_command_that_ends_by_itself(tmp_path: Path, mark: str) -> None:
    with command(tmp_path, mark, "sql", "--plain", "SELECT 1 AS one") as process:
        out, _ = process.communicate(timeout=PATIENCE)
        assert out.split() == ["one", "---", "1"]
        assert list((tmp_path / "tmp").iterdir()) == []
        wait_for(lambda: not running(mark))
        assert list((tmp_path / "tmp").iterdir()) == []


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_twice_in_a_row_counts_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    called: list[int] = []
    for _ in range(2):  # each command takes its own
        with interrupts_handled():
            with before_interrupts(lambda: called.append(1)), pytest.raises(KeyboardInterrupt):
                interrupt()
            interrupt()
            interrupt()
    assert called == [1, 1]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_waits_for_the_end_of_what_puts_it_off() -> None:
    steps = []

    def put_off() -> None:
        with interrupts_put_off():
            with interrupts_put_off():
                interrupt()
            steps.append("inner")
        steps.append("outer")

    with interrupts_handled(), pytest.raises(KeyboardInterrupt):
        put_off()
    assert steps == ["inner"]


def test_a_temporary_folder_is_gone_with_its_block(tmp_path: Path) -> None:
    def interrupted() -> None:
        with temporary_folder("eddyline-", tmp_path) as folder:
            (folder / "below").mkdir()
            interrupt()

    with interrupts_handled(), pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(100)"

NESTED = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {DEAF!r}])
print("there", flush=True)
time.sleep(100)
"""


def test_processes_are_ended_with_all_below_them() -> None:
    before = children()
    with subprocess.Popen(
        [sys.executable, "-c", NESTED], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        mine = children() - before
        assert [each.number for each in mine] == [process.pid]
        below = {each for each, above in processes._running() if above == process.pid}
        assert len(below) == 1
        end(mine)
        assert process.wait() == -signal.SIGTERM
    assert below.isdisjoint(each for each, _ in processes._running())


STARTS_OTHERS = """
import subprocess, time
for _ in range(300):
    subprocess.Popen(["sleep", "100"], stdout=subprocess.DEVNULL)
    print("there", flush=True)
time.sleep(100)
"""


@needs_proc
def test_processes_are_ended_that_are_started_meanwhile(mark: str) -> None:
    before = children()
    name, _, value = mark.partition("=")
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_OTHERS],
        stdout=subprocess.PIPE,
        env=os.environ | {name: value},
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        end(children() - before)
    assert running(mark) == []


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="asks ps")
def test_processes_are_found_without_proc_too() -> None:
    mine = {each.number for each, _ in processes._listed()}
    assert os.getpid() in mine
    above = {each.number: parent for each, parent in processes._listed()}
    assert above[os.getpid()] == os.getppid()


def test_a_later_ctrl_c_counts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with interrupts_handled():
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        later = time.monotonic() + 1.5
        monkeypatch.setattr(time, "monotonic", lambda: later)
        with pytest.raises(KeyboardInterrupt):
            interrupt()


def test_ctrl_c_is_not_for_a_child_that_is_no_other_program_yet() -> None:
    with interrupts_handled():
        child = os.fork()
        if not child:
            interrupt()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


class InterruptedAtItsEnd:
    def __del__(self) -> None:
        interrupt()


def test_ctrl_c_where_python_cannot_raise_it_comes_again() -> None:
    def finalize() -> None:
        InterruptedAtItsEnd()
        time.sleep(PATIENCE)

    with interrupts_handled(), pytest.raises(KeyboardInterrupt):
        finalize()
