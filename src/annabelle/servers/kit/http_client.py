"""An HTTP client for addresses from outside: it connects only to checked addresses, and limits bytes and time."""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import httpx2

from annabelle.core.errors import AnnabelleError, InvalidArguments, TooLarge, ToolTimeout, Unavailable
from annabelle.core.network_access import system_authorities
from annabelle.servers.kit.host_access import HostAccess, printable_host

MAX_BODY_BYTES = 50_000_000
ENCODINGS = "gzip, deflate"
"""Accepted encodings. The others cannot be decompressed with a bound."""

_PIECE = 65_536
_PACKED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class BoundedBody(httpx2.AsyncByteStream):
    """A body that raises once it has given `max_bytes`. A packed one is unpacked here, a piece at a time: a few
    kilobytes that unpack to gigabytes cost no more than the bound."""

    def __init__(self, inner: httpx2.AsyncByteStream, encoding: str, max_bytes: int) -> None:
        self._inner, self._max = inner, max_bytes
        self._unpacked = _make_unpacker(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        given = 0
        async for packed in self._inner:
            for piece in self._unpacked(packed):
                given += len(piece)
                if given > self._max:
                    raise TooLarge(f"The answer has more than {self._max} bytes, which is more than is read.")
                yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _make_unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda data: iter((data,))
    if encoding not in _PACKED:
        raise Unavailable("The answer is packed in a way that was not asked for, so it is not read.")
    return _Inflater(_PACKED[encoding])


class _Inflater:
    def __init__(self, window: int) -> None:
        self._zlib, self._begun = zlib.decompressobj(window), False

    def __call__(self, data: bytes) -> Iterator[bytes]:
        more = bool(data)
        while more:
            try:
                piece = self._zlib.decompress(data, _PIECE)
            except zlib.error as error:
                if self._begun or data[:2] == b"\x1f\x8b":
                    raise Unavailable("The answer is packed wrongly and can not be read.") from error
                # Some servers send a bare stream where the standard asks for one with a header.
                self._zlib, self._begun = zlib.decompressobj(-zlib.MAX_WBITS), True
                continue
            self._begun = True
            if piece:
                yield piece
            data = self._zlib.unconsumed_tail
            # A full piece: the last bytes taken in may stand for more than was given out.
            more = not self._zlib.eof and (bool(data) or len(piece) == _PIECE)


USER_AGENT = "Annabelle/1.0 (personal assistant; one person's requests)"
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = 10
_UNPACKED = (b"content-encoding", b"content-length")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host, checks its addresses, and connects to one of them with the host's name in TLS."""

    def __init__(
        self, reach: HostAccess, *, verify: ssl.SSLContext | None = None, max_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._reach, self._max_bytes = reach, max_bytes
        # No connection is kept: two hosts may share an address, and each must show a certificate of its own. A name
        # is also resolved and checked again for each request.
        limits = httpx2.Limits(max_connections=20, max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=verify or system_authorities(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.scheme not in _PORTS:
            raise InvalidArguments(f"Only http and https addresses are opened, not {url.scheme[:20]!r}.", field="url")
        if url.userinfo:
            raise InvalidArguments("An address with a user name or password in it is not opened.", field="url")
        host = url.raw_host.decode("ascii")
        if not host:
            raise InvalidArguments("The address names no host.", field="url")
        addresses = await self._reach.resolve_allowed(host, url.port or _PORTS[url.scheme])
        for number, address in enumerate(addresses):
            try:
                answer = await self._inner.handle_async_request(_to_address(request, address, len(addresses) - number))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if number == len(addresses) - 1:
                    raise
            else:
                return await self._bounded(answer)
        raise AssertionError("Reach gives at least one address")

    async def _bounded(self, answer: httpx2.Response) -> httpx2.Response:
        inner = cast("httpx2.AsyncByteStream", answer.stream)
        try:
            body = BoundedBody(inner, answer.headers.get("content-encoding", ""), self._max_bytes)
        except AnnabelleError:
            await inner.aclose()
            raise
        headers = [(name, value) for name, value in answer.headers.raw if name.lower() not in _UNPACKED]
        return httpx2.Response(answer.status_code, headers=headers, stream=body, extensions=answer.extensions)

    async def aclose(self) -> None:
        await self._inner.aclose()


def guarded_client(
    reach: HostAccess,
    *,
    seconds: float,
    headers: dict[str, str] | None = None,
    max_bytes: int = MAX_BODY_BYTES,
    verify: ssl.SSLContext | None = None,
) -> httpx2.AsyncClient:
    """A client for addresses that came from outside. Its redirects pass the same judgement, and no body of more than
    `max_bytes`, unpacked, is taken. `seconds` bounds each wait, not the whole; `fetching.fetch` bounds both.

    Headers go along on redirects, `Authorization` excepted: a key in another header needs `follow_redirects=False`.
    """
    return httpx2.AsyncClient(
        transport=GuardedTransport(reach, verify=verify, max_bytes=max_bytes),
        timeout=seconds,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": ENCODINGS, **(headers or {})},
        trust_env=False,
    )


def _to_address(request: httpx2.Request, address: str, addresses_left: int) -> httpx2.Request:
    """The same request to an address, with the name it was looked up by. The Host header is set already."""
    name = request.url.raw_host.decode("ascii").rstrip(".")
    timeout = dict(cast("dict[str, float | None]", request.extensions.get("timeout", {})))
    connect_seconds = timeout.get("connect")
    if connect_seconds is not None:
        timeout["connect"] = connect_seconds / addresses_left  # the next address has to get its turn
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": name, "timeout": timeout},
    )


_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:\-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """An answer, whatever its status. `truncated`: there was more than the bytes asked for."""

    url: str
    status: int
    content_type: str
    charset: str | None
    data: bytes
    truncated: bool = False
    retry_after: str | None = None
    etag: str | None = None
    last_modified: str | None = None


async def fetch(
    client: httpx2.AsyncClient, url: str, *, max_bytes: int, seconds: float, headers: dict[str, str] | None = None
) -> FetchedResponse:
    """GET an address with a guarded client, following redirects. `seconds` is for all of it together."""
    async with explain_errors(url, seconds), client.stream("GET", url, headers=headers) as answer:
        data = bytearray()
        async for piece in answer.aiter_bytes():
            data += piece
            if len(data) > max_bytes:
                break
        kind = answer.headers.get("content-type", "")
        charset = _CHARSET.search(kind)
        return FetchedResponse(
            url=str(answer.url),
            status=answer.status_code,
            content_type=kind.partition(";")[0].strip().lower(),
            charset=charset.group(1).lower() if charset else None,
            data=bytes(data[:max_bytes]),
            truncated=len(data) > max_bytes,
            retry_after=answer.headers.get("retry-after"),
            etag=answer.headers.get("etag"),
            last_modified=answer.headers.get("last-modified"),
        )


@asynccontextmanager
async def explain_errors(url: str, seconds: float) -> AsyncGenerator[None]:
    """Limit the time of the block, and turn errors of the HTTP library into ours."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise explain_http_error(error, url) from error
    except TimeoutError as error:
        raise ToolTimeout(
            f"{_host(url)} did not answer within {seconds:g} seconds.", hint="Try again, or allow more time."
        ) from error


def explain_http_error(error: Exception, url: str) -> AnnabelleError:
    """The error for a failed request, without the library's own text."""
    host = _host(url)
    if isinstance(error, httpx2.InvalidURL):
        return InvalidArguments("This is not an address that can be opened.", hint="Write it as https://…", field="url")
    if isinstance(error, httpx2.TimeoutException):
        return ToolTimeout(f"{host} did not answer in time.", hint="Try again, or allow more time.")
    if isinstance(error, httpx2.TooManyRedirects):
        return Unavailable(f"{host} redirects in circles.")
    if isinstance(error, httpx2.ConnectError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Unavailable(f"{host} does not show a valid certificate, so it is not trusted.")
        return Unavailable(f"{host} can not be reached.", hint="Check the address, or try again later.")
    return Unavailable(f"{host} broke off or answered in a way that can not be read.", hint="Try again later.")


def _host(url: str) -> str:
    try:
        return printable_host(httpx2.URL(url).host)
    except (httpx2.InvalidURL, TypeError):
        return "The address"
