"""How a service says that a quota is spent, and when it takes more calls."""

from __future__ import annotations

import datetime as dt
import email.utils
import math
import re
import time
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Final, NamedTuple, TypeAlias

from eddyline.asking.lookup_source import NoAnswerError, described_error

TOO_MANY: Final = 429
UNAVAILABLE: Final = 503

IsQuota: TypeAlias = "Callable[[Exception], bool | float | dt.timedelta]"
"""Tells whether an exception is a refusal for quota; a number of seconds tells for how long."""

_EPOCH: Final = 1e9
"""A number of seconds from which on it is a date."""

_PARTS: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

_THROTTLED: Final = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "ProvisionedThroughputExceededException",
        "RESOURCE_EXHAUSTED",
    }
)
"""Codes of errors, as Amazon's and Google's clients have them."""


class QuotaRefusedError(NoAnswerError):
    """A source takes no more calls for now; it may ``after`` so many seconds, if it has said so."""

    def __init__(self, message: str, after: float | None = None) -> None:
        """Say what happened; no key is to blame."""
        super().__init__(message, of_keys=False)
        self.after = after


class Allowance(NamedTuple):
    """Calls that are left, and the seconds until there are more."""

    left: int
    seconds: float


def refusal_in(error: Exception, is_quota: IsQuota | None = None) -> QuotaRefusedError | None:
    """Return the refusal for quota that an exception is, as clients of services raise it.

    That is one with status 429, or 503 and a time to come back, where httpx, requests, aiohttp,
    urllib and the clients of model providers have it; one with a code of throttling, as botocore
    has it; and one that ``is_quota`` recognizes.

    >>> class RateLimitError(Exception):
    ...     status_code = 429
    >>> refusal_in(RateLimitError("slow down"))
    QuotaRefusedError('RateLimitError: slow down')
    >>> refusal_in(ValueError("busy"), lambda error: 2.5 if "busy" in str(error) else False).after
    2.5
    >>> refusal_in(ValueError("bad")) is None
    True
    """
    if is_quota is not None:
        told: object = is_quota(error)
        if isinstance(told, dt.timedelta):
            told = told.total_seconds()
        if told is True:
            return QuotaRefusedError(described_error(error))
        if told is not False and told is not None:
            if not isinstance(told, Real) or math.isnan(told):
                raise ValueError(f"returned {told!r}, and not True, False or seconds to wait")
            return QuotaRefusedError(described_error(error), max(float(told), 0.0))
    response = getattr(error, "response", None)
    headers = _headers_of(error) or _headers_of(response)
    after = seconds_asked_for(headers)
    status = next(
        (
            int(found)
            for holder in (error, response)
            for name in ("status_code", "status", "code")
            if isinstance(found := getattr(holder, name, None), int)
        ),
        None,
    )
    if isinstance(response, Mapping):  # botocore's
        details = response.get("ResponseMetadata") or {}
        status = details.get("HTTPStatusCode", status)
        if (response.get("Error") or {}).get("Code") in _THROTTLED:
            status = TOO_MANY
    if status == TOO_MANY or (status == UNAVAILABLE and after is not None):
        return QuotaRefusedError(described_error(error), after)
    return None


def seconds_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which a service asks to wait, by its headers, lower-case names.

    >>> seconds_asked_for({"retry-after-ms": "1500", "retry-after": "2"})
    1.5
    >>> seconds_asked_for({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "1s"})
    360.0
    >>> seconds_asked_for({}) is None
    True
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    asked = headers.get("retry-after")
    if asked is not None and (seconds := _seconds_until(asked)) is not None:
        return seconds
    resets = [
        seconds
        for name, text in headers.items()
        if "ratelimit" in name
        and "reset" in name
        # Of several quotas the spent one counts; where none is named as such, all do.
        and _spent(headers, name)
        and (seconds := _seconds_until(text)) is not None
    ]
    return max(resets, default=None)


def allowance_in(headers: Mapping[str, str]) -> Allowance | None:
    """Return what an answer says of the calls that are left; None where it says nothing.

    >>> allowance_in({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12s"})
    Allowance(left=0, seconds=12.0)
    """
    found = []
    for name, text in headers.items():
        if "ratelimit" not in name or "remaining" not in name:
            continue
        left = _number(text)
        seconds = _seconds_until(headers.get(name.replace("remaining", "reset"), ""))
        if left is not None and seconds is not None and "token" not in name:
            found.append(Allowance(int(left), seconds))
    return min(found, default=None)


def _spent(headers: Mapping[str, str], reset: str) -> bool:
    remaining = _number(headers.get(reset.replace("reset", "remaining")))
    return remaining is None or remaining < 1


def _headers_of(holder: object) -> Mapping[str, str]:
    headers: Any = getattr(holder, "headers", None)
    if headers is None or not hasattr(headers, "items"):
        return {}
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(text: str) -> float | None:
    """Return the seconds that a text says: a number, a time such as ``6m0s``, or a date."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        return number if number < _EPOCH else max(number - time.time(), 0.0)
    parts = _PARTS.findall(text)
    if parts and "".join(f"{amount}{unit}" for amount, unit in parts) == text:
        return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    for read in (email.utils.parsedate_to_datetime, dt.datetime.fromisoformat):
        try:
            moment = read(text)
        except (ValueError, TypeError):
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        return max(moment.timestamp() - time.time(), 0.0)
    return None
