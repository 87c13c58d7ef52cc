"""``make bench ARGS=folders``: answers in a local file, and on a file system through Hadoop.

The seconds to keep groups of 1 and of 100 answers, and to open a ledger of 100,000. With ``--url``
the folder is on a file system of one's own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

import eddyline
from eddyline import catalyst
from eddyline.keeping.answer_store import AnswerStore, KeptEntry
from eddyline.keeping.key_bytes import key_of
from eddyline.keeping.shared_store import SharedStore

GROUPS = 50
ANSWERS = 100_000
TEXT = "x" * 100


def group(number: int, first: int, size: int) -> list[tuple[int, bytes, KeptEntry]]:
    """Return answers of 100 letters to keys from ``first`` on."""
    keys = range(first, first + size)
    return [(number, key_of((key,)), KeptEntry(f"{key} {TEXT}", 5.0, 0.1)) for key in keys]


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def keeping(store: AnswerStore | SharedStore) -> dict[int, float]:
    """Return the median seconds to keep a group, by its size."""
    number = store.function("f", "1", "(long) -> string", "USD")
    medians = {}
    for size in (1, 100):
        groups = [group(number, n * size, size) for n in range(GROUPS)]
        times = [seconds(lambda some=some: store.keep(some)) for some in groups]  # type: ignore[misc]
        medians[size] = statistics.median(times)
    return medians


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="bench folders", description=__doc__)
    parser.add_argument("--url", default="", help="a folder that is empty; file:// by default")
    parser.add_argument("--files", type=int, default=50, help="of the ledger that is opened")
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False)
    spark = eddyline.session()
    with tempfile.TemporaryDirectory(prefix="eddyline-folders-") as name:
        url = chosen.url or f"file://{name}/hadoop"
        local = AnswerStore(Path(name, "sqlite"))
        shared = SharedStore(catalyst.HadoopFolder(f"{url}/groups"))
        for what, store in (("SQLite", local), (url, shared)):
            for size, median in keeping(store).items():
                console.print(f"{what}: a group of {size}: {1000 * median:.1f} ms")
        refresh = statistics.median(seconds(shared.refresh) for _ in range(GROUPS))
        console.print(f"{url}: to look for new files: {1000 * refresh:.1f} ms")
        local.close()
        shared.close()
        folder = catalyst.HadoopFolder(f"{url}/large")
        large = SharedStore(folder)
        number = large.function("f", "1", "(long) -> string", "USD")
        each = ANSWERS // chosen.files
        for n in range(chosen.files):
            large.keep(group(number, n * each, each))
        bytes_there = large.size()
        large.close()
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            opened = SharedStore(folder)
            times.append(time.perf_counter() - begin)
            opened.close()
        opening = statistics.median(times)
        console.print(
            f"{url}: to open {ANSWERS:,} answers in {chosen.files} files, "
            f"{bytes_there / 1e6:.1f} MB: {opening:.2f} s"
        )
    spark.stop()
    return 0
