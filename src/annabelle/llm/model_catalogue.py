"""The models that can be chosen, what a choice changes in the settings, and which model is used for what.

The terminal and the hub show and change the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import AnnabelleError, CallerMistake, ConfigMistake, NotFound
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.llm.gguf_models import PACKAGED, GgufModel, GgufRegistry, download_model, find_packaged_weights
from annabelle.llm.model_discovery import (
    Progress,
    check_key,
    find_local_models,
    find_trouble,
    list_recommended,
    machine_memory_gb,
    pull_with_ollama,
)
from annabelle.llm.model_selection import ModelChooser, ModelSelection
from annabelle.llm.providers import PROVIDERS, ModelProvider, configured_key, configured_model
from annabelle.llm.types import Purpose

OLLAMA: Final = "ollama:"
OptionState = Literal["ready", "to pull", "needs a setting", "if it runs", "not installed"]


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model that could answer. `name` is what is chosen, `setting` what it lacks, `size` what is to be fetched."""

    name: str
    kind: Literal["embedded", "provider", "local"]
    state: OptionState
    note: str
    setting: str = ""
    size: int | None = None

    @property
    def state_text(self) -> str:
        if self.setting:
            return f"needs {self.setting}"
        return f"{self.state}, {self.size / 1e6:.0f} MB" if self.state == "to pull" and self.size else self.state


def list_options(settings: Settings, registry: GgufRegistry) -> list[ModelOption]:
    packaged = find_packaged_weights() is not None
    return [
        ModelOption(PACKAGED, "embedded", "ready" if packaged else "not installed", "Came with the install; small."),
        *(
            ModelOption(
                model.name,
                "embedded",
                "ready" if registry.file_of(model).exists() else "to pull",
                model.note or model.title,
                size=model.size,
            )
            for model in registry.models()
            if model.name != PACKAGED
        ),
        *(_provider_option(settings, provider) for provider in PROVIDERS.values() if provider.name != "embedded"),
    ]


def _provider_option(settings: Settings, provider: ModelProvider) -> ModelOption:
    name = f"{provider.name}:{configured_model(settings, provider)}".rstrip(":")
    state, setting = "if it runs", ""
    if configured_key(settings, provider) is not None:
        state = "ready"
    elif provider.needs_key:
        state, setting = "needs a setting", provider.key_variable
    elif provider.name == "compatible" and not settings.compatible_base_url:
        state, setting = "needs a setting", provider.url_variable
    return ModelOption(name, "provider", state, provider.label, setting)


async def list_local_options(settings: Settings) -> list[ModelOption]:
    """What servers on this machine have, and what Ollama could fetch for it."""
    found = await find_local_models(settings)
    there = [
        ModelOption(
            f"{one.provider.name}:{one.name}",
            "local",
            "ready",
            f"At {one.provider.label}; {'uses tools' if one.tools else 'does not say that it uses tools'}.",
        )
        for models in found.values()
        for one in models
    ]
    names = {one.name for one in there}
    fitting = [one for one in list_recommended() if "ollama" in found and one.memory_gb < machine_memory_gb()]
    options = [ModelOption(OLLAMA + one.name, "local", "to pull", one.note) for one in fitting]
    return there + [one for one in options if one.name not in names]


def find_fetch(settings: Settings, registry: GgufRegistry, name: str) -> Callable[[Progress], Awaitable[object]]:
    """What fetches a model of the list, or, as in ollama:qwen3:4b, one that Ollama knows."""
    if name.startswith(OLLAMA):
        return partial(pull_with_ollama, settings, name.removeprefix(OLLAMA))
    return partial(download_model, registry, find_listed(registry, name))


def settings_for(name: str, registry: GgufRegistry) -> dict[str, str]:
    """The settings for a choice; an empty value removes the setting."""
    provider, colon, model = name.partition(":")
    if colon and not model:
        raise CallerMistake(f"{name} names no model.", hint=f"Put one behind the colon, or write just {provider}.")
    if name == "auto":
        return {"THINKER_LLM_PROVIDER": "", "EMBEDDED_MODEL": ""}
    if provider == "embedded":
        return {"THINKER_LLM_PROVIDER": "embedded", "EMBEDDED_MODEL": model}
    if provider in PROVIDERS:
        known = PROVIDERS[provider]
        return {"THINKER_LLM_PROVIDER": provider} | ({known.model_variable: model} if model else {})
    if name == PACKAGED:
        return {"THINKER_LLM_PROVIDER": "embedded", "EMBEDDED_MODEL": ""}
    found = find_listed(registry, name)
    if not registry.file_of(found).exists():
        raise CallerMistake(f"{name} is not fetched yet.", hint=f"Fetch it first: annabelle models pull {name}")
    return {"THINKER_LLM_PROVIDER": "embedded", "EMBEDDED_MODEL": name}


