"""Eddyline's counters for OpenTelemetry."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from eddyline import __version__, catalyst
from eddyline.counters import COUNTERS, Counter
from eddyline.host.classic import chosen_session
from eddyline.planner.operating import operating_of

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

APPLICATION: Final = "spark.app.id"
"""The attribute that tells the counters of one Spark application from those of another."""


_open: Final[WeakKeyDictionary[MeterProvider, list[Telemetry]]] = WeakKeyDictionary()
"""Who tells a provider what: its instruments are made once, and OpenTelemetry keeps them."""

_opening: Final = threading.Lock()


class Telemetry:
    """The counters of a Spark application as a meter provider sees them, until :meth:`stop`."""

    def __init__(self, spark: SparkSession, provider: MeterProvider) -> None:
        """Have a provider read the counters from now on."""
        self.application: Final = str(spark.sparkContext.applicationId)
        self._spark: Final = spark
        self._operating: Final = operating_of(spark.sparkContext)
        with _opening:
            made = provider in _open
            self._told: Final = _open.setdefault(provider, [])
            self._told.append(self)
        if not made:
            _instrument(provider, self._told)

    def value(self, counter: Counter) -> int | None:
        """Return what a counter says; None where Spark has stopped."""
        if catalyst.is_stopped(self._spark):
            return None
        return self._operating.values()[counter]

    def stop(self) -> None:
        """Tell no more. OpenTelemetry keeps the names of the counters, without values."""
        with _opening:
            if self in self._told:
                self._told.remove(self)

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
        return "OpenTelemetry reads the counters of this Spark application."


def _instrument(provider: MeterProvider, told: Sequence[Telemetry]) -> None:
    """Make the instruments of a provider, which ask all that tell it something."""
    from opentelemetry.metrics import Observation  # noqa: PLC0415 - of the extra 'telemetry'

    def observing(counter: Counter) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observed(_: CallbackOptions) -> Iterator[Observation]:
            # Two that tell of one application do not count it twice.
            for each in {each.application: each for each in tuple(told)}.values():
                value = each.value(counter)
                if value is not None:
                    yield Observation(value, {APPLICATION: each.application})

        return observed

    meter = provider.get_meter("eddyline", __version__)
    for counter in COUNTERS:
        meter.create_observable_counter(
            f"eddyline.{counter.name}",
            [observing(counter)],
            unit=counter.unit,
            description=counter.description,
        )


def telemetry(
    spark: SparkSession | None = None, *, provider: MeterProvider | None = None
) -> Telemetry:
    """Have OpenTelemetry read the counters of a Spark application.

    They become observable counters of a meter named ``eddyline``: ``eddyline.blocks``,
    ``eddyline.rows``, ``eddyline.calls.made``, ``eddyline.calls.avoided``,
    ``eddyline.calls.remembered``, ``eddyline.lookup.requests``, ``eddyline.quota.refused``,
    ``eddyline.budget.refused``, ``eddyline.spilled`` (bytes) and ``eddyline.callbacks.failed``,
    with the attribute ``spark.app.id``. They count from the first adapted query of the Spark
    context, for all its sessions, and are read when the provider's reader asks: nothing is sent
    from here.

    ``provider`` is the global meter provider by default, and ``spark`` the active session. It lasts
    until :meth:`Telemetry.stop`, the end of a ``with`` block, or the end of the context.

    Raises ``ModuleNotFoundError`` without ``opentelemetry-api``, which
    ``pip install "eddyline[telemetry]"`` brings, ``RuntimeError`` where there is no session or it
    was stopped, and ``ConnectNotSupportedError`` for one of Spark Connect.
    """
    active = chosen_session(spark)
    try:
        from opentelemetry import metrics  # noqa: PLC0415 - of the extra 'telemetry'
    except ModuleNotFoundError as error:
        message = 'eddyline.telemetry needs opentelemetry-api: pip install "eddyline[telemetry]"'
        raise ModuleNotFoundError(message, name=error.name) from error
    return Telemetry(active, provider or metrics.get_meter_provider())
