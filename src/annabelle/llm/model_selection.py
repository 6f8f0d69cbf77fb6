"""Chooses the model that answers, and explains why (LLM-02, LLM-03)."""

from __future__ import annotations

import asyncio
import importlib.resources
import json
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import httpx2 as httpx

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import ConfigMistake, ProviderDown
from annabelle.core.home import Home
from annabelle.core.network_access import trust_store
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.llm.gguf_models import PACKAGED, GgufWeights, find_weights
from annabelle.llm.providers import (
    PROVIDERS,
    Endpoint,
    ModelProvider,
    configured_key,
    configured_model,
    is_loopback,
    make_endpoint,
)
from annabelle.llm.types import ModelChoice, Purpose, ToolMode

PROBE_SECONDS = 0.3


async def list_models(place: Endpoint, seconds: float = PROBE_SECONDS) -> list[str] | None:
    """Lists a server's models without embedding models; None if no server answers."""
    headers = {"authorization": f"Bearer {place.key_text}"} if place.key_text else {}
    try:
        async with httpx.AsyncClient(
            verify=trust_store(place.base_url), trust_env=not is_loopback(place.base_url), timeout=seconds
        ) as client:
            response = await client.get(f"{place.base_url}/models", headers=headers)
            body = response.json() if response.status_code == 200 else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    if not isinstance(body, dict):
        return None
    entries = cast("JsonObject", body).get("data")
    if not isinstance(entries, list):
        return []
    names = [
        str(cast("JsonObject", entry).get("id", ""))
        for entry in cast("list[object]", entries)
        if isinstance(entry, dict)
    ]
    return [name for name in names if name and "embed" not in name.lower()]


_BY_KEY = ("groq", "anthropic", "openai", "openrouter")
_LOCAL = ("ollama", "lmstudio")
_ASK_SECONDS = 5.0

BETTER_MODEL_HINT = (
    "For a better one run: annabelle init. It takes a key, finds Ollama and LM Studio, and fetches models."
)


_ABLE: dict[ToolMode, str] = {
    "trained": "it does everyday requests in English, and knows little",
    "none": "it can chat a little but not use tools",
    "schema": "it often picks wrong tools",
    "native": "it often picks wrong tools",
}


@dataclass(frozen=True, slots=True)
class ModelSelection:
    choice: ModelChoice
    endpoint: Endpoint
    weights: GgufWeights | None = None