def find_listed(registry: GgufRegistry, name: str) -> GgufModel:
    """The model of that name, which is no provider's."""
    try:
        return registry.find(name)
    except NotFound as error:
        raise NotFound(
            f"{name!r} is neither a provider nor a model of the list.", hint="annabelle models shows what there is."
        ) from error


def build_model(name: str, url: str, sha256: str | None) -> GgufModel:
    """A model of the person's own choice."""
    try:
        return GgufModel(name=name, title=name, url=url, sha256=sha256.lower() if sha256 else None)
    except ValueError as error:
        raise ConfigMistake(
            "This can not be a model of the list: the name is short and lower case, the address begins with http, "
            "the checksum has 64 hexadecimal digits."
        ) from error


def find_key_owner(name: str) -> ModelProvider | None:
    """The provider that a choice names, if it needs a key."""
    provider = PROVIDERS.get(name.partition(":")[0])  # pyright: ignore[reportArgumentType, reportCallIssue]
    return provider if provider is not None and provider.needs_key else None


async def try_key(settings: Settings, provider: ModelProvider, key: str) -> str:
    """What came of asking the provider. A key that it does not accept is a ConfigMistake."""
    state = await check_key(settings, provider, key)
    if state == "wrong":
        raise ConfigMistake(f"{provider.label} does not accept this key. It was not kept.", hint="Copy it again.")
    if state == "good":
        return f"The key works; {provider.label} answers."
    return f"{provider.label} cannot be reached; the key is kept untested."


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Whether a model can answer, and why it is this one or why it cannot."""

    works: bool
    text: str


async def check_model(home: Home, settings: Settings, profile: AgentProfile | None = None) -> ModelCheck:
    """The model that answers with these settings. Its server is asked, without a call that costs."""
    try:
        selection = await ModelChooser(
            settings, home, profile or AgentProfile(agent_id=settings.thinker_agent_id)
        ).choose()
    except AnnabelleError as error:
        return ModelCheck(works=False, text=" ".join(filter(None, [error.message, error.hint])))
    trouble = await find_trouble(selection)
    if trouble is None:
        return ModelCheck(works=True, text=selection.choice.explanation)
    said = [trouble.message, trouble.hint, f"Then {selection.choice.explanation}"]
    return ModelCheck(works=False, text=" ".join(filter(None, said)))


async def describe_model(home: Home, settings: Settings, profile: AgentProfile | None = None) -> str:
    """The model that answers with these settings and why, or why it cannot."""
    return (await check_model(home, settings, profile)).text


async def check_choice(home: Home, settings: Settings, name: str) -> ModelCheck:
    """Whether the model could answer if it were chosen."""
    changes = {setting.lower(): value for setting, value in settings_for(name, GgufRegistry(home)).items()}
    return await check_model(home, settings.model_copy(update=changes))


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one thing uses, and the setting that says so."""

    purpose: str
    model: str
    setting: str


_RULES: Final = "none: rules alone decide"


async def list_uses(home: Home, settings: Settings, profiles: list[AgentProfile]) -> AsyncIterator[ModelUse]:
    """Which model is used for what."""
    for profile in profiles:
        chooser = ModelChooser(settings, home, profile)
        try:
            chat = await chooser.choose()
        except AnnabelleError as error:
            yield ModelUse(f"answers of {profile.agent_id}", error.message, "THINKER_LLM_PROVIDER")
            continue
        yield ModelUse(f"answers of {profile.agent_id}", _name(chat), "THINKER_LLM_PROVIDER")
        if profile is profiles[0]:
            yield ModelUse("summaries and facts", _name_for(chooser, chat, "summary"), "LLM_SUMMARY_MODEL")
            thinking = _name_for(chooser, chat, "thinking") if settings.llm_thinking_model else _RULES
            yield ModelUse("shortening of long conversations", thinking, "LLM_THINKING_MODEL")
            reading = _name_for(chooser, chat, "reader") if settings.llm_reader_model else _RULES
            yield ModelUse("reading your orders", reading, "LLM_READER_MODEL")
    yield ModelUse("when a model is down", settings.llm_fallbacks or "none", "LLM_FALLBACKS")
    vectors = f"{settings.embedding_provider}:{settings.embedding_model}".rstrip(":")
    yield ModelUse("search by meaning", vectors, "EMBEDDING_PROVIDER")
    judge = " ".join(filter(None, [settings.guardian_provider, settings.guardian_model]))
    yield ModelUse("scanning for attacks", judge if settings.guardian_enabled else "switched off", "GUARDIAN_PROVIDER")


def _name(selection: ModelSelection) -> str:
    return f"{selection.choice.provider}:{selection.choice.model}"


def _name_for(chooser: ModelChooser, chat: ModelSelection, purpose: Purpose) -> str:
    try:
        return _name(chooser.for_purpose(chat, purpose))
    except AnnabelleError as error:
        return error.message
