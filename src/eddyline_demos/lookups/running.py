"""Starts the demo's services, reads what they have seen, and ends them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from eddyline.app.endings import RunError
from eddyline_demos.lookups.service import LOG

LATENCY: Final = 0.02
"""Seconds that a service takes to answer: a quick one in the same country."""

LIMIT: Final = 32
"""Requests at a time that a service takes."""

_PATIENCE: Final = 5.0
"""Seconds that the services have to end, once nobody holds them."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A service answers nobody for some ``seconds`` after its request number ``after``."""

    after: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RequestsSeen:
    """What a service has seen: requests that it took, distinct ones among them, refused ones."""

    requests: int
    keys: int
    refused: int


@dataclass(frozen=True, slots=True)
class Services:
    """The services that run, by their URLs."""

    weather: str
    register: str

    def seen(self) -> tuple[RequestsSeen, RequestsSeen]:
        """Return what the weather API and the aircraft register have seen since they started."""
        return _seen(self.weather), _seen(self.register)


@contextmanager
def running_services(
    weather: Mapping[str, object], register: Mapping[str, object], rest: Rest | None = None
) -> Iterator[Services]:
    """Run a weather API and an aircraft register, which may ``rest``; end both with the block.

    They are given by what they answer to which path. RunError where they cannot be started.
    """
    common = {"latency": LATENCY, "limit": LIMIT}
    pause = None if rest is None else (rest.after, rest.seconds)
    described = [{"answers": weather} | common, {"answers": register, "rest": pause} | common]
    process = subprocess.Popen(
        [sys.executable, "-m", "eddyline_demos.lookups.service"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C is for the demo, which then ends them
    )
    try:
        ports = _ports(process, json.dumps(described))
        yield Services(*(f"http://127.0.0.1:{port}" for port in ports))
    finally:
        _end(process)


def _ports(process: subprocess.Popen[str], described: str) -> list[int]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("all three are pipes")
    try:
        process.stdin.write(described + "\n")
        process.stdin.flush()
        ports: list[int] = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        why = process.stderr.read().strip().rpartition("\n")[2]
        raise RunError(f"the services of the demo cannot be started: {why}") from None
    return ports


def _end(process: subprocess.Popen[str]) -> None:
    try:
        # Closes its input, with which it ends.
        process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _seen(url: str) -> RequestsSeen:
    with urllib.request.urlopen(url + LOG) as answer:  # noqa: S310 - our own
        return RequestsSeen(**json.load(answer))
