"""An HTTP service as the source of a table."""

from __future__ import annotations

import email.utils
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

import httpx
import jmespath
import pyarrow as pa

from eddyline.sources.failures import NoAnswerError, TryAgainError
from eddyline.sources.gate import Gate
from eddyline.sources.lookup_source import Key, LookedUpTable
from eddyline.sources.rows import as_batch
from eddyline.sources.template import Template, hidden, read_secrets

MAX_BYTES: Final = 16 << 20
"""Bytes of an answer at the most, where nothing else is said; all its pages have it each."""

MAX_REDIRECTS: Final = 5
MAX_PAGES: Final = 10_000
NOT_FOUND: Final = frozenset({404, 410})
MAY_PASS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which another try may succeed."""

FOR_ALL_KEYS: Final = frozenset({401, 405, 407, 415, 501})
"""Statuses that would be the same for any other key."""


@dataclass(frozen=True, slots=True)
class NextLink:
    """Pages that say where the next one is: at this JMESPath, a link; the last has none."""

    path: str


@dataclass(frozen=True, slots=True)
class PageNumber:
    """Pages that are asked for by number, until one has no rows."""

    parameter: str
    first: int = 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """Pages that say by which value the next one is asked for; the last says nothing."""

    path: str
    parameter: str


@dataclass(frozen=True, slots=True)
class HttpLookup:
    """Asks an HTTP service that answers in JSON.

    In ``url``, ``params`` and ``body`` a bind column's name in braces stands for its value:
    ``HttpLookup("https://api.example/{origin}", params={"hour": "{hour}"})``. In the URL it is
    quoted. With ``keys_per_call`` above 1 it stands for all values of a call, with commas
    between them; in a ``body``, which is sent as JSON, a text that is nothing but ``"{origin}"``
    becomes the value itself, or the list of the values.

    ``rows`` is a JMESPath to the rows in an answer, the whole answer by default, where one
    object is one row; ``columns`` gives JMESPaths, within a row, of columns that are not found
    by their own names. ``pages`` says how an answer goes on: :class:`NextLink`,
    :class:`PageNumber` or :class:`Cursor`.

    In ``url``, ``params`` and ``headers`` ``${NAME}`` stands for an environment variable, which
    must be set when the table is registered, and is read when the service is first asked.
    Redirects are followed to the same host, and to ``allow_hosts``. 404 means that there are no
    rows, where it is said of a single key; an answer above ``max_bytes`` is a failure.
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
        """Check what can be checked without a table; ValueError."""
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise ValueError(f"a URL begins with http:// or https://, not {self.url!r}")
        if self.keys_per_call < 1:
            raise ValueError(f"a call asks for 1 key at least, not {self.keys_per_call}")
        for path in (self.rows, *self.columns.values()):
            if path:
                try:
                    jmespath.compile(path)
                except jmespath.exceptions.JMESPathError as error:
                    raise ValueError(f"{path!r} is no JMESPath: {error}") from None

    @property
    def label(self) -> str:
        """The URL, with names where its values and secrets are."""
        return self.url

    def check(self, table: LookedUpTable) -> None:
        """Raise ValueError where a bind column is not asked for, or something unknown is.

        MissingSecretError where a secret is not set.
        """
        read_secrets(map(Template, (self.url, *self.params.values(), *self.headers.values())))
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
        strange = sorted(set(self.columns) - set(table.columns))
        if strange:
            raise ValueError(f"{table.name} has no column {strange[0]}")

    def connect(self, table: LookedUpTable, gate: Gate) -> HttpConnection:
        """Open a pool of connections."""
        return HttpConnection(self, table, gate)


