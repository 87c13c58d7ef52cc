"""A stream of flights, and rules about them."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline_demos.flights import read_table

COLUMNS: Final = ("carrier", "flight", "origin", "dest", "dep_delay", "distance", "time_hour")

TEMPLATE: Final = (
    "SELECT carrier, flight, origin, dest, dep_delay FROM flights "
    "WHERE dest = :dest AND origin = :origin AND dep_delay BETWEEN :late AND :later"
)
"""Who waits for somebody at an airport wants to hear of such flights."""


def write_stream(folder: Path, batches: int, sample: int | None) -> list[Path]:
    """Write the flights of a year as files, a micro-batch each, in the order of departure."""
    table = read_table("flights").select(list(COLUMNS)).sort_by("time_hour")
    if sample is not None and sample < len(table):
        rows = len(table)
        table = table.take(pa.array([place * rows // sample for place in range(sample)]))
    folder.mkdir(parents=True)
    paths = []
    for batch in range(batches):
        start, stop = (len(table) * edge // batches for edge in (batch, batch + 1))
        path = folder / f"{batch:05}.parquet"
        pq.write_table(table.slice(start, stop - start), path)
        os.utime(
            path, (1_000_000 + batch, 1_000_000 + batch)
        )  # the order in which Spark takes them
        paths.append(path)
    return paths


def make_rules(count: int, seed: int, name: str) -> pd.DataFrame:
    """Return rules: an airport and from where, and how late a flight is."""
    chance = random.Random(seed)  # noqa: S311 - the same rules every time
    table = read_table("flights")
    airports = sorted(set(table["dest"].to_pylist()))
    late = [chance.randrange(15, 120) for _ in range(count)]
    return pd.DataFrame(
        {
            "name": [f"{name}-{number}" for number in range(count)],
            "dest": [chance.choice(airports) for _ in range(count)],
            "origin": [chance.choice(["EWR", "JFK", "LGA"]) for _ in range(count)],
            "late": late,
            "later": [minutes + chance.randrange(5, 60) for minutes in late],
        }
    )
