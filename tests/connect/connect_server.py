"""A server of Spark Connect in a process of its own, with nothing of Eddyline installed in it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyspark

from eddyline.host.java import java_for_launch

NEEDED: Final = ("grpc", "grpc_status", "google.rpc")
"""What the client of Spark Connect needs beside PySpark, and PySpark does not bring."""

PATIENCE: Final = 120.0
"""Seconds that a server has to begin."""

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": "{folder}/warehouse",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.buffer.pageSize": "1m",
    "spark.sql.ui.explainMode": "simple",
}


def lacking() -> str:
    """Return which of the client's own dependencies are not there; "" where all are."""

    def is_there(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    return ", ".join(name for name in NEEDED if not is_there(name))


@contextmanager
def connect_server(folder: Path, cores: int = 2) -> Iterator[str]:
    """Yield the address of a server that ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {key: value.format(folder=folder) for key, value in SETTINGS.items()}
    settings |= {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", f"local[{cores}]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    with java_for_launch():
        environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    # Workers have PySpark, NumPy and Arrow, and nothing of this project but what a client sends.
    for name in ("PYTHONPATH", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        environment.pop(name, None)
    log = folder / "server.log"
    with log.open("wb") as written:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            env=environment,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for(port, server, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"The server has not begun:\n{log.read_text()[-3000:]}")
