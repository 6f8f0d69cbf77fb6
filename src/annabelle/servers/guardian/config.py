"""Configuration of the guardian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from annabelle.core.errors import ConfigMistake
from annabelle.core.settings import Settings
from annabelle.servers.kit import deferred_module, own_settings

if TYPE_CHECKING:
    from annabelle.llm import providers
    from annabelle.llm.providers import Endpoint
else:
    providers = deferred_module("annabelle.llm.providers")  # needed only for a guard model

ModelKind = Literal["granite", "safeguard"]

_USUAL_MODEL: Final[dict[ModelKind, str]] = {
    "granite": "ollama:ibm/granite3.3-guardian:8b",
    "safeguard": "groq:openai/gpt-oss-safeguard-20b",
}


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Guard model to ask. With `only_in_doubt`, only if the embedded scanner is unsure."""

    kind: ModelKind
    endpoint: Endpoint
    model: str
    only_in_doubt: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class GuardianConfig:
    """Guard model, and the scores from which content is blocked or labelled."""

    block_score: float = 0.9
    label_score: float = 0.5
    model: ModelConfig | None = None

    @classmethod
    def from_environment(cls) -> GuardianConfig:
        settings = own_settings()
        if settings.guardian_label_score > settings.guardian_block_score:
            raise ConfigMistake(
                "GUARDIAN_LABEL_SCORE is above GUARDIAN_BLOCK_SCORE.",
                hint="Content is labelled from a lower score on than it is blocked.",
                field="GUARDIAN_LABEL_SCORE",
            )
        return cls(settings.guardian_block_score, settings.guardian_label_score, _model(settings))


def _model(settings: Settings) -> ModelConfig | None:
    first, _, second = settings.guardian_provider.rpartition("+")
    kind = next((one for one in get_args(ModelKind) if one == second), None)
    if kind is None:
        return None
    named, _, model = (settings.guardian_model or _USUAL_MODEL[kind]).partition(":")
    provider = next(
        (one for name, one in providers.PROVIDERS.items() if name == named and one.protocol == "openai"), None
    )
    if provider is None or not model or named == "embedded":
        raise ConfigMistake(
            "GUARDIAN_MODEL does not name a provider and a model.",
            hint="Write both, as in ollama:granite3.3-guardian or groq:openai/gpt-oss-safeguard-20b.",
            field="GUARDIAN_MODEL",
        )
    endpoint = providers.make_endpoint(settings, provider)
    if provider.needs_key and endpoint.key is None:
        raise ConfigMistake(
            f"GUARDIAN_PROVIDER asks {provider.label}, which needs a key.",
            hint=f"Set {provider.key_variable}, or GUARDIAN_PROVIDER=embedded to do without.",
            field=provider.key_variable,
        )
    return ModelConfig(kind, endpoint, model, first == "embedded", settings.guardian_model_timeout_seconds)
