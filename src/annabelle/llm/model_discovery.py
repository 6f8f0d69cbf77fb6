"""Finds models for a first start: local servers and what their models can do, whether a key works, what can be fetched
(FST-06).
"""

from __future__ import annotations

import importlib.resources
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

import httpx2 as httpx
from pydantic import BaseModel, ConfigDict, SecretStr, TypeAdapter

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderTrouble
from annabelle.core.network_access import trust_store
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.llm.backend import status_error, unreachable_error
from annabelle.llm.model_selection import ModelSelection, list_models
from annabelle.llm.providers import PROVIDERS, Endpoint, ModelProvider, is_loopback, make_endpoint

_PROBE_SECONDS, _KEY_SECONDS = 1.0, 5.0
_ANTHROPIC_VERSION: Final = "2023-06-01"
_BYTES_PER_WEIGHT, _SPARE_GB = 0.6, 1.0
"""Of models at four to five bits a weight, and what a conversation takes beside them."""

KeyState = Literal["good", "wrong", "unreachable"]
Progress = Callable[[int, int | None], None]


class RecommendedModel(BaseModel):
    """A model that Ollama fetches by its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    billions: float
    note: str

    @property
    def memory_gb(self) -> float:
        """About how much memory it takes."""
        return self.billions * _BYTES_PER_WEIGHT + _SPARE_GB


def list_recommended() -> list[RecommendedModel]:
    data = importlib.resources.files("annabelle.llm").joinpath("recommended_models.json").read_bytes()
    return TypeAdapter(list[RecommendedModel]).validate_json(data)


def machine_memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model of a local server, and whether the server says that it can call tools."""

    provider: ModelProvider
    name: str
    tools: bool


async def find_local_models(settings: Settings) -> dict[str, list[LocalModel]]:
    """The models of each local server that runs, by provider, those that can call tools first."""
    found: dict[str, list[LocalModel]] = {}
    for provider, list_local in ((PROVIDERS["ollama"], _list_ollama), (PROVIDERS["lmstudio"], _list_lmstudio)):
        place = make_endpoint(settings, provider)
        try:
            async with _client(place, _PROBE_SECONDS) as client:
                models = await list_local(client, provider)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError):
            continue
        found[provider.name] = sorted(models, key=lambda model: not model.tools)
    return found


async def _list_ollama(client: httpx.AsyncClient, provider: ModelProvider) -> list[LocalModel]:
    names = [str(row["name"]) for row in _rows((await client.get("/api/tags")).json(), "models")]
    models: list[LocalModel] = []
    for name in names:
        about = cast("JsonObject", (await client.post("/api/show", json={"model": name})).json())
        can = cast("Sequence[str]", about.get("capabilities") or ())
        if "embedding" not in can or "completion" in can:
            models.append(LocalModel(provider, name, "tools" in can))
    return models


async def _list_lmstudio(client: httpx.AsyncClient, provider: ModelProvider) -> list[LocalModel]:
    rows = _rows((await client.get("/api/v0/models")).json(), "data")
    return [
        LocalModel(provider, str(row["id"]), "tool_use" in cast("Sequence[str]", row.get("capabilities") or ()))
        for row in rows
        if row.get("type") != "embeddings"
    ]


def _rows(body: object, name: str) -> list[JsonObject]:
    return cast("list[JsonObject]", cast("JsonObject", body)[name])


async def check_key(settings: Settings, provider: ModelProvider, key: str) -> KeyState:
    """Ask the provider for its models with this key, which costs nothing."""
    status = await _probe(replace(make_endpoint(settings, provider), key=SecretStr(key)))
    if status in (400, 401, 403):
        return "wrong"
    return "good" if status == 200 else "unreachable"


async def find_trouble(selection: ModelSelection) -> ProviderTrouble | None:
    """Why the model cannot answer now, as far as its server tells without a call that costs."""
    place, model = selection.endpoint, selection.choice.model
    if selection.weights is not None:
        return None
    status = await _probe(place)
    if status is None:
        return unreachable_error(place, place.base_url)
    if status in (401, 403):
        return status_error(status, "", place, model)
    names = await list_models(place) if place.provider.local else None
    if names is not None and not any(f"{name}:".startswith(f"{model}:") for name in names):
        return status_error(404, "", place, model)
    return None


async def _probe(place: Endpoint) -> int | None:
    """The status of a request that needs the key and costs nothing; None if nobody answers."""
    headers = {"authorization": f"Bearer {place.key_text}"} if place.key_text else {}
    path = "/models"
    if place.provider.protocol == "anthropic":
        headers, path = {"x-api-key": place.key_text, "anthropic-version": _ANTHROPIC_VERSION}, "/v1/models"
    elif place.provider.name == "openrouter":
        path = "/key"  # its list of models is open to everyone
    try:
        async with httpx.AsyncClient(
            verify=trust_store(place.base_url), trust_env=not is_loopback(place.base_url), timeout=_KEY_SECONDS
        ) as client:
            return (await client.get(f"{place.base_url}{path}", headers=headers)).status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None


async def pull_with_ollama(settings: Settings, name: str, progress: Progress) -> None:
    """Let Ollama fetch a model. It keeps what it has, so a broken download goes on where it stopped."""
    place = make_endpoint(settings, PROVIDERS["ollama"])
    try:
        async with _client(place, None) as client, aclosing(_pull_lines(client, name)) as lines:
            async for line in lines:
                if "error" in line:
                    raise ProviderFailed(f"Ollama could not fetch {name}: {line['error']}.")
                if "completed" in line:
                    progress(cast("int", line["completed"]), cast("int | None", line.get("total")))
    except (httpx.HTTPError, ValueError) as error:
        raise ProviderDown(
            f"The download of {name} broke off.", hint="What is there is kept: the same command goes on with it."
        ) from error


async def _pull_lines(client: httpx.AsyncClient, name: str) -> AsyncGenerator[JsonObject]:
    async with client.stream("POST", "/api/pull", json={"model": name}) as response:
        async for line in response.aiter_lines():
            if line.strip():
                yield cast("JsonObject", json.loads(line))


@asynccontextmanager
async def _client(place: Endpoint, seconds: float | None) -> AsyncGenerator[httpx.AsyncClient]:
    """Speaks the server's own protocol, which stands beside the OpenAI-compatible one."""
    root = place.base_url.removesuffix("/v1")
    async with httpx.AsyncClient(
        base_url=root, verify=trust_store(root), trust_env=not is_loopback(root), timeout=seconds
    ) as client:
        yield client
