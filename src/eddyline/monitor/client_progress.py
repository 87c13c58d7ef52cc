"""Progress of the actions of a session of Spark Connect, by what its server tells of them.

A client hears of tasks while an action runs, and of what blocks have done when it has ended
(:func:`eddyline.report`).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.shell.progress import ProgressHandler
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from eddyline.connect.session_hook import chosen_client_session
from eddyline.monitor.display import PATIENCE, Display
from eddyline.monitor.progress_lines import fitting, tasks_bar
from eddyline.monitor.screen import checked_console
from eddyline.reports.wording import duration


@dataclass(frozen=True, slots=True)
class ClientAction:
    """An action that runs: since when, in seconds of the monotonic clock, and its tasks."""

    started: float
    tasks: int = 0
    done: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True)
class ActionLines:
    """What rich shows of actions at a time: a line each, cut where the terminal ends."""

    actions: Sequence[ClientAction]
    now: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        for action in self.actions:
            parts = [
                tasks_bar(action.done, action.tasks, unicode=not options.ascii_only),
                f"{action.running:,} running",
                duration(self.now - action.started),
            ]
            yield Text(fitting(parts, options.max_width))


class ClientActions(ProgressHandler):
    """The actions of a client that run; it hears of them in any thread."""

    def __init__(self) -> None:
        """Know of none."""
        self._actions: dict[str, ClientAction] = {}
        self._lock = threading.Lock()

    def __call__(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,  # noqa: FBT001 - PySpark's protocol
    ) -> None:
        """Hear how far an action is."""
        name = operation_id or ""
        with self._lock:
            known = self._actions.pop(name, None)
            if done:
                return
            counts = list(stages or ())
            self._actions[name] = ClientAction(
                time.monotonic() if known is None else known.started,
                sum(stage.num_tasks for stage in counts),
                sum(stage.num_completed_tasks for stage in counts),
                inflight_tasks,
            )

    def running(self, least: float) -> Iterator[ClientAction]:
        """Yield the actions that have run for some seconds, the oldest first."""
        with self._lock:
            actions = list(self._actions.values())
        until = time.monotonic() - least
        yield from sorted(
            (action for action in actions if action.started <= until),
            key=lambda action: action.started,
        )


class ClientProgress(Display):
    """What is shown while actions of a session run; it goes on until :meth:`stop`."""

    def __init__(self, spark: SparkSession, console: Console) -> None:
        """Begin, with the next action."""
        self._client = spark.client
        self._actions = ClientActions()
        self._client.register_progress_handler(self._actions)
        super().__init__(console)

    def _picture(self) -> ActionLines | None:
        actions = tuple(self._actions.running(PATIENCE))
        return ActionLines(actions, time.monotonic()) if actions else None

    def _forget(self) -> None:
        """Forget nothing: its server says when an action is over."""

    def _end(self) -> None:
        with contextlib.suppress(ValueError):  # somebody has taken all handlers away
            self._client.remove_progress_handler(self._actions)


def progress(
    spark: SparkSession | None = None, *, console: Console | None = None
) -> ClientProgress:
    """Show the progress of actions while they run: tasks, those that run now, and the time.

    It covers all actions of ``spark``, by default the active session, from its next action on;
    what their eddies did :func:`eddyline.report` tells afterwards. For the rest it is the classic
    verb. Raises ``RuntimeError`` where there is no session.
    """
    where = checked_console(console)
    return ClientProgress(chosen_client_session(spark), where)
