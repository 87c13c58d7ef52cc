"""What an HTTP service is asked for keys: made once, but for what differs from key to key.

To have httpx make, send and read each request takes 0.75 ms of a core, of which 0.3 are left where
httpcore, its lower half, is given what is sent.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, quote_plus, urljoin

import httpx

from eddyline.asking.lookup_source import Key, LookedUpTable, NoAnswerError
from eddyline.asking.text_template import Prepared, Template, hidden, read_secrets


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


if TYPE_CHECKING:
    from eddyline.asking.http_lookup import HttpLookup

Headers = list[tuple[bytes, bytes]]

_IN_URLS: Final = "%/:?&=+,;@!$'()*~[]-._"
"""What stays in a URL as its author has written it."""

_SERVER: Final = re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE)
_DEFAULTS: Final = {"Accept": "application/json, */*;q=0.5", "User-Agent": "eddyline"}
_SECRET: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization"})


class Origin(NamedTuple):
    """A server, and how it is spoken to."""

    scheme: str
    host: str
    port: int


class RequestTarget(NamedTuple):
    """An origin, and a path with a query there, as they are sent."""

    origin: Origin
    target: str

    def following(self, link: str) -> RequestTarget:
        """Return where a link found here leads. NoAnswerError where it is not a link."""
        here = f"{self.origin.scheme}://{_host(self.origin).decode()}{self.target}"
        try:
            return place(urljoin(here, link))
        except ValueError as error:
            raise NoAnswerError(f"it leads to no URL: {error}") from None


def place(url: str) -> RequestTarget:
    """Return the place that a URL names; NoAnswerError where it is not an HTTP URL."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise NoAnswerError(f"it leads to no URL: {error}") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise NoAnswerError("it leads to something that is not HTTP", of_keys=False)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    origin = Origin(parsed.scheme, parsed.raw_host.decode(), port)
    return RequestTarget(origin, parsed.raw_path.decode())


