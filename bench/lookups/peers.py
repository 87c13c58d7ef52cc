"""What people write by hand to join a DataFrame with an HTTP service."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import httpx
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import DoubleType


def row_by_row(rows: DataFrame, url: str) -> DataFrame:
    """A function that asks for every row: the first thing that people write."""

    @F.udf(DoubleType())
    def income(zip_code: int) -> float:
        answer = httpx.get(f"{url}/income/{zip_code}")
        answer.raise_for_status()
        return float(answer.json()[0]["income"])

    return rows.withColumn("income", income("zip"))


def cached(rows: DataFrame, url: str) -> DataFrame:
    """The same with a client that stays open, and a cache in each worker process."""
    known: dict[int, float] = {}
    clients: list[httpx.Client] = []

    @F.udf(DoubleType())
    def income(zip_code: int) -> float:
        if zip_code not in known:
            if not clients:
                clients.append(httpx.Client())
            answer = clients[0].get(f"{url}/income/{zip_code}")
            answer.raise_for_status()
            known[zip_code] = float(answer.json()[0]["income"])
        return known[zip_code]

    return rows.withColumn("income", income("zip"))


def asynchronous(rows: DataFrame, url: str, in_flight: int) -> DataFrame:
    """What a good engineer writes: asyncio over record batches, a cache in each partition.

    ``in_flight`` requests at a time in each task: what the service allows, divided by the tasks.
    """

    def joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known: dict[int, float] = {}

        async def ask(client: httpx.AsyncClient, zip_code: int, free: asyncio.Semaphore) -> None:
            async with free:
                answer = await client.get(f"{url}/income/{zip_code}")
            answer.raise_for_status()
            known[zip_code] = float(answer.json()[0]["income"])

        async def ask_all(client: httpx.AsyncClient, keys: set[int]) -> None:
            free = asyncio.Semaphore(in_flight)
            await asyncio.gather(*(ask(client, key, free) for key in keys))

        with asyncio.Runner() as runner:
            client = httpx.AsyncClient(limits=httpx.Limits(max_connections=in_flight))
            for batch in batches:
                zips = batch.column("zip").to_pylist()
                runner.run(ask_all(client, set(zips) - known.keys()))
                incomes = pa.array([known[each] for each in zips], pa.float64())
                yield pa.RecordBatch.from_arrays(
                    [*batch.columns, incomes], names=[*batch.schema.names, "income"]
                )
            runner.run(client.aclose())

    schema = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema.fields)
    return rows.mapInArrow(joined, f"{schema}, income double")


async def bare(keys: Iterable[int], url: str, in_flight: int) -> None:
    """Ask for keys, as fast as sockets allow, and make nothing of the answers."""
    host, _, port = url.removeprefix("http://").partition(":")
    left = iter(keys)

    async def line() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for key in left:
            writer.write(f"GET /income/{key} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.split(b"Content-Length: ")[1]))
        writer.close()

    await asyncio.gather(*(line() for _ in range(in_flight)))
