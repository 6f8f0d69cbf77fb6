"""HTTP as channels need it: what was certainly not done is told from what may have been."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx2 as httpx

from annabelle.channels.channel import DeliveryUnknown, NotDelivered
from annabelle.core.network_access import system_authorities

_SECONDS: Final = 20.0
_AGAIN_SECONDS: Final = 5.0


class ChannelHttp:
    """Requests to one channel. Its errors name no address: that may hold a token."""

    def __init__(self, label: str, headers: Mapping[str, str] | None = None) -> None:
        self.label = label
        self._http = httpx.AsyncClient(
            verify=system_authorities(), timeout=_SECONDS, trust_env=False, headers=dict(headers or {})
        )

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[httpx.AsyncClient]:
        """The client. Raises NotDelivered if nothing was sent, DeliveryUnknown if the connection broke later."""
        try:
            yield self._http
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NotDelivered(f"{self.label} is out of reach.", retry_after=_AGAIN_SECONDS) from error
        except httpx.HTTPError as error:
            raise DeliveryUnknown(f"The connection to {self.label} broke.") from error

    async def download(self, url: str, target: Path, most_bytes: int) -> None:
        try:
            async with self._http.stream("GET", url) as reply:
                if reply.status_code != HTTPStatus.OK:
                    raise NotDelivered(f"{self.label} does not hand out the file.")
                written = 0
                with target.open("wb") as file:
                    async for chunk in reply.aiter_bytes():
                        written += len(chunk)
                        if written > most_bytes:
                            raise NotDelivered("The file is too large.")
                        file.write(chunk)
        except httpx.HTTPError as error:
            raise NotDelivered(f"The connection to {self.label} broke.", retry_after=_AGAIN_SECONDS) from error

    async def close(self) -> None:
        await self._http.aclose()


def wait_at_most(seconds: float) -> httpx.Timeout:
    """For a request that the other side answers only when something happens."""
    return httpx.Timeout(_SECONDS, read=_SECONDS + seconds)
