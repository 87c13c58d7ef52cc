"""Whether a driver's plug-in adapts what a session runs, switched by a program of that session."""

from __future__ import annotations

from typing import Any, Final, Protocol

ENABLED: Final = "spark.eddyline.enabled"
"""Setting of a session: whether its plans are rewritten."""

BY_PROGRAM: Final = "program"
"""What it says where only those are that a program has enabled itself."""

_EXTENSIONS: Final = "spark.sql.extensions"
_PLUGIN: Final = "eddyline.spark.Extensions"


class _Session(Protocol):
    @property
    def conf(self) -> Any: ...  # noqa: ANN401 - a classic session's, or one of Spark Connect's


class PluginSwitch:
    """Keeps the plug-in off a session, and lets it adapt that again."""

    def __init__(self, spark: _Session) -> None:
        """Take a session, classic or of Spark Connect."""
        self._conf: Final = spark.conf
        self._before: str | None = None
        self._off = False

    def turn_off(self) -> None:
        """Have the plug-in leave the session's queries alone, if there is one and it does not."""
        if self._off or _PLUGIN not in str(self._conf.get(_EXTENSIONS, "")):
            return
        before = self._conf.get(ENABLED, None)
        if str(before).strip().lower() not in {"false", BY_PROGRAM}:
            self._before, self._off = before, True
            self._conf.set(ENABLED, BY_PROGRAM)

    def turn_back(self) -> None:
        """Undo that, unless somebody has set it otherwise since."""
        off, self._off = self._off, False
        if not off or self._conf.get(ENABLED, None) != BY_PROGRAM:
            return
        if self._before is None:
            self._conf.unset(ENABLED)
        else:
            self._conf.set(ENABLED, self._before)
