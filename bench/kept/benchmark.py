"""``make bench ARGS=ledger``: a driver that is killed again and again pays for each key once.

The driver is killed with SIGKILL, with all that it has started, after a random number of calls, and
started again until it is done. Then it must have made at most a call for each distinct key and
those that were under way at each kill, and have the rows of a run that nobody disturbed; and once
more, in an application of its own, no call at all.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.kept.job import IN_FLIGHT

PATIENCE = 300.0
"""Seconds after which a driver that neither calls nor ends is given up."""


def lines(file: Path) -> int:
    """Return how many calls a file has."""
    return file.read_bytes().count(b"\n") if file.exists() else 0


def run(folder: Path, keys: int, most: int | None, *, hadoop: bool) -> bool:
    """Run the application; kill it after so many further calls. Tell whether it was killed."""
    calls = folder / "calls"
    url = [f"file://{folder}/answers"] if hadoop else []
    before = lines(calls)
    with (folder / "output").open("ab") as output:
        job = subprocess.Popen(  # noqa: S603 - this very project
            [sys.executable, "-m", "bench.kept.job", str(folder), str(keys), *url],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + PATIENCE
    while job.poll() is None:
        if most is not None and lines(calls) - before >= most:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            return True
        if time.monotonic() > deadline:
            os.killpg(job.pid, signal.SIGKILL)
            raise TimeoutError(f"the application hangs; see {folder / 'output'}")
        time.sleep(0.002)
    if job.returncode:
        raise RuntimeError((folder / "output").read_text()[-2_000:])
    return False


def main(arguments: Sequence[str]) -> int:
    """Kill, start again, and say what was paid; 1 where that is too much, or rows are wrong."""
    parser = argparse.ArgumentParser(prog="bench ledger", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--keys", type=int, default=6_000)
    parser.add_argument("--hadoop", action="store_true", help="keep by a file:// URL")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    console = Console()
    chance = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="eddyline-kept-") as name:
        folder = Path(name)
        killed = 0
        while killed < chosen.kills:
            left = chosen.keys - lines(folder / "calls")
            most = chance.randint(1, max(1, left // (chosen.kills - killed)))
            if not run(folder, chosen.keys, most, hadoop=chosen.hadoop):
                break
            killed += 1
            console.print(f"kill {killed:>3}: {lines(folder / 'calls'):>6,} calls", highlight=False)
        if not (folder / "rows").exists():
            run(folder, chosen.keys, None, hadoop=chosen.hadoop)
        calls = lines(folder / "calls")
        bound = chosen.keys + killed * IN_FLIGHT
        expected = "\n".join(f"{key} {3 * 7 * key}" for key in range(chosen.keys))
        same = (folder / "rows").read_text() == expected
        (folder / "rows").unlink()
        run(folder, chosen.keys, None, hadoop=chosen.hadoop)
        again = lines(folder / "calls") - calls
        same = same and (folder / "rows").read_text() == expected
    console.print(
        f"{killed} kills: {calls:,} calls for {chosen.keys:,} keys (at most {bound:,}), "
        f"{again} in a second application; rows {'equal' if same else 'DIFFER'}",
        highlight=False,
    )
    return 0 if calls <= bound and again == 0 and same else 1