class ModelChooser:
    """Chooses the configured provider, else a configured key, else a running local server, else the embedded engine."""

    def __init__(self, settings: Settings, home: Home, agent: AgentProfile) -> None:
        self._settings, self._home, self._agent = settings, home, agent

    async def choose(self) -> ModelSelection:
        named = self._agent.provider or self._settings.thinker_llm_provider
        if named:
            origin = f"agent {self._agent.agent_id}" if self._agent.provider else "THINKER_LLM_PROVIDER"
            return await self._select_configured(_find_provider(named, origin), f"set by {origin}")
        for name in _BY_KEY:
            if configured_key(self._settings, PROVIDERS[name]) is not None:
                return await self._select_configured(PROVIDERS[name], f"{PROVIDERS[name].key_variable} is set")
        if self._settings.compatible_base_url:
            return await self._select_configured(PROVIDERS["compatible"], "COMPATIBLE_BASE_URL is set")
        return await self._select_running() or self._select_embedded("no key is set and no local server runs")

    def for_purpose(self, chat: ModelSelection, purpose: Purpose) -> ModelSelection:
        """Returns the model for a purpose; `provider:model` in the setting can name another provider (LLM-05)."""
        wanted, reason = self._configured_model(purpose)
        if not wanted:
            return self._select_cheap(chat) if purpose == "summary" else chat
        named = self._select_named(wanted, reason)
        if named is not None:
            return named
        if chat.choice.provider == "embedded":
            return self._select_embedded(reason, wanted)
        return self._select(chat.endpoint.provider, wanted, reason)

    def _select_cheap(self, chat: ModelSelection) -> ModelSelection:
        """Returns a cheap model of the chat's provider, if known. The models at a custom address are unknown."""
        provider = chat.endpoint.provider
        cheap = cheap_models().get(provider.name)
        if cheap is None or cheap == chat.choice.model or not chat.endpoint.is_official:
            return chat
        return self._select(provider, cheap, "the cheap one for summaries, as LLM_SUMMARY_MODEL is not set")

    def fallbacks(self) -> list[ModelSelection]:
        """Returns the models in LLM_FALLBACKS, in order (LLM-06)."""
        entries = [entry.strip() for entry in self._settings.llm_fallbacks.split(",")]
        return [self._fallback(entry) for entry in entries if entry]

    def _fallback(self, entry: str) -> ModelSelection:
        try:
            selection = self._select_named(entry, "a fallback")
        except ConfigMistake as mistake:
            raise ConfigMistake(
                f"LLM_FALLBACKS names {entry}, which can not be used: {mistake.message}",
                hint=mistake.hint,
                field="LLM_FALLBACKS",
            ) from mistake
        if selection is None:
            raise ConfigMistake(
                f"LLM_FALLBACKS names {entry}, which is not a provider and its model.",
                hint=f"Write them as in ollama:llama3.2, with one of {', '.join(PROVIDERS)}.",
                field="LLM_FALLBACKS",
            )
        return selection

    def _configured_model(self, purpose: Purpose) -> tuple[str, str]:
        own = self._agent.thinking.model
        if purpose == "thinking" and own and own != self._settings.llm_thinking_model:
            return own, f"set by the agent {self._agent.agent_id} for thinking"
        wanted = {
            "chat": "",
            "summary": self._settings.llm_summary_model,
            "thinking": self._settings.llm_thinking_model,
            "reader": self._settings.llm_reader_model,
        }[purpose]
        return wanted, f"set by LLM_{purpose.upper()}_MODEL"

    def _select_named(self, wanted: str, reason: str) -> ModelSelection | None:
        """Parses `provider:model`; None if it does not begin with a provider, such as llama3.2:3b."""
        prefix, colon, model = wanted.partition(":")
        if not (colon and model and prefix in PROVIDERS):
            return None
        if prefix == "embedded":
            return self._select_embedded(reason, model)
        return self._select(PROVIDERS[prefix], model, reason)

    async def _select_configured(self, provider: ModelProvider, reason: str) -> ModelSelection:
        if provider.name == "embedded":
            return self._select_embedded(reason, self._agent.model)
        self._require_address(provider)
        model = self._agent.model or configured_model(self._settings, provider)
        if not model and not (provider.needs_key and configured_key(self._settings, provider) is None):
            model = await self._first_listed(provider)
        return self._select(provider, model, reason)

    async def _first_listed(self, provider: ModelProvider) -> str:
        place = make_endpoint(self._settings, provider)
        models = await list_models(place, _ASK_SECONDS)
        if models is None:
            raise ProviderDown(
                f"{provider.label} does not answer at {place.base_url}, so its model can not be found out.",
                hint=f"Start it, or set {provider.model_variable} and {provider.url_variable}.",
            )
        if not models:
            raise ConfigMistake(
                f"{provider.label} runs, but has no model loaded.",
                hint=f"Load one there, or set {provider.model_variable}.",
                field=provider.model_variable,
            )
        return models[0]

    async def _select_running(self) -> ModelSelection | None:
        """Returns the first local server that answers and has a model."""
        places = [make_endpoint(self._settings, PROVIDERS[name]) for name in _LOCAL]
        found = await asyncio.gather(*(list_models(place) for place in places))
        for place, models in zip(places, found, strict=True):
            if not models:
                continue
            wanted = self._agent.model or configured_model(self._settings, place.provider)
            fitting = next((name for name in models if name == wanted or name.startswith(f"{wanted}:")), None)
            model = fitting if wanted and fitting else models[0]
            return self._select(place.provider, model, f"it runs at {place.base_url}, and no key is set")
        return None

    def _select(self, provider: ModelProvider, model: str, reason: str) -> ModelSelection:
        self._require_address(provider)
        place = make_endpoint(self._settings, provider)
        if provider.needs_key and place.key is None:
            raise ConfigMistake(
                f"{provider.label} was chosen ({reason}), but {provider.key_variable} is not set.",
                hint=f"Set {provider.key_variable}, or choose another provider.",
                field=provider.key_variable,
            )
        if not model:
            raise ConfigMistake(
                f"{provider.label} was chosen ({reason}), but no model is named.",
                hint=f"Set {provider.model_variable}.",
                field=provider.model_variable,
            )
        explanation = f"{model} at {provider.label} answers: {reason}."
        return ModelSelection(ModelChoice(provider.name, model, self._tool_mode("native"), explanation), place)

    def _require_address(self, provider: ModelProvider) -> None:
        if provider.name == "compatible" and not self._settings.compatible_base_url:
            raise ConfigMistake(
                "The provider is compatible, but its address is not set.",
                hint="Set COMPATIBLE_BASE_URL, as in http://127.0.0.1:8080/v1",
                field="COMPATIBLE_BASE_URL",
            )

    def _select_embedded(self, reason: str, name: str | None = None) -> ModelSelection:
        weights = find_weights(name or self._settings.embedded_model, self._home)
        weights = replace(weights, threads=self._settings.embedded_threads)
        mode = self._tool_mode(weights.tool_mode)
        what = f"The embedded model {weights.name} answers, on this machine and offline: {reason}."
        if weights.name == PACKAGED:
            what = f"{what} It is very small: {_ABLE[mode]}. {BETTER_MODEL_HINT}"
        choice = ModelChoice("embedded", weights.name, mode, what)
        return ModelSelection(choice, Endpoint(PROVIDERS["embedded"], ""), weights)

    def _tool_mode(self, usual: ToolMode) -> ToolMode:
        configured = self._settings.model_tool_mode
        return usual if configured == "auto" else configured


@cache
def cheap_models() -> dict[str, str]:
    """Default models for summaries, by provider."""
    data = importlib.resources.files("annabelle.llm").joinpath("cheap_models.json").read_bytes()
    return cast("dict[str, str]", json.loads(data))


def _find_provider(name: str, origin: str) -> ModelProvider:
    for provider in PROVIDERS.values():
        if provider.name == name.strip().lower():
            return provider
    raise ConfigMistake(
        f"{origin} names the provider {name}, which does not exist.",
        hint=f"Choose one of {', '.join(PROVIDERS)}.",
        field="THINKER_LLM_PROVIDER" if origin == "THINKER_LLM_PROVIDER" else "provider",
    )


def with_tool_mode(selection: ModelSelection, mode: ToolMode, why: str) -> ModelSelection:
    """Returns the same model with another tool mode, and adds the reason to its explanation."""
    choice = selection.choice
    return replace(selection, choice=replace(choice, tool_mode=mode, explanation=f"{choice.explanation} {why}"))