class HttpRequests:
    """The requests of a source for a table."""

    def __init__(self, source: HttpLookup, table: LookedUpTable) -> None:
        """Read the secrets; MissingSecretError where one is not set."""
        self._names = table.bind_names
        self._several = source.keys_per_call > 1
        self._body = source.body
        url = Template(source.url)
        params = {name: Template(text) for name, text in source.params.items()}
        headers = {name: Template(text) for name, text in source.headers.items()}
        self.secrets = read_secrets((url, *params.values(), *headers.values()))
        self._base, self._path = _split(url, self.secrets)
        self._params = {
            quote_plus(name): text.prepared(self.secrets, quote_plus)
            for name, text in params.items()
        }
        self.method = source.method.encode()
        filled = {name: text.filled({}, self.secrets) for name, text in headers.items()}
        self._headers = [(b"Host", _host(self.origin)), *self._made(filled)]
        public = {name: text for name, text in filled.items() if not headers[name].variables}
        self._for_others = [pair for pair in self._made(public) if pair[0].lower() not in _SECRET]
        self._bodiless = _without_content(self._headers)

    @property
    def origin(self) -> Origin:
        """Where the source is."""
        return self._base.origin

    def hidden(self, text: str) -> str:
        """Return a text with the names of secrets in place of the secrets."""
        return hidden(text, self.secrets)

    def headers(self, origin: Origin, *, body: bool) -> Headers:
        """Return the headers of a request; secrets go to the source itself only."""
        if origin == self.origin:
            return self._headers if body else self._bodiless
        headers = [(b"Host", _host(origin)), *self._for_others]
        return headers if body else _without_content(headers)

    def place(self, keys: Sequence[Key], paging: Mapping[str, str]) -> RequestTarget:
        """Return what is asked for keys, and for a page of it. NoAnswerError where it cannot be."""
        texts = {
            name: [as_text(key[number]) for key in keys] for number, name in enumerate(self._names)
        }
        if len(keys) > 1 and any("," in text for column in texts.values() for text in column):
            raise NoAnswerError("a key has a comma, which stands between keys")
        target = self._path.filled({name: ",".join(map(_quoted, t)) for name, t in texts.items()})
        paged = {quote_plus(name): quote_plus(value) for name, value in paging.items()}
        if self._params or paged:
            values = {name: ",".join(map(quote_plus, column)) for name, column in texts.items()}
            own = {n: t.filled(values) for n, t in self._params.items() if n not in paged}
            query = "&".join(f"{name}={value}" for name, value in (own | paged).items())
            target += ("&" if "?" in target else "?") + query
        return RequestTarget(self.origin, target)

    def body(self, keys: Sequence[Key]) -> bytes | None:
        """Return the body of a request, JSON; None where there is none."""
        if self._body is None:
            return None
        whole: dict[str, object] = {}
        values = {}
        for number, name in enumerate(self._names):
            column = [_plain(key[number]) for key in keys]
            whole[f"{{{name}}}"] = column if self._several else column[0]
            values[name] = ",".join(as_text(key[number]) for key in keys)
        filled = _filled(self._body, whole, values)
        text = json.dumps(filled, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()

    def _made(self, given: Mapping[str, str]) -> Headers:
        made = httpx.Headers({**_DEFAULTS, "Accept-Encoding": "gzip, deflate"})
        if self._body is not None:
            made["Content-Type"] = "application/json"
        if self._base.user:
            made["Authorization"] = self._base.user
        made.update(given)
        return [pair for pair in made.raw if pair[0].lower() != b"host"]


class _Base(NamedTuple):
    """Where a URL's path begins, and who asks there."""

    origin: Origin
    user: str


def _split(url: Template, secrets: Mapping[str, str]) -> tuple[_Base, Prepared]:
    """Return the server of a URL, and its path and query with places for values.

    ValueError where a value has a part in naming the server: keys come from data.
    """
    whole = url.prepared(secrets, str)
    server = _SERVER.match(whole.literals[0])
    if server is None or (whole.names and server.end() == len(whole.literals[0])):
        raise ValueError(f"in {url.text} a value stands where the server is named")
    try:
        parsed = httpx.URL(server[0])
        origin = place(server[0]).origin
    except (httpx.InvalidURL, NoAnswerError):
        raise ValueError(f"{url.text} is no URL of HTTP") from None
    user = ""
    if parsed.userinfo:
        pair = f"{parsed.username}:{parsed.password}".encode()
        user = f"Basic {base64.b64encode(pair).decode()}"
    first = whole.literals[0][server.end() :]
    path = first if first.startswith("/") else f"/{first}"
    literals = (path, *whole.literals[1:])
    return _Base(origin, user), Prepared(
        tuple(quote(text, safe=_IN_URLS) for text in literals), whole.names
    )


def _host(origin: Origin) -> bytes:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    usual = 443 if origin.scheme == "https" else 80
    return (host if origin.port == usual else f"{host}:{origin.port}").encode()


def _without_content(headers: Headers) -> Headers:
    return [pair for pair in headers if pair[0].lower() != b"content-type"]


def as_text(value: object) -> str:
    """Return a value as it stands in a URL.

    True and false as JSON has them, times in ISO 8601, bytes in Base64.

    >>> as_text(True), as_text(b"hi"), as_text(1.5)
    ('true', 'aGk=', '1.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if isoformat is not None else str(value)


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) else as_text(value)


def _quoted(text: str) -> str:
    """Return a value as a part of a path, which leads to no other part."""
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _filled(body: Any, whole: Mapping[str, object], values: Mapping[str, str]) -> object:  # noqa: ANN401 - JSON
    if isinstance(body, str):
        return whole[body] if body in whole else Template(body).filled(values, {})
    if isinstance(body, Mapping):
        return {name: _filled(value, whole, values) for name, value in body.items()}
    if isinstance(body, Sequence):
        return [_filled(value, whole, values) for value in body]
    return body