class HttpConnection:
    """A pool of connections to a service."""

    def __init__(self, source: HttpLookup, table: LookedUpTable, gate: Gate) -> None:
        """Read the secrets; connections are made when they are needed.

        MissingSecretError where a secret is not set.
        """
        self._source = source
        self._table = table
        self._gate = gate
        self._url = Template(source.url)
        self._params = {name: Template(text) for name, text in source.params.items()}
        headers = {name: Template(text) for name, text in source.headers.items()}
        self._secrets = read_secrets((self._url, *self._params.values(), *headers.values()))
        self._headers = {name: text.filled({}, self._secrets) for name, text in headers.items()}
        # A client for each request that may be on its way, as each looks through all of its
        # connections whenever a request begins or ends: with one client of 32 connections a
        # request took 6 ms of a core, with 32 clients of one 1 ms.
        self._free: list[httpx.AsyncClient] = []
        self._tls = httpx.create_ssl_context() if source.verify else False
        self._columns = {name: jmespath.compile(path) for name, path in source.columns.items()}
        own = urlsplit(self._url.filled(dict.fromkeys(self._url.names, ""), self._secrets))
        self._origin = (own.scheme, own.netloc)

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Ask for the rows of keys, page by page."""
        rows: list[object] = []
        async for page in self._pages(keys):
            rows += [self._row(row) for row in self._rows_of(page)]
        return as_batch(self._table, rows, keys)

    async def close(self) -> None:
        """Close the connections."""
        while self._free:
            await self._free.pop().aclose()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Give a client that nobody else uses meanwhile."""
        if not self._free:
            self._free.append(
                httpx.AsyncClient(
                    headers=self._headers,
                    timeout=None,  # the gate watches the time of a whole request  # noqa: S113
                    verify=self._tls,
                    limits=httpx.Limits(max_connections=1),
                )
            )
        client = self._free.pop()
        try:
            yield client
        finally:
            self._free.append(client)

    async def _pages(self, keys: Sequence[Key]) -> AsyncIterator[object]:
        texts = self._texts(keys)
        values = {name: ",".join(each) for name, each in texts.items()}
        quoted = {name: ",".join(map(_quoted, each)) for name, each in texts.items()}
        url = self._url.filled(quoted, self._secrets)
        params = {name: t.filled(values, self._secrets) for name, t in self._params.items()}
        body = self._body(keys, values)
        pages = self._source.pages
        number = pages.first if isinstance(pages, PageNumber) else 0
        for _ in range(MAX_PAGES):
            if isinstance(pages, PageNumber):
                params[pages.parameter] = str(number)
            page = await self._page(url, params, body, keys)
            if page is None:
                return
            yield page
            if pages is None:
                return
            if isinstance(pages, PageNumber):
                if not self._rows_of(page):
                    return
                number += 1
                continue
            following = jmespath.search(pages.path, page)
            if not following:
                return
            if isinstance(pages, Cursor):
                params[pages.parameter] = str(following)
            else:
                url, params = urljoin(url, str(following)), {}
                self._require_allowed(url)
        raise NoAnswerError(f"more than {MAX_PAGES:,} pages")

    async def _page(
        self, url: str, params: Mapping[str, str], body: object, keys: Sequence[Key]
    ) -> object:
        """Return what a page is as JSON; None where there is none."""
        method = self._source.method
        for _ in range(MAX_REDIRECTS + 1):
            try:
                async with (
                    self._gate.request(),
                    self._client() as client,
                    client.stream(method, url, params=params or None, json=body) as answer,
                ):
                    if answer.is_redirect:
                        url = urljoin(url, answer.headers.get("location", ""))
                        params = {}
                        if answer.status_code == 303:  # noqa: PLR2004 - See Other, by its number
                            method, body = "GET", None
                        self._require_allowed(url)
                        continue
                    if answer.status_code in NOT_FOUND and len(keys) == 1:
                        return None
                    _require_success(answer)
                    return _parsed(await self._read(answer))
            except httpx.TransportError as error:
                raise self._broken(error) from None
        raise NoAnswerError(f"more than {MAX_REDIRECTS} redirects")

    async def _read(self, answer: httpx.Response) -> bytes:
        limit = self._source.max_bytes
        parts, size = [], 0
        async for part in answer.aiter_bytes():
            size += len(part)
            if size > limit:
                raise NoAnswerError(f"the answer has more than max_bytes={limit:,} bytes")
            parts.append(part)
        return b"".join(parts)

    def _rows_of(self, page: object) -> list[object]:
        found = jmespath.search(self._source.rows, page) if self._source.rows else page
        if found is None:
            return []
        if isinstance(found, list):
            return found
        if isinstance(found, dict):
            return [found]
        raise NoAnswerError(f"the rows are {type(found).__name__}, not a list of objects")

    def _row(self, row: object) -> object:
        if not self._columns or not isinstance(row, dict):
            return row
        found = {name: path.search(row) for name, path in self._columns.items()}
        return row | {name: value for name, value in found.items() if value is not None}

    def _texts(self, keys: Sequence[Key]) -> dict[str, list[str]]:
        return {
            name: [_text(key[number]) for key in keys]
            for number, name in enumerate(self._table.bind_names)
        }

    def _body(self, keys: Sequence[Key], values: Mapping[str, str]) -> object:
        several = self._source.keys_per_call > 1
        whole: dict[str, object] = {}
        for number, name in enumerate(self._table.bind_names):
            column = [_plain(key[number]) for key in keys]
            whole[f"{{{name}}}"] = column if several else column[0]
        return _filled(self._source.body, whole, values)

    def _require_allowed(self, url: str) -> None:
        """Refuse to be led to another host: what is asked for, and by whom, is not its business."""
        to = urlsplit(url)
        if (to.scheme, to.netloc) == self._origin or to.hostname in self._source.allow_hosts:
            return
        where = hidden(to.netloc, self._secrets)
        raise NoAnswerError(f"it leads to {where}, which allow_hosts does not name", of_keys=False)

    def _broken(self, error: httpx.TransportError) -> NoAnswerError:
        """Return what a connection's end means: another may go better, if it is let in."""
        what = hidden(f"{type(error).__name__}: {error}", self._secrets)
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                return NoAnswerError(what, of_keys=False)
            cause = cause.__cause__ or cause.__context__
        return TryAgainError(what)


