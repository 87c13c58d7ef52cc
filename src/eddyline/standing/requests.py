"""Requests of other processes to a running job, through files of its state directory."""

from __future__ import annotations

import fcntl
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from eddyline.errors import RequestRefusedError, StateError
from eddyline.standing.log.files import DamagedFileError, read_whole, write_new

EVERY: Final = 0.2
"""Seconds between two looks for requests, or for an answer."""

PATIENCE: Final = 60.0
"""Seconds that an answer is waited for."""

Answer: TypeAlias = "dict[str, Any]"


class Desk:
    """Answers requests in a thread of its own, one after the other."""

    def __init__(self, state: Path, answer: Callable[[Mapping[str, Any]], Any]) -> None:
        """Begin; ``answer`` gives what can be said in JSON, or raises what is told instead."""
        self._directory = state / "requests"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._answer = answer
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="eddyline-requests", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End with the request that is being answered."""
        self._closed.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._closed.wait(EVERY):
            for path in sorted(self._directory.glob("*.request")):
                self._serve_one(path)

    def _serve_one(self, path: Path) -> None:
        answer: Answer
        try:
            request = json.loads(read_whole(path))
            answer = {"answer": self._answer(request)}
        except (DamagedFileError, ValueError, KeyError, RuntimeError, OSError) as error:
            answer = {"error": " ".join(str(error).split())}
        except Exception as error:  # noqa: BLE001 - Spark's errors, which whoever asks is to see
            answer = {"error": str(error)}
        path.unlink(missing_ok=True)
        write_new(path.with_suffix(".answer"), json.dumps(answer).encode())


def ask(state: Path, request: Mapping[str, Any], patience: float = PATIENCE) -> Any:  # noqa: ANN401 - JSON
    """Return the answer of the job that runs in a state directory.

    RequestRefusedError with what it says against it, StateError where no job answers.
    """
    directory = state / "requests"
    if not directory.is_dir():
        raise StateError(f"there is no job in {state}: start one by eddyline rules run")
    name = f"{time.time_ns()}-{uuid.uuid4().hex}"
    path, answered = directory / f"{name}.request", directory / f"{name}.answer"
    write_new(path, json.dumps(request).encode())
    waited_until = time.monotonic() + patience
    try:
        while not answered.exists():
            if not is_running(state):
                raise StateError(f"no job runs in {state}: start one by eddyline rules run")
            if time.monotonic() > waited_until:
                raise StateError(f"the job in {state} has not answered for {patience:.0f} s")
            time.sleep(EVERY / 4)
        answer = json.loads(read_whole(answered))
    finally:
        path.unlink(missing_ok=True)
        answered.unlink(missing_ok=True)
    if "error" in answer:
        raise RequestRefusedError(answer["error"])
    return answer["answer"]


def is_running(state: Path) -> bool:
    """Tell whether a process has the state directory open."""
    try:
        with (state / "lock").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
