"""A client of the Bot API. It tells what was certainly not done from what may have been."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import cast

import httpx2 as httpx

from annabelle.channels.channel import DeliveryUnknown, NotDelivered
from annabelle.channels.http_client import ChannelHttp, wait_at_most
from annabelle.core.tools import JsonObject


class BotApi:
    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address.rstrip("/"), token
        self._http = ChannelHttp("Telegram")

    async def call(
        self,
        method: str,
        arguments: Mapping[str, object],
        *,
        file: tuple[str, Path] | None = None,
        wait_seconds: float = 0.0,
    ) -> object:
        """The result of a method. Raises NotDelivered or DeliveryUnknown; neither names the token."""
        url = f"{self._address}/bot{self._token}/{method}"
        timeout = wait_at_most(wait_seconds)
        async with self._http.use() as http:
            if file is None:
                reply = await http.post(url, json=dict(arguments), timeout=timeout)
            else:
                field, path = file
                form = {name: one if isinstance(one, str) else json.dumps(one) for name, one in arguments.items()}
                with path.open("rb") as content:
                    reply = await http.post(url, data=form, files={field: (path.name, content)}, timeout=timeout)
        return self._read(reply)

    async def download(self, path: str, target: Path, most_bytes: int) -> None:
        await self._http.download(f"{self._address}/file/bot{self._token}/{path}", target, most_bytes)

    async def close(self) -> None:
        await self._http.close()

    def _read(self, reply: httpx.Response) -> object:
        try:
            body = cast("JsonObject", reply.json())
            if body["ok"] is True:
                return body["result"]
            reason = str(body.get("description", "")) or f"status {reply.status_code}"
            wait = float(cast("int", cast("JsonObject", body.get("parameters") or {}).get("retry_after") or 1))
        except (ValueError, KeyError, TypeError, AttributeError):
            # A proxy answered, and may have passed it on before.
            raise DeliveryUnknown(f"Telegram's answer cannot be read (status {reply.status_code}).") from None
        reason = reason.replace(self._token, "…")
        if reply.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise NotDelivered(f"Telegram asks to wait: {reason}", retry_after=wait)
        if reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise DeliveryUnknown(f"Telegram failed: {reason}")
        raise NotDelivered(f"Telegram refused: {reason}")
