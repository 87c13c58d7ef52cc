"""How a source says that there is no answer."""

from __future__ import annotations


def described_error(error: BaseException) -> str:
    r"""Return an error's kind and text, also of one that cannot say what it is.

    What no UTF-8 can say, half a surrogate pair, is escaped: the text goes through a socket.

    >>> described_error(ValueError("half \ud800"))
    'ValueError: half \\ud800'
    """
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}"
    except Exception:  # noqa: BLE001 - whatever it raises instead of its text
        return kind
    return text.encode(errors="backslashreplace").decode()


class NoAnswerError(Exception):
    """A source has given no rows for a call, and will not. It never leaves this package.

    ``of_keys`` says whether some of the call's keys may be to blame, so that the others have
    rows if they are asked for without.
    """

    def __init__(self, message: str, *, of_keys: bool = True) -> None:
        """Say what happened; who has asked adds source and keys."""
        super().__init__(message)
        self.of_keys = of_keys


class TryAgainError(NoAnswerError):
    """A source has not answered this time; ``after`` so many seconds it may, if it has said so.

    Mostly no key is to blame: it is the source that does not answer.
    """

    def __init__(self, message: str, after: float | None = None, *, of_keys: bool = False) -> None:
        """Say what happened."""
        super().__init__(message, of_keys=of_keys)
        self.after = after
