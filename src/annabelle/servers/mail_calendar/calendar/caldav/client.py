"""A WebDAV client for one CalDAV account: requests, multistatus responses and errors."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import urllib.parse
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast

from pydantic import SecretStr

from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    InvalidArguments,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    TooLarge,
    TooManyRequests,
    Unavailable,
)
from annabelle.core.network_access import add_authority, find_certificate_error, system_authorities
from annabelle.servers.kit import deferred_module
from annabelle.servers.mail_calendar.config import ServerAccess, certificate_refused

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    import httpx2
    from defusedxml import ElementTree
else:
    ElementTree = deferred_module("defusedxml.ElementTree")
    httpx2 = deferred_module("httpx2")


CONNECT = "Check the address, the user name and the password: annabelle connect mail"
_DAV = "{DAV:}"
_CAL = "{urn:ietf:params:xml:ns:caldav}"
_SPACES = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'


def format_propfind(*names: str) -> str:
    """PROPFIND for these properties, written like `d:displayname` or `c:calendar-home-set`."""
    return f"<d:propfind {_SPACES}><d:prop>{''.join(f'<{name}/>' for name in names)}</d:prop></d:propfind>"


def format_event_query(start: datetime, end: datetime) -> str:
    """REPORT of all events in a period."""
    edges = f'start="{start.astimezone(UTC):%Y%m%dT%H%M%SZ}" end="{end.astimezone(UTC):%Y%m%dT%H%M%SZ}"'
    return (
        f"<c:calendar-query {_SPACES}><d:prop><d:getetag/><c:calendar-data/></d:prop><c:filter>"
        f'<c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"><c:time-range {edges}/></c:comp-filter>'
        "</c:comp-filter></c:filter></c:calendar-query>"
    )


@dataclass(frozen=True, slots=True)
class DavResponsePart:
    url: str
    found: dict[str, Element]

    def get_text(self, name: str) -> str:
        element = self.found.get(_qualified_name(name))
        return "" if element is None else (element.text or "").strip()

    def get_link(self, name: str) -> str | None:
        element = self.found.get(_qualified_name(name))
        href = None if element is None else element.find(f"{_DAV}href")
        return None if href is None or not href.text else join_url(self.url, href.text.strip())

    def has(self, name: str, *inner: str) -> bool:
        """Whether a property contains one of these elements."""
        element = self.found.get(_qualified_name(name))
        return element is not None and any(element.find(f".//{_qualified_name(one)}") is not None for one in inner)

    def get_names(self, name: str) -> set[str]:
        """`name` attributes of the elements in a property."""
        element = self.found.get(_qualified_name(name))
        return set() if element is None else {child.get("name", "").upper() for child in element}


def read_parts(url: str, body: bytes) -> list[DavResponsePart]:
    """Parse a multistatus response. Properties the server could not give are left out."""
    try:
        root: Element = ElementTree.fromstring(body, forbid_dtd=True)
    except (ElementTree.ParseError, ValueError) as error:
        raise _unreadable_answer() from error
    return [part for response in root.iter(f"{_DAV}response") if (part := _read_part(url, response)) is not None]


def join_url(base: str, href: str) -> str:
    """Resolve a link. Does not check whether it may be followed."""
    try:
        return urllib.parse.urljoin(base, href)
    except ValueError as error:
        raise _unreadable_answer() from error


def _unreadable_answer() -> Unavailable:
    return Unavailable("The calendar server's answer can not be read.", hint=CONNECT)


def _read_part(url: str, response: Element) -> DavResponsePart | None:
    href = response.find(f"{_DAV}href")
    if href is None or not href.text:
        return None
    found: dict[str, Element] = {}
    for propstat in response.iter(f"{_DAV}propstat"):
        status, prop = propstat.find(f"{_DAV}status"), propstat.find(f"{_DAV}prop")
        if prop is not None and (status is None or " 200" in (status.text or "")):
            found.update({element.tag: element for element in prop})
    return DavResponsePart(join_url(url, href.text.strip()), found)


def _qualified_name(name: str) -> str:
    space, _, own = name.partition(":")
    return f"{_DAV if space == 'd' else _CAL}{own}"


class _ClosableStream(Protocol):
    async def aclose(self) -> None: ...


class TlsHandshakeTrace:
    """Closes the TCP connection if the TLS handshake fails. Used as the `trace` extension of a request."""

    def __init__(self) -> None:
        self._connected: _ClosableStream | None = None

    async def watch(self, event: str, told: Mapping[str, object]) -> None:
        if event == "connection.connect_tcp.complete":
            self._connected = cast("_ClosableStream", told["return_value"])
        elif event == "connection.start_tls.failed" and self._connected is not None:
            await self._connected.aclose()


_BODY_SECONDS = 60.0
_MAX_BYTES = 30_000_000
_REDIRECTS = 4


@dataclass(frozen=True, slots=True)
class DavAccount:
    url: str
    username: str
    password: SecretStr
    address: str
    """Mail address of the user, as named in invitations."""


@dataclass(frozen=True, slots=True)
class DavReply:
    url: str
    status: int
    etag: str
    body: bytes


class DavClientFactory:
    """Opens sessions. Builds the TLS context once, because that takes longer than a whole session."""

    def __init__(self, account: DavAccount, access: ServerAccess) -> None:
        self.account, self._access = account, access
        self._tls: ssl.SSLContext | None = None

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncGenerator[DavClient]:
        if self._tls is None:
            self._tls = await asyncio.to_thread(self._read_authorities)
        auth = httpx2.BasicAuth(self.account.username, self.account.password.get_secret_value())
        async with httpx2.AsyncClient(
            auth=auth, verify=self._tls, timeout=self._access.seconds, follow_redirects=False, trust_env=False
        ) as client:
            yield DavClient(self.account, client, self._access)

    def _read_authorities(self) -> ssl.SSLContext:
        own = self._access.authority
        return add_authority(httpx2.create_ssl_context(trust_env=False), own) if own else system_authorities()


class DavClient:
    """A session with the server. Its requests share connections, which are closed at its end."""

    def __init__(self, account: DavAccount, client: httpx2.AsyncClient, access: ServerAccess) -> None:
        self._account, self._client, self._access = account, client, access

    async def query(self, method: str, url: str, body: str, depth: int = 0) -> list[DavResponsePart]:
        headers = {"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"}
        reply = await self._send(method, url, body.encode(), headers)
        if reply.status != 207:
            raise status_error(reply.status)
        return read_parts(reply.url, reply.body)

    async def get(self, url: str) -> DavReply:
        # With compression, some servers change the ETag to one that they do not accept later.
        return self._require_success(await self._send("GET", url, None, {"Accept-Encoding": "identity"}))

    async def put(self, url: str, data: bytes, condition: dict[str, str]) -> None:
        headers = {"Content-Type": "text/calendar; charset=utf-8", **condition}
        self._require_success(await self._send("PUT", url, data, headers))

    async def delete(self, url: str, condition: dict[str, str]) -> None:
        self._require_success(await self._send("DELETE", url, None, condition))

    def _require_success(self, reply: DavReply) -> DavReply:
        if not 200 <= reply.status < 300:
            raise status_error(reply.status)
        return reply

    async def _send(self, method: str, url: str, data: bytes | None, headers: dict[str, str]) -> DavReply:
        """Send a request. Follows redirects on the same site only, because they get the password."""
        for _ in range(_REDIRECTS):
            if not same_site(self._account.url, url):
                raise Unavailable("The calendar server sends to another site, which is not followed.", hint=CONNECT)
            try:
                reply, onward = await self._send_once(method, url, data, headers)
            except httpx2.ConnectTimeout as error:
                raise self._access.no_answer_error(self._server_name(url)) from error
            except (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
                wrong = find_certificate_error(error)
                if wrong is not None:
                    raise certificate_refused(self._server_name(url), wrong) from error
                raise Unavailable("The calendar server can not be reached.", hint=CONNECT) from error
            except (httpx2.HTTPError, TimeoutError) as error:
                if method in ("PUT", "DELETE"):
                    raise OutcomeUnknown(
                        "The connection to the calendar server broke, and whether the change was made is not known.",
                        hint="Look at the event before you try again.",
                    ) from error
                if isinstance(error, httpx2.TimeoutException | TimeoutError):
                    raise self._access.no_answer_error(self._server_name(url)) from error
                raise Unavailable("The calendar server does not answer.", hint="Try again in a moment.") from error
            if onward is None:
                return reply
            url = join_url(url, onward)
        raise Unavailable("The calendar server sends from one place to the next without end.", hint=CONNECT)

    @staticmethod
    def _server_name(url: str) -> str:
        return f"The calendar server {urllib.parse.urlsplit(url).netloc.rpartition('@')[2]}"

    async def _send_once(
        self, method: str, url: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[DavReply, str | None]:
        watched = {"trace": TlsHandshakeTrace().watch}
        request = self._client.build_request(method, url, content=data, headers=headers, extensions=watched)
        async with asyncio.timeout(self._access.seconds) as limit:
            response = await self._client.send(request, stream=True)
            limit.reschedule(asyncio.get_running_loop().time() + _BODY_SECONDS)
            try:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        raise TooLarge("The calendar server's answer is too large.", hint="Ask for a shorter time.")
            finally:
                await response.aclose()
        onward = response.headers.get("location") if response.status_code in (301, 302, 307, 308) else None
        return DavReply(url, response.status_code, response.headers.get("etag", ""), bytes(body)), onward


def same_site(home: str, url: str) -> bool:
    """Whether a password may be sent to another URL: same host, or over TLS a sibling, as large providers use."""
    try:
        old, new = urllib.parse.urlsplit(home), urllib.parse.urlsplit(url)
        old_port, new_port = old.port, new.port
    except ValueError:
        return False
    if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme != "https"):
        return False
    if old.hostname == new.hostname:
        return old_port == new_port or new.scheme == "https"
    parents = [(host or "").split(".", 1)[-1] for host in (old.hostname, new.hostname)]
    return new.scheme == "https" and parents[0] == parents[1] and "." in parents[0] and not parents[0][-1].isdigit()


def status_error(status: int) -> AnnabelleError:
    if status == 401:
        return Unavailable("The calendar server does not accept the user name or the password.", hint=CONNECT)
    if status == 403:
        return NotAllowed("The calendar server does not allow this.")
    if status in (404, 405, 410):
        return NotFound("The calendar has nothing with this id.", hint="List first and use an id from there.")
    if status in (409, 412):
        return Conflict("The event was changed by somebody else at the same time.", hint="Look at it and try again.")
    if status in (400, 415, 422):
        return InvalidArguments("The calendar server does not accept this.", hint="Try it with less in it.")
    if status in (413, 507):
        return TooLarge("The calendar server refuses this because it is too large.")
    if status == 429:
        return TooManyRequests("The calendar server asks for fewer requests.", hint="Wait a moment.", retry_after=30.0)
    return Unavailable(f"The calendar server answers with the error {status}.", hint="Try again in a moment.")
