"""Requests to a CalDAV server in the user's name. Its address is the user's own, so it may be on their network."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import urllib.parse
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from annabelle.core.certificates import certificate_error, trusting
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
from annabelle.servers.gmail.calendar.caldav.handshake import Handshake
from annabelle.servers.gmail.calendar.caldav.multistatus import CONNECT, Part, joined, read_parts
from annabelle.servers.gmail.reach import Reach, distrusted
from annabelle.servers.kit import deferred_module

if TYPE_CHECKING:
    import httpx2
else:
    httpx2 = deferred_module("httpx2")

_BODY_SECONDS = 60.0
_MAX_BYTES = 30_000_000
_REDIRECTS = 4


@dataclass(frozen=True, slots=True)
class DavAccount:
    """Where a user's calendars are and how to get in."""

    url: str
    username: str
    password: SecretStr
    address: str
    """The user's own mail address, which invitations name."""


@dataclass(frozen=True, slots=True)
class Reply:
    url: str
    status: int
    etag: str
    body: bytes


class DavDoor:
    """Opens conversations. What TLS needs is read once, because that takes longer than a whole conversation."""

    def __init__(self, account: DavAccount, reach: Reach) -> None:
        self.account, self._reach = account, reach
        self._tls: ssl.SSLContext | None = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[Dav]:
        if self._tls is None:
            authority = self._reach.authority
            self._tls = await asyncio.to_thread(lambda: trusting(httpx2.create_ssl_context(trust_env=False), authority))
        auth = httpx2.BasicAuth(self.account.username, self.account.password.get_secret_value())
        async with httpx2.AsyncClient(
            auth=auth, verify=self._tls, timeout=self._reach.seconds, follow_redirects=False, trust_env=False
        ) as client:
            yield Dav(self.account, client, self._reach)


class Dav:
    """One conversation with the server: connections are shared in it and closed after it."""

    def __init__(self, account: DavAccount, client: httpx2.AsyncClient, reach: Reach) -> None:
        self._account, self._client, self._reach = account, client, reach

    async def ask(self, method: str, url: str, body: str, depth: int = 0) -> list[Part]:
        """PROPFIND or REPORT: what the server tells of the things below an address."""
        headers = {"Depth": str(depth), "Content-Type": "application/xml; charset=utf-8"}
        reply = await self._send(method, url, body.encode(), headers)
        if reply.status != 207:
            raise refusal(reply.status)
        return read_parts(reply.url, reply.body)

    async def get(self, url: str) -> Reply:
        # Compressed on the way, a version may get a name that the server itself does not know.
        return self._accepted(await self._send("GET", url, None, {"Accept-Encoding": "identity"}))

    async def put(self, url: str, data: bytes, condition: dict[str, str]) -> None:
        headers = {"Content-Type": "text/calendar; charset=utf-8", **condition}
        self._accepted(await self._send("PUT", url, data, headers))

    async def delete(self, url: str, condition: dict[str, str]) -> None:
        self._accepted(await self._send("DELETE", url, None, condition))

    def _accepted(self, reply: Reply) -> Reply:
        if not 200 <= reply.status < 300:
            raise refusal(reply.status)
        return reply

    async def _send(self, method: str, url: str, data: bytes | None, headers: dict[str, str]) -> Reply:
        """Follows the server to other places of the same site, and takes the password nowhere else."""
        for _ in range(_REDIRECTS):
            if not same_site(self._account.url, url):
                raise Unavailable("The calendar server sends to another site, which is not followed.", hint=CONNECT)
            try:
                reply, onward = await self._once(method, url, data, headers)
            except httpx2.ConnectTimeout as error:
                raise self._reach.silent(self._named(url)) from error
            except (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
                wrong = certificate_error(error)
                if wrong is not None:
                    raise distrusted(self._named(url), wrong) from error
                raise Unavailable("The calendar server can not be reached.", hint=CONNECT) from error
            except (httpx2.HTTPError, TimeoutError) as error:
                if method in ("PUT", "DELETE"):
                    raise OutcomeUnknown(
                        "The connection to the calendar server broke, and whether the change was made is not known.",
                        hint="Look at the event before you try again.",
                    ) from error
                if isinstance(error, httpx2.TimeoutException | TimeoutError):
                    raise self._reach.silent(self._named(url)) from error
                raise Unavailable("The calendar server does not answer.", hint="Try again in a moment.") from error
            if onward is None:
                return reply
            url = joined(url, onward)
        raise Unavailable("The calendar server sends from one place to the next without end.", hint=CONNECT)

    @staticmethod
    def _named(url: str) -> str:
        return f"The calendar server {urllib.parse.urlsplit(url).netloc.rpartition('@')[2]}"

    async def _once(
        self, method: str, url: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[Reply, str | None]:
        watched = {"trace": Handshake().watch}
        request = self._client.build_request(method, url, content=data, headers=headers, extensions=watched)
        async with asyncio.timeout(self._reach.seconds) as limit:
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
        return Reply(url, response.status_code, response.headers.get("etag", ""), bytes(body)), onward


def same_site(home: str, url: str) -> bool:
    """Whether a password for one address may be shown at another: the same host, or one beside it over TLS, because
    large providers keep each user's calendars on a numbered host of their own."""
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


def refusal(status: int) -> AnnabelleError:
    """The refusal as a sentence for whoever has to act next."""
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
