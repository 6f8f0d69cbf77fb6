"""An HTTP client that connects only to addresses that were judged, at every redirect anew."""

from __future__ import annotations

import httpx2

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit.net.addresses import Reach

USER_AGENT = "Annabelle/1.0 (personal assistant; one person's requests)"
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = 10


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Looks a host up, judges what it finds, and connects to exactly that, with the host's own name in TLS."""

    def __init__(self, reach: Reach, inner: httpx2.AsyncBaseTransport | None = None) -> None:
        self._reach = reach
        # No connection is kept: two hosts may share an address, and each must show a certificate of its own.
        limits = httpx2.Limits(max_connections=20, max_keepalive_connections=0)
        self._inner = inner or httpx2.AsyncHTTPTransport(trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.scheme not in _PORTS:
            raise InvalidArguments(f"Only http and https addresses are opened, not {url.scheme[:20]}.", field="url")
        addresses = await self._reach.addresses(url.host, url.port or _PORTS[url.scheme])
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        request.headers.setdefault("Host", url.netloc.decode("ascii"))
        for number, address in enumerate(addresses, start=1):
            request.url = url.copy_with(host=address)
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.ConnectError:
                if number == len(addresses):
                    raise
            else:
                request.url = url
                return response
            finally:
                request.url = url
        raise httpx2.ConnectError("no address", request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def guarded_client(reach: Reach, *, seconds: float, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
    """A client for addresses that came from outside. Its redirects pass the same judgement."""
    return httpx2.AsyncClient(
        transport=GuardedTransport(reach),
        timeout=seconds,
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        headers={"User-Agent": USER_AGENT, **(headers or {})},
        trust_env=False,
    )
