"""Requests JSON from a configured web service, with a short cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

from annabelle.core.errors import TooManyRequests, Unavailable
from annabelle.core.tools import JsonObject
from annabelle.servers.everyday.config import host_and_port
from annabelle.servers.kit import deferred_module
from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess

if TYPE_CHECKING:
    from annabelle.servers.kit import http_client
else:
    http_client = deferred_module("annabelle.servers.kit.http_client")


MAX_BYTES = 5_000_000
SECONDS = 20.0
_FRESH = timedelta(minutes=10)
_KEPT = 64


class SourceRefused(Unavailable):
    """The source refused the request, so that repeating it does not help."""

    def __init__(self, message: str, status: int, reason: str | None) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    at: datetime
    answer: JsonObject


class JsonSource:
    """One service at the address in the user's settings, which may be on the user's own network."""

    def __init__(self, setting: str, url: str, private_hosts: str, clock: Callable[[], datetime]) -> None:
        self.host, port = host_and_port(setting, url)
        self._url = url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._reach = HostAccess(AllowedPrivateHosts.parse(f"{host}:{port},{private_hosts}"))
        self._clock = clock
        self._kept: dict[str, _CachedAnswer] = {}

    async def fetch(self, path: str, parameters: Mapping[str, str], *, fresh: bool = False) -> JsonObject:
        """The response to a GET, cached for ten minutes unless `fresh` is set."""
        key = json.dumps([path, sorted(parameters.items())])
        kept = self._kept.get(key)
        if not fresh and kept is not None and timedelta(0) <= self._clock() - kept.at < _FRESH:
            return kept.answer
        answer = await self._get(path, parameters)
        self._kept[key] = _CachedAnswer(self._clock(), answer)
        while len(self._kept) > _KEPT:
            self._kept.pop(next(iter(self._kept)))
        return answer

    async def _get(self, path: str, parameters: Mapping[str, str]) -> JsonObject:
        url = f"{self._url}{path}{'?' if parameters else ''}{urlencode(parameters)}"
        async with http_client.guarded_client(self._reach, seconds=SECONDS) as http:
            answer = await http_client.fetch(http, url, max_bytes=MAX_BYTES, seconds=SECONDS)
        return self._read(answer.status, answer.data)

    def _read(self, status: int, body: bytes) -> JsonObject:
        try:
            answer: object = json.loads(body, parse_float=Decimal)
        except (ValueError, RecursionError):
            answer = None
        answer = cast("JsonObject", answer) if isinstance(answer, dict) else None
        if status == 429:
            raise TooManyRequests(f"{self.host} asks to wait: too many requests.", hint="Try again in some minutes.")
        if 400 <= status < 500:
            said = (answer or {}).get("reason") or (answer or {}).get("message")
            reason = str(said)[:200] if said else None
            raise SourceRefused(f"{self.host} refused: {reason or f'status {status}'}.", status, reason)
        if status != 200 or answer is None:
            raise Unavailable(f"{self.host} gave no usable answer (status {status}).", hint="Try again in a while.")
        return answer