def _require_success(answer: httpx.Response) -> None:
    """Raise TryAgainError, NoAnswerError for a status that is none of success.

    That some of many keys are not found says nothing of the others.
    """
    status = answer.status_code
    if status in MAY_PASS:
        of_keys = status == 500  # noqa: PLR2004 - what the service fell over may be a key
        raise TryAgainError(f"HTTP {status}", _after(answer.headers), of_keys=of_keys)
    if not answer.is_success:
        raise NoAnswerError(f"HTTP {status}", of_keys=status not in FOR_ALL_KEYS)


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text) if text.strip() else None
    except ValueError as error:
        raise NoAnswerError(f"the answer is no JSON: {error}") from None


def _texts_in(body: object) -> list[str]:
    if isinstance(body, str):
        return [body]
    if isinstance(body, Mapping):
        return [text for value in body.values() for text in _texts_in(value)]
    if isinstance(body, Sequence):
        return [text for value in body for text in _texts_in(value)]
    return []


def _filled(body: Any, whole: Mapping[str, object], values: Mapping[str, str]) -> object:  # noqa: ANN401 - JSON
    if isinstance(body, str):
        return whole[body] if body in whole else Template(body).filled(values, {})
    if isinstance(body, Mapping):
        return {name: _filled(value, whole, values) for name, value in body.items()}
    if isinstance(body, Sequence):
        return [_filled(value, whole, values) for value in body]
    return body


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) else _text(value)


def _quoted(text: str) -> str:
    """Return a value as a part of a path, which leads to no other part."""
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _text(value: object) -> str:
    """Return a value as it stands in a URL: true and false as JSON has them, times in ISO 8601."""
    if isinstance(value, bool):
        return "true" if value else "false"
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if isoformat is not None else str(value)


def _after(headers: httpx.Headers) -> float | None:
    """Return the seconds that a server asks to wait: Retry-After, a number or a date."""
    asked = headers.get("retry-after")
    if asked is None:
        return None
    try:
        return max(float(asked), 0.0)
    except ValueError:
        try:
            return max(email.utils.parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
        except ValueError:
            return None
