"""An HTTP service as the source of a table."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, partial
from typing import Final
from urllib.parse import urlsplit

import httpcore
import httpx
import jmespath
import pyarrow as pa

from eddyline.asking.http_line import Line, body, drained, header
from eddyline.asking.http_request import Cursor, HttpRequests, NextLink, PageNumber, RequestTarget
from eddyline.asking.lookup_source import Key, LookedUpTable, NoAnswerError, TryAgainError
from eddyline.asking.patience import Gate
from eddyline.asking.refusals import (
    TOO_MANY,
    UNAVAILABLE,
    QuotaRefusedError,
    allowance_in,
    seconds_asked_for,
)
from eddyline.asking.source_rows import RowReader
from eddyline.asking.text_template import Template
from eddyline.checked_values import switch, text, whole_number

__all__ = ["Cursor", "HttpLookup", "NextLink", "PageNumber"]

MAX_BYTES: Final = 16 << 20
"""Bytes of an answer at the most, where nothing else is said; all its pages have it each."""


@dataclass(frozen=True, slots=True)
class HttpLookup:
    """A source of rows: an HTTP service that answers in JSON.

    Needs ``pip install "eddyline[lookups]"``, as all sources do. In ``url``, ``params`` and
    ``body`` a bind column's name in braces stands for its value:
    ``HttpLookup("https://api.example/{origin}", params={"hour": "{hour}"})``. In the URL it is
    quoted. With ``keys_per_call`` above 1 it stands for all values of a call, separated by commas;
    in a ``body``, which is sent as JSON, a text that is nothing but ``"{origin}"`` becomes the
    value itself, or the list of the values.

    ``rows`` is a JMESPath to the rows in an answer, by default the whole answer, in which a single
    object is one row; ``columns`` gives JMESPaths, within a row, of columns that are not found by
    their own names. ``pages`` says how an answer continues: :class:`NextLink`, :class:`PageNumber`
    or :class:`Cursor` of this module.

    In ``url``, ``params`` and ``headers`` ``${NAME}`` stands for an environment variable, which
    must be set when the table is registered, and is read when the service is first asked. Redirects
    are followed to the same host, and to ``allow_hosts``. For a single key, 404 means that there
    are no rows; an answer above ``max_bytes`` is a failure.
    """

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "GET"
    body: object = None
    rows: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    keys_per_call: int = 1
    pages: NextLink | PageNumber | Cursor | None = None
    allow_hosts: Sequence[str] = ()
    max_bytes: int = MAX_BYTES
    verify: bool = True

    def __post_init__(self) -> None:
        """Check what can be checked without a table; TypeError, ValueError."""
        self._check_kinds()
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise ValueError(f"a URL begins with http:// or https://, not {self.url!r}")
        whole_number(self.keys_per_call, "keys_per_call", 1)
        for path in (self.rows, *self.columns.values()):
            if path:
                try:
                    jmespath.compile(path)
                except jmespath.exceptions.JMESPathError as error:
                    raise ValueError(f"{path!r} is no JMESPath: {error}") from None

    def _check_kinds(self) -> None:
        text(self.url, "url", "https://api.example/{id}")
        text(self.method, "method", "GET")
        text(self.rows, "rows", "data.rows")
        for name in ("params", "headers", "columns"):
            given = getattr(self, name)
            parts = (*given, *given.values()) if isinstance(given, Mapping) else (given,)
            strange = next((part for part in parts if not isinstance(part, str)), None)
            if strange is not None or not isinstance(given, Mapping):  # unsaid: it may be a secret
                kind = type(strange).__name__
                raise TypeError(f'{name} is a mapping of texts, as {{"a": "b"}}: it has a {kind}')
        pages: object = self.pages
        if not isinstance(pages, NextLink | PageNumber | Cursor | None):
            raise TypeError(f"pages is a NextLink, PageNumber or Cursor, or None, not {pages!r}")
        hosts: object = self.allow_hosts
        if isinstance(hosts, str) or not isinstance(hosts, Collection):
            raise TypeError(f'allow_hosts are names, as ["api.example"], not {hosts!r}')
        switch(self.verify, "verify")
        whole_number(self.max_bytes, "max_bytes", 1)

    @property
    def label(self) -> str:
        """The URL, with names where its values and secrets are."""
        return self.url

    def check(self, table: LookedUpTable) -> None:
        """Raise ValueError where a bind column is not asked for, or something unknown is.

        MissingSecretError where a secret is not set.
        """
        texts = (self.url, *self.params.values(), *_texts_in(self.body))
        named = {name for text in texts for name in Template(text).names}
        missing = [name for name in table.bind_names if name not in named]
        if missing:
            raise ValueError(f"{self.url} does not say where {{{missing[0]}}} goes")
        unknown = sorted(named - set(table.bind_names))
        if unknown:
            raise ValueError(
                f"{self.url} names {{{unknown[0]}}}, which is none of the bind columns "
                f"{', '.join(table.bind_names)}"
            )
        if any(Template(text).names for text in self.headers.values()):
            raise ValueError(f"{self.url}: values stand in the URL, params and body, in no header")
        if any(Template(text).variables for text in _texts_in(self.body)):
            raise ValueError(
                f"{self.url}: secrets stand in the URL, params and headers, in no body"
            )
        strange = sorted(set(self.columns) - set(table.columns))
        if strange:
            raise ValueError(f"{table.name} has no column {strange[0]}")
        HttpRequests(self, table)

    def connect(self, table: LookedUpTable, gate: Gate) -> HttpConnection:
        """Open a pool of connections."""
        return HttpConnection(self, table, gate)


def _texts_in(body: object) -> list[str]:
    if isinstance(body, str):
        return [body]
    if isinstance(body, Mapping):
        return [text for value in body.values() for text in _texts_in(value)]
    if isinstance(body, Sequence):
        return [text for value in body for text in _texts_in(value)]
    return []


MAX_REDIRECTS: Final = 5
MAX_PAGES: Final = 10_000
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
BECOME_GET: Final = frozenset({301, 302, 303})
"""Redirects after which a POST is none any more, as all clients have it."""

NOT_FOUND: Final = frozenset({404, 410})
MAY_PASS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which another try may succeed."""

