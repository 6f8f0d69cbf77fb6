"""The client-server API of a Matrix homeserver, as far as a channel needs it."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast
from urllib.parse import quote

import anyio
import httpx2 as httpx

from annabelle.channels.channel import DeliveryUnknown, NotDelivered
from annabelle.channels.http_client import ChannelHttp, wait_at_most
from annabelle.core.tools import JsonObject

_CLIENT: Final = "/_matrix/client/v3"
_MEDIA: Final = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")


class MatrixRefused(NotDelivered):
    """The homeserver said no. `reason` is its error code, as M_FORBIDDEN."""

    def __init__(self, message: str, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.reason = reason


class MatrixApi:
    """Raises NotDelivered or DeliveryUnknown; neither names the token, which travels in a header."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address.rstrip("/"), token
        self._http = ChannelHttp("Matrix", {"Authorization": f"Bearer {token}"})

    async def get(self, *path: str, query: Mapping[str, str] | None = None, wait_seconds: float = 0.0) -> JsonObject:
        return await self._call("GET", path, query or {}, wait_seconds=wait_seconds)

    async def post(self, *path: str, body: Mapping[str, object]) -> JsonObject:
        return await self._call("POST", path, {}, body)

    async def put(self, *path: str, body: Mapping[str, object]) -> JsonObject:
        return await self._call("PUT", path, {}, body)

    async def upload(self, file: Path) -> JsonObject:
        """Put a file onto the homeserver. Returns its address and kind, as a message names them."""
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        content = await anyio.Path(file).read_bytes()
        async with self._http.use() as http:
            reply = await http.post(
                f"{self._address}/_matrix/media/v3/upload",
                params={"filename": file.name},
                headers={"Content-Type": kind},
                content=content,
            )
        return {"url": self._read(reply)["content_uri"], "info": {"mimetype": kind, "size": len(content)}}

    async def download(self, address: str, target: Path, most_bytes: int) -> None:
        found = _MEDIA.fullmatch(address)
        if found is None:
            raise NotDelivered("The address of the file cannot be read.")
        where = f"{quote(found[1], safe='')}/{quote(found[2], safe='')}"
        try:
            url = f"{self._address}/_matrix/client/v1/media/download/{where}"
            await self._http.download(url, target, most_bytes)
        except NotDelivered:
            # Homeservers before version 1.11 of the specification have it here only.
            await self._http.download(f"{self._address}/_matrix/media/v3/download/{where}", target, most_bytes)

    async def close(self) -> None:
        await self._http.close()

    async def _call(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        body: Mapping[str, object] | None = None,
        wait_seconds: float = 0.0,
    ) -> JsonObject:
        url = "/".join([f"{self._address}{_CLIENT}", *(quote(one, safe="") for one in path)])
        json = None if body is None else dict(body)
        async with self._http.use() as http:
            reply = await http.request(method, url, params=dict(query), json=json, timeout=wait_at_most(wait_seconds))
        return self._read(reply)

    def _read(self, reply: httpx.Response) -> JsonObject:
        try:
            body = cast("JsonObject", reply.json())
            if reply.status_code == HTTPStatus.OK:
                return dict(body)
            reason, wait = str(body["errcode"]), body.get("retry_after_ms")
            told = f"{reason} {body.get('error', '')}".strip().replace(self._token, "…")
        except (ValueError, KeyError, TypeError, AttributeError):
            # A proxy answered, and may have passed it on before.
            raise DeliveryUnknown(f"Matrix's answer cannot be read (status {reply.status_code}).") from None
        if reply.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            seconds = wait / 1000 if isinstance(wait, int) else 1.0
            raise MatrixRefused(f"Matrix asks to wait: {told}", reason, retry_after=seconds)
        if reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise DeliveryUnknown(f"Matrix failed: {told}")
        raise MatrixRefused(f"Matrix refused: {told}", reason)
