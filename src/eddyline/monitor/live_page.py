"""The public face of the live page."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from markupsafe import escape
from pyspark.sql import SparkSession

from eddyline.host.classic import chosen_session
from eddyline.monitor.looking import looking_of
from eddyline.monitor.page_server import PageServer

_LAST_PORT: Final = 65_535


class LivePage:
    """A page of the running and past queries of a session, until :meth:`stop`."""

    def __init__(self, spark: SparkSession, port: int = 0) -> None:
        """Begin to serve, and to look at the session's actions from the next one on."""
        self._spark = spark
        self._looking = looking_of(spark.sparkContext)
        self._server: PageServer | None = PageServer(self._looking.book, port)
        self.url: Final = self._server.url
        """Its address, which only this machine answers; the token in it is the key."""
        self._looking.begin(spark)

    def stop(self) -> None:
        """Serve and look no more."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._looking.end(self._spark)

    def __enter__(self) -> Self:
        """Return this; :meth:`stop` at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    def __repr__(self) -> str:
        return f"Queries while they run: {self.url}"

    def _repr_html_(self) -> str:
        url = escape(self.url)
        return f'<a href="{url}" target="_blank" rel="noreferrer">Queries while they run</a>'


def live(spark: SparkSession | None = None, *, port: int = 0) -> LivePage:
    """Serve a page with the running and past queries of a session.

    The page shows how tuples flow through predicates and SteMs, in which order, at what cost and
    with what savings. It is served to this machine only, at an address that contains a token;
    ``print`` the result to see it. From the session's next action on every task reports its
    progress, at most four times a second. ``port`` is any free one by default. The page ends with
    :meth:`LivePage.stop`, with the block, or with the process.

    Raises ``RuntimeError`` where there is no session, ``ConnectNotSupportedError`` for one of Spark
    Connect, ``TypeError`` and ``ValueError`` for an invalid port, ``OSError`` for one that is in
    use.
    """
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"A port is a whole number, not {port!r}.")
    if not 0 <= port <= _LAST_PORT:
        raise ValueError(
            f"A port is a number from 0, for any free one, to {_LAST_PORT}, not {port}."
        )
    return LivePage(chosen_session(spark), port)
