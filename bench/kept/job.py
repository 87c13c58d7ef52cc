"""An application that calls a paid service: ``python -m bench.kept.job folder keys [url]``.

Each call is a line in ``calls`` as it begins, so that whoever kills this process knows what was
paid. In the end the rows are in ``rows``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import eddyline

IN_FLIGHT = 16
SECONDS = 0.01
"""What a call takes."""


def main(folder: Path, keys: int, keep: str) -> None:
    """Ask for each key, three rows of each; write the sum of all answers."""
    calls = os.open(folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def service(key: int) -> int:
        os.write(calls, f"{key}\n".encode())
        time.sleep(SECONDS)
        return 7 * key

    answer = eddyline.concurrent(
        service,
        returns="bigint",
        max_in_flight=IN_FLIGHT,
        cost=0.002,
        unit="USD",
        keep=keep,
        version="1",
    )
    spark = eddyline.session("kept", master="local[2]")
    rows = spark.range(3 * keys).selectExpr(f"id % {keys} AS key").select("key", answer("key"))
    found = eddyline.adapt(rows.toDF("key", "answer").groupBy("key").sum("answer")).collect()
    text = "\n".join(f"{key} {total}" for key, total in sorted(found))
    (folder / "rows.draft").write_text(text)
    (folder / "rows.draft").rename(folder / "rows")
    spark.stop()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    main(place, int(sys.argv[2]), (*sys.argv[3:], str(place / "answers"))[0])
