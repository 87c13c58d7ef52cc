"""Every error that Eddyline raises on its own account; their paths do not change."""

from __future__ import annotations

from collections.abc import Sequence


class EddylineError(Exception):
    """Something that Eddyline was asked for cannot be done; the message says what to do.

    Each failure has its own subclass, which is also the fitting builtin (``ValueError``,
    ``RuntimeError``, …). What a user's own function raises is never wrapped: it surfaces as Spark
    surfaces it, with the function's traceback.
    """


class AggregateOverflowError(EddylineError, ArithmeticError):
    """A final value does not fit the aggregate's type."""


class BashNotFoundError(EddylineError, RuntimeError):
    """Spark starts by scripts for bash, and there is none on this machine."""

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__(
            "Spark is started by scripts for bash, and there is no bash on PATH. Install it, for "
            "example by apk add bash on Alpine Linux."
        )


class BudgetSpentError(EddylineError, RuntimeError):
    """A job has spent its budget for a function, and needs another call of it."""


class ConnectNotSupportedError(EddylineError, NotImplementedError, TypeError):
    """Something is asked for a DataFrame or a session of Spark Connect that needs the driver."""


class CostError(EddylineError, ValueError):
    """A function's ``cost`` has not said what a call costs."""


class FunctionAnswerError(EddylineError, ValueError):
    """A function has returned another number of values than it was given rows."""


class FunctionFailedError(EddylineError, RuntimeError):
    """A function has raised for some arguments, has not answered, or with another type."""


class FunctionForgottenError(EddylineError, LookupError):
    """A query calls a concurrent function that nobody has held, and that was declared long ago."""


class FunctionTooSlowError(EddylineError, TimeoutError):
    """A function of standing queries has taken as long as it may in a micro-batch."""


class FunctionPlaceError(EddylineError, ValueError):
    """A concurrent function stands where nobody could make its calls."""


class JavaNotFoundError(EddylineError, RuntimeError):
    """There is no Java that can run Spark on this machine."""


class LedgerError(EddylineError, OSError):
    """A ledger's file cannot be opened, read or written, or is none of ours."""


class LookupAnswerError(EddylineError, ValueError):
    """A source has answered a lookup with something else than rows of its relation."""


class LookupFailedError(EddylineError, RuntimeError):
    """A source has not answered, or with something else than rows, and will not."""


class MissingSecretError(EddylineError, LookupError):
    """A source names an environment variable that is not set."""


class NobodyReadsError(EddylineError, ConnectionError):
    """The JVM has ended a task early, as a limit does."""


class NotAdaptedError(EddylineError, RuntimeError):
    """A query over a lookup table or a concurrent function runs without having been adapted."""


class NotExecutableError(EddylineError, ValueError):
    """Some relation can be reached by no order of access methods: nobody can bind its lookups."""

    def __init__(self, message: str, lost: Sequence[int] = ()) -> None:
        """Take note of the relations that cannot be reached, by number."""
        super().__init__(message)
        self.lost = tuple(lost)


class NotShareableError(EddylineError, ValueError):
    """A query asks for something that standing queries cannot do."""


class NotWatchableError(EddylineError, ValueError):
    """A query has a part that cannot be watched."""


class PySparkMissingError(EddylineError, ModuleNotFoundError):
    """There is no PySpark in this environment, not all of it, or only Spark Connect's client."""

    def __init__(self, lacking: str = "pyspark") -> None:
        """Say what can be done; ``lacking`` is the module that is not there."""
        if lacking == "pyspark":
            what = (
                "Eddyline needs PySpark, which is not installed here. pip install "
                "'eddyline[spark]' brings it, with Java; where a platform has a Spark of its own, "
                "use its Python"
            )
        elif lacking == "py4j":
            what = "PySpark is here without py4j, which it needs"
        else:
            what = (
                "This needs classic PySpark, and here is only the client of Spark Connect, with "
                "which Eddyline has adapt, explain, report, enable, disable, learned, progress and "
                "concurrent. Use an environment without pyspark-client: "
                "pip install 'eddyline[spark]'"
            )
        super().__init__(
            f"{what}. A Spark download has both in $SPARK_HOME/python: put that folder and the "
            "py4j archive in its lib on PYTHONPATH.",
            name=lacking,
        )


class PySparkTooOldError(EddylineError, ImportError):
    """The PySpark that is installed lacks what Eddyline needs."""


class ReadAheadError(EddylineError, RuntimeError):
    """An iterator function asked for its next input before it yielded the last output."""


class ResultNotTransferableError(EddylineError, TypeError):
    """A function returned what Spark's unpickler cannot make, so Spark fails too."""


class SampledTwiceError(EddylineError, RuntimeError):
    """Inputs were dealt out by different sets of heavy keys, so that rows would be missed."""

    def __init__(self) -> None:
        """Say what can be done."""
        super().__init__(
            "Spark ran the sample of this join twice, with different results. Turn on "
            "spark.sql.execution.reuseSubquery, or leave this join to Spark (joins='never')."
        )


class ScanBrokenError(EddylineError, RuntimeError):
    """A task of a scan broke off after some of its rows had been used."""


class ServerGoneError(EddylineError, ConnectionError):
    """The driver, which makes the lookups of all tasks, cannot be reached, or has gone."""


class SpillError(EddylineError, OSError):
    """Rows could not be written to disk, or not be read again."""


class UnboundLookupError(EddylineError, ValueError):
    """A query has no values for the bind columns of a lookup table, or uses it where none go."""


class UnknownPolicyError(EddylineError, ValueError):
    """A policy was asked for by a name that does not exist."""


class UnknownQueryError(EddylineError, KeyError):
    """There is no standing query of that name."""

    def __str__(self) -> str:
        """Return the message as it is: a KeyError would put it in quotes."""
        return str(self.args[0])


class UnsupportedExpressionError(EddylineError, TypeError):
    """An expression that cannot be evaluated exactly as Spark does; ``supported`` tells why."""


class UnsupportedKeyError(EddylineError, TypeError):
    """Values of a type cannot be joined on."""


class StateError(EddylineError, RuntimeError):
    """The state directory is in use by another process, damaged, or of another set of streams."""


class RequestRefusedError(StateError):
    """The running job has refused a request; the message is its own."""
