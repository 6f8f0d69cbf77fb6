"""A connection whose TLS handshake was called off is closed: httpx2 does so after errors, not when it is cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast


class _Stream(Protocol):
    async def aclose(self) -> None: ...


class Handshake:
    """Watches one request as its `trace`."""

    def __init__(self) -> None:
        self._connected: _Stream | None = None

    async def watch(self, event: str, told: Mapping[str, object]) -> None:
        if event == "connection.connect_tcp.complete":
            self._connected = cast("_Stream", told["return_value"])
        elif event == "connection.start_tls.failed" and self._connected is not None:
            await self._connected.aclose()
