"""The tables of the queries: publications and projects, an online shop, all with slips and gaps.

A seeded generator makes the same rows in each process. The columns:

- publications: id, title, abstract, pubdate, authors, funding, language, topics, open_access, pages
- projects: id, code, acronym, title, funding, start_text, end_text, budget, currency
- citations: id, citing, cited, snippet, score, added
- logs: id, logged, ip, method, url, status, bytes, agent, customer_id
- customers: id, name, email, phone, country, card, birth, newsletter, website
- products: id, sku, name, price, category, tags, weight, released
- orders: id, customer_id, product_id, quantity, amount, currency, placed, note
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.others import research, shop
from bench.short.records import Rows

SEED: Final = 7

ROWS: Final[Rows] = {
    "publications": 60_000,
    "projects": 3_000,
    "citations": 100_000,
    "logs": 100_000,
    "customers": 5_000,
    "products": 500,
    "orders": 40_000,
}


def at_most(rows: int) -> Rows:
    """Return how many rows the tables have if none has more than so many."""
    return {name: min(count, rows) for name, count in ROWS.items()}


def tables(seed: int = SEED, rows: Rows = ROWS) -> dict[str, pa.Table]:
    """Return all tables by name, the same for the same seed."""
    draw = np.random.default_rng(seed)
    projects = research.projects(draw, rows["projects"])
    publications = research.publications(
        draw, rows["publications"], projects["funding"].to_pylist()
    )
    titles = publications["title"].to_pylist()
    return {
        "publications": publications,
        "projects": projects,
        "citations": research.citations(draw, rows["citations"], titles),
        "logs": shop.logs(draw, rows["logs"], rows["customers"], rows["products"]),
        "customers": shop.customers(draw, rows["customers"]),
        "products": shop.products(draw, rows["products"]),
        "orders": shop.orders(draw, rows["orders"], rows["customers"], rows["products"]),
    }


def write(folder: Path, made: Mapping[str, pa.Table]) -> None:
    """Write each table as one Parquet file of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in made.items():
        pq.write_table(table, folder / f"{name}.parquet")


def make_views(spark: SparkSession, folder: Path) -> None:
    """Make the tables known to a session by their names."""
    for name in ROWS:
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
