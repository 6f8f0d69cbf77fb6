"""An HTTP client that connects only to addresses that were judged, at every redirect anew.

Loading this module loads an HTTP library; a server reaches it through `deferred_module` to keep its start cheap.
"""

from __future__ import annotations

import functools
import ssl
from typing import cast

import httpx2

from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.servers.kit.net.addresses import Reach
from annabelle.servers.kit.net.bodies import ENCODINGS, MAX_BODY_BYTES, BoundedBody

USER_AGENT = "Annabelle/1.0 (personal assistant; one person's requests)"
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = 10
_UNPACKED = (b"content-encoding", b"content-length")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Looks a host up, judges what it finds, and connects to exactly that, with the host's own name in TLS."""

    def __init__(self, reach: Reach, *, verify: ssl.SSLContext | None = None, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._reach, self._max_bytes = reach, max_bytes
        # No connection is kept: two hosts may share an address, and each must show a certificate of its own. A name
        # is also looked up and judged anew for each request.
        limits = httpx2.Limits(max_connections=20, max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=verify or _certificates(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.scheme not in _PORTS:
            raise InvalidArguments(f"Only http and https addresses are opened, not {url.scheme[:20]!r}.", field="url")
        if url.userinfo:
            raise InvalidArguments("An address with a user name or password in it is not opened.", field="url")
        host = url.raw_host.decode("ascii")
        if not host:
            raise InvalidArguments("The address names no host.", field="url")
        addresses = await self._reach.addresses(host, url.port or _PORTS[url.scheme])
        for number, address in enumerate(addresses):
            try:
                answer = await self._inner.handle_async_request(_directed(request, address, len(addresses) - number))
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
    reach: Reach,
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


def _directed(request: httpx2.Request, address: str, addresses_left: int) -> httpx2.Request:
    """The same request to an address, with the name it was looked up by. The Host header is set already."""
    name = request.url.raw_host.decode("ascii").rstrip(".")
    timeout = dict(cast("dict[str, float | None]", request.extensions.get("timeout", {})))
    patience = timeout.get("connect")
    if patience is not None:
        timeout["connect"] = patience / addresses_left  # the next address has to get its turn
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": name, "timeout": timeout},
    )


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The authorities this machine's HTTP library trusts; reading them takes longer than a request."""
    return httpx2.create_ssl_context(trust_env=False)
