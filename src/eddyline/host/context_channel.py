"""The channel of a Spark context, over which its tasks reach the driver."""

from __future__ import annotations

import logging
from typing import Final

from pyspark import SparkContext

from eddyline.asking.driver_channel import DriverChannel
from eddyline.host.per_context import PerContext
from eddyline.host.session import local_cores

PORT: Final = "spark.eddyline.port"
"""Setting: the driver's port for all that tasks ask, tell and bring; any free one by default."""

FORMER_PORTS: Final = (
    "spark.eddyline.lookups.port",
    "spark.eddyline.live.port",
    "spark.eddyline.watch.port",
)
"""Settings that named a port of its own for each of these; where there is no other, they count."""

LAST_PORT: Final = (1 << 16) - 1

_DRIVER_HOST: Final = "spark.driver.host"

_log = logging.getLogger(__name__)


def chosen_port(settings: dict[str, str]) -> int:
    """Return the port that settings name, 0 where they name none; ValueError for what is no port.

    >>> chosen_port({"spark.eddyline.port": "4050", "spark.eddyline.watch.port": "4060"})
    4050
    >>> chosen_port({"spark.eddyline.watch.port": "4060"})
    4060
    """
    for name in (PORT, *FORMER_PORTS):
        given = settings.get(name) or "0"
        if not given.isdecimal() or int(given) > LAST_PORT:
            raise ValueError(f"{name} is a port from 0 to {LAST_PORT}, not {given!r}.")
        port = int(given)
        if port:
            if name != PORT:
                _log.warning("%s is %s now, the one port for all that tasks ask", name, PORT)
            return port
    return 0


def _opened(context: SparkContext) -> DriverChannel:
    settings = dict(context.getConf().getAll())
    port = chosen_port(settings)
    if local_cores(str(context.master)) is not None:
        return DriverChannel(port=port)
    # Executors are elsewhere, and bring a token.
    return DriverChannel("0.0.0.0", port, settings.get(_DRIVER_HOST, "127.0.0.1"))  # noqa: S104


_channels = PerContext(_opened, DriverChannel.close)


def channel_of(context: SparkContext) -> DriverChannel:
    """Return the channel of a Spark context.

    OSError where it cannot be opened, ValueError where its setting is no port.
    """
    return _channels.of(context)