FOR_ALL_KEYS: Final = frozenset({401, 405, 407, 415, 501})
"""Statuses that would be the same for any other key."""

_TRANSPORT: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
)


class HttpConnection:
    """Lines to a service, as many as requests are on their way."""

    def __init__(self, source: HttpLookup, table: LookedUpTable, gate: Gate) -> None:
        """Read the secrets; connections are made when they are needed.

        MissingSecretError where a secret is not set.
        """
        self._source = source
        self._gate = gate
        self._reader = RowReader(table)
        self._requests = HttpRequests(source, table)
        self._columns = {name: jmespath.compile(path) for name, path in source.columns.items()}
        self._rows = jmespath.compile(source.rows) if source.rows else None
        # A float cannot hold every decimal.
        exact = any(map(pa.types.is_decimal, table.types))
        self._loads = partial(json.loads, parse_float=Decimal) if exact else json.loads
        # It takes 17 ms to make, and many services are spoken to without.
        self._tls = cache(partial(httpx.create_ssl_context, verify=source.verify))
        self._free: list[Line] = []

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Ask for the rows of keys, page by page."""
        if self._source.pages is None:
            page = await self._page(self._requests.place(keys, {}), keys)
            return self._reader.batch(self._rows_of(page), keys)
        rows: list[object] = []
        async with aclosing(self._pages(keys)) as pages:
            async for rows_of_page in pages:
                rows += rows_of_page
        return self._reader.batch(rows, keys)

    async def close(self) -> None:
        """Close the connections."""
        while self._free:
            await self._free.pop().close()

    @contextmanager
    def _line(self) -> Iterator[Line]:
        """Lend a line for exclusive use."""
        line = self._free.pop() if self._free else Line(self._tls)
        try:
            yield line
        finally:
            self._free.append(line)

    async def _pages(self, keys: Sequence[Key]) -> AsyncGenerator[list[object], None]:
        """Give the rows of one page after the other."""
        pages = self._source.pages
        paging = {pages.parameter: str(pages.first)} if isinstance(pages, PageNumber) else {}
        place = self._requests.place(keys, paging)
        for number in range(MAX_PAGES):
            page = await self._page(place, keys)
            if page is None:
                return
            rows = self._rows_of(page)
            yield rows
            if isinstance(pages, PageNumber):
                if not rows:
                    return
                paging[pages.parameter] = str(pages.first + number + 1)
                place = self._requests.place(keys, paging)
                continue
            following = jmespath.search(pages.path, page) if pages is not None else None
            if not following:
                return
            if isinstance(pages, Cursor):
                place = self._requests.place(keys, {pages.parameter: str(following)})
            else:
                place = self._allowed(place.following(str(following)))
        raise NoAnswerError(f"more than {MAX_PAGES:,} pages")

    async def _page(self, place: RequestTarget, keys: Sequence[Key]) -> object:
        """Return what a page is as JSON; None where there is none."""
        method, sent = self._requests.method, self._requests.body(keys)
        for _ in range(MAX_REDIRECTS + 1):
            headers = self._requests.headers(place.origin, body=sent is not None)
            try:
                async with self._gate.request():
                    with self._line() as line:
                        answer = await line.send(method, place, headers, sent)
                        self._learn_allowance(answer)
                        try:
                            text = await self._text(answer, keys)
                        finally:
                            await answer.aclose()
            except _TRANSPORT as error:
                raise self._broken(error) from None
            if text is not None:
                return self._parsed(text)
            if answer.status not in REDIRECTS:
                return None
            place = self._allowed(place.following(header(answer, b"location") or ""))
            if answer.status in BECOME_GET and method != b"HEAD":
                method, sent = b"GET", None
        raise NoAnswerError(f"more than {MAX_REDIRECTS} redirects")

    def _learn_allowance(self, answer: httpcore.Response) -> None:
        """Take note of what a service says of the calls that are left."""
        if any(b"ratelimit" in name.lower() for name, _ in answer.headers):
            allowance = allowance_in(_headers(answer))
            if allowance is not None:
                self._gate.told(allowance.left, allowance.seconds)

    async def _text(self, answer: httpcore.Response, keys: Sequence[Key]) -> bytes | None:
        """Return an answer's body; None for a redirect, and where no row was found.

        That some of many keys are not found says nothing of the others. TryAgainError,
        NoAnswerError for a status other than success.
        """
        status = answer.status
        if 200 <= status < 300:  # noqa: PLR2004 - success
            return await body(answer, self._source.max_bytes)
        await drained(answer)
        if status in REDIRECTS or (status in NOT_FOUND and len(keys) == 1):
            return None
        after = seconds_asked_for(_headers(answer))
        if status == TOO_MANY or (status == UNAVAILABLE and after is not None):
            raise QuotaRefusedError(f"HTTP {status}", after)
        if status in MAY_PASS:
            of_keys = status == 500  # noqa: PLR2004 - what the service fell over may be a key
            raise TryAgainError(f"HTTP {status}", after, of_keys=of_keys)
        raise NoAnswerError(f"HTTP {status}", of_keys=status not in FOR_ALL_KEYS)

    def _parsed(self, text: bytes) -> object:
        try:
            return self._loads(text) if text.strip() else None
        except (ValueError, RecursionError) as error:
            raise NoAnswerError(f"the answer is no JSON: {error}") from None

    def _rows_of(self, page: object) -> list[object]:
        rows = page if self._rows is None else self._rows.search(page)
        if rows is None:
            return []
        if isinstance(rows, dict):
            rows = [rows]
        if not isinstance(rows, list):
            raise NoAnswerError(f"the rows are {type(rows).__name__}, not a list of objects")
        return list(map(self._row, rows)) if self._columns else rows

    def _row(self, row: object) -> object:
        if not isinstance(row, dict):
            return row
        values = {name: path.search(row) for name, path in self._columns.items()}
        return row | {name: value for name, value in values.items() if value is not None}

    def _allowed(self, place: RequestTarget) -> RequestTarget:
        """Refuse to be led to another host, which must not learn what is asked for, and by whom."""
        origin = place.origin
        if origin == self._requests.origin or origin.host in self._source.allow_hosts:
            return place
        where = self._requests.hidden(f"{origin.host}:{origin.port}")
        raise NoAnswerError(f"it leads to {where}, which allow_hosts does not name", of_keys=False)

    def _broken(self, error: Exception) -> NoAnswerError:
        """Return what a connection's end means: another try may go better, if it is let in."""
        what = self._requests.hidden(f"{type(error).__name__}: {error}")
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return NoAnswerError(what, of_keys=False)
            cause = cause.__cause__ or cause.__context__
        return TryAgainError(what)


def _headers(answer: httpcore.Response) -> dict[str, str]:
    return {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in answer.headers}
