"""An HTTP service as the source of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import jmespath

from eddyline.asking.checked_numbers import switch, text, whole_number
from eddyline.asking.http_connection import HttpConnection
from eddyline.asking.http_pages import Cursor, NextLink, PageNumber
from eddyline.asking.http_request import HttpRequests
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.patience import Gate
from eddyline.asking.text_template import Template

__all__ = ["Cursor", "HttpLookup", "NextLink", "PageNumber"]

MAX_BYTES: Final = 16 << 20
"""Bytes of an answer at the most, where nothing else is said; all its pages have it each."""


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
