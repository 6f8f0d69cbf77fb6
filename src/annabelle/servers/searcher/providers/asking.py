"""Questions to a search service the user has chosen, as JSON over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode, urlsplit

from annabelle.core.errors import ProviderFailed
from annabelle.servers.kit import deferred_module
from annabelle.servers.kit.net.addresses import Exceptions, Reach

if TYPE_CHECKING:
    from annabelle.servers.kit.net import client, fetching
else:
    client = deferred_module("annabelle.servers.kit.net.client")
    fetching = deferred_module("annabelle.servers.kit.net.fetching")

JsonMap = Mapping[str, object]

_SECONDS = 15.0
_MAX_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    body: JsonMap
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A service at an address from the settings: it may be on the user's own network, and it is not left for another
    by a redirect, because a key goes along."""

    address: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    async def ask(self, path: str, parameters: Mapping[str, str | int | None]) -> Answered:
        given = {name: value for name, value in parameters.items() if value is not None}
        url = f"{self.address}{path}?{urlencode(given)}"
        headers = {"Accept": "application/json", **self.headers}
        async with client.guarded_client(self._reach(), seconds=_SECONDS, headers=headers) as http:
            http.follow_redirects = False
            answer = await fetching.fetch(http, url, max_bytes=_MAX_BYTES, seconds=_SECONDS)
        return Answered(answer.status, _read(answer.data, answer.status), _seconds(answer.retry_after))

    def _reach(self) -> Reach:
        parts = urlsplit(self.address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return Reach(Exceptions(names=frozenset({f"{(parts.hostname or '').rstrip('.')}:{port}"})))


def entries(body: JsonMap, *path: str) -> list[JsonMap]:
    """The list of objects at a path; empty if there is none, without what is no object."""
    here: object = body
    for name in path:
        here = mapping(here).get(name)
    items = cast("list[object]", here) if isinstance(here, list) else []
    return [cast("JsonMap", item) for item in items if isinstance(item, dict)]


def mapping(value: object) -> JsonMap:
    return cast("JsonMap", value) if isinstance(value, dict) else {}


def _read(data: bytes, status: int) -> JsonMap:
    try:
        return mapping(json.loads(data))
    except (ValueError, RecursionError) as error:
        if status == 200:
            raise ProviderFailed("The search service did not answer with JSON.") from error
        return {}


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdecimal() and len(text) < 6 else None
