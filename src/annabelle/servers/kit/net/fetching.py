"""One address fetched as a whole: bounded in bytes and in time, with every failure as a sentence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from annabelle.core.errors import AnnabelleError, InvalidArguments, ToolTimeout, Unavailable
from annabelle.servers.kit.net.addresses import printable_host

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:\-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fetched:
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
) -> Fetched:
    """GET an address with a guarded client, following redirects. `seconds` is for all of it together."""
    async with explained(url, seconds), client.stream("GET", url, headers=headers) as answer:
        data = bytearray()
        async for piece in answer.aiter_bytes():
            data += piece
            if len(data) > max_bytes:
                break
        kind = answer.headers.get("content-type", "")
        charset = _CHARSET.search(kind)
        return Fetched(
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
async def explained(url: str, seconds: float) -> AsyncGenerator[None]:
    """Bounds what happens inside, and turns the HTTP library's errors into ours."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise explain(error, url) from error
    except TimeoutError as error:
        raise ToolTimeout(
            f"{_host(url)} did not answer within {seconds:g} seconds.", hint="Try again, or allow more time."
        ) from error


def explain(error: Exception, url: str) -> AnnabelleError:
    """What went wrong between us and a host, without the library's own words."""
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
