"""The interface of model backends, and errors made from providers' responses. Errors never contain a key."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderRateLimited, ProviderRefused, ProviderTrouble
from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.llm.providers import Endpoint
from annabelle.llm.types import Purpose, TextDelta, ThinkDelta, ToolChoice

if TYPE_CHECKING:  # a command that only needs the errors does not wait seconds for the import
    from pydantic_ai.messages import ModelMessage, ModelResponse


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The JSON schema of the answer, if the server can enforce it."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    model: str
    messages: list[ModelMessage]
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    tool_choice: ToolChoice = "auto"
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 90
    answer_schema: AnswerSchema | None = None
    purpose: Purpose = "chat"


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """The whole response; `cost_usd` only if the provider states its charge."""

    response: ModelResponse
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AnswerStarted:
    """The provider has begun to answer and may charge from here on."""


BackendEvent = TextDelta | ThinkDelta | AnswerStarted | BackendAnswer


class Backend(Protocol):
    """Asks a model. Raises only the provider errors of `core.errors` on purpose."""

    def stream(self, ask: ModelQuestion) -> AsyncGenerator[BackendEvent]: ...

    async def close(self) -> None: ...


class ToolsNotSupported(ProviderRefused):
    """The model does not support tools; it is asked again in another way (LLM-08)."""


class KeyRefused(ProviderRefused):
    """The provider rejects the key or account; another provider may answer instead (LLM-06)."""


_LONGEST_REASON = 300


def parse_error_body(body: object) -> tuple[str, str]:
    """Returns message and code of an error body in any of the usual formats."""
    error: object = body
    if isinstance(body, str):
        try:
            error = json.loads(body)
        except ValueError:
            return body.strip()[:_LONGEST_REASON], ""
    if isinstance(error, dict):
        outer = cast("dict[str, object]", error)
        inner = outer.get("error", outer)
        if isinstance(inner, dict):
            fields = cast("dict[str, object]", inner)
            code = fields.get("code") or fields.get("type") or ""
            return str(fields.get("message") or "")[:_LONGEST_REASON], str(code)
        return str(inner)[:_LONGEST_REASON], ""
    return "", ""


def _mask_key(text: str, place: Endpoint) -> str:
    text = Redactor([place.key_text])(text)
    return text.replace(place.key_text, MASK) if place.key_text else text


def _capitalize(label: str) -> str:
    return label[:1].upper() + label[1:]


def status_error(
    status: int, body: object, place: Endpoint, model: str, retry_after: str | None = None
) -> ProviderTrouble:
    """Makes the error for an HTTP status. Its class says who acts next."""
    label, name = place.provider.label, place.provider.name
    begin = _capitalize(label)
    text, code = parse_error_body(body)
    said = f" It says: {_mask_key(text, place)}" if text else ""
    lowered = text.lower()
    if status in (401, 403):
        # Leaves out the provider's message, which may repeat part of the key.
        return KeyRefused(
            f"{begin} refused the API key (status {status}).",
            hint=f"Check {place.provider.key_variable} in the settings, and that the key may use {model}.",
            field=place.provider.key_variable,
        )
    if status == 402 or "insufficient_quota" in code or "credit balance is too low" in lowered:
        return KeyRefused(f"The credit at {label} is used up.{said}", hint=f"Top it up at {label}.")
    if status == 429:
        wait = f" It asks to wait {retry_after} s." if retry_after else ""
        return ProviderRateLimited(f"{begin} is limiting requests.{wait}", hint="Send the message again in a while.")
    if status == 408 or status >= 500:
        return ProviderDown(f"{begin} has a problem of its own (status {status}).{said}")
    if "support tool" in lowered or "tools are not supported" in lowered or "tool use is not supported" in lowered:
        return ToolsNotSupported(f"{model} at {label} can not be given tools.{said}")
    if code == "tool_use_failed":
        # The model wrote an unreadable tool call; another try may succeed.
        return ProviderFailed(f"{model} at {label} wrote a tool call that can not be read.{said}")
    if status == 404:
        hint = f"Check {place.provider.model_variable} and {place.provider.url_variable} in the settings."
        if name == "ollama":
            hint = f"Run: ollama pull {model}"
        return ProviderRefused(f"{begin} does not know {model or 'this address'}.{said}", hint=hint)
    if 400 <= status < 500:
        return ProviderRefused(f"{begin} refused the request (status {status}).{said}")
    return ProviderFailed(f"{begin} answered with status {status}.{said}")


def unreachable_error(place: Endpoint, detail: str) -> ProviderDown:
    hint = "Check the network." if place.is_official else f"Check the network, and {place.provider.url_variable}."
    if place.provider.local and place.provider.name != "embedded":
        hint = f"Start {place.provider.label}, or check {place.provider.url_variable} in the settings."
    return ProviderDown(
        f"{_capitalize(place.provider.label)} can not be reached ({_mask_key(detail, place)}).", hint=hint
    )


class AnswerLost(ProviderDown):
    """The request may have arrived, so the provider may charge for an answer that was lost."""


def broken_stream_error(place: Endpoint, detail: str) -> AnswerLost:
    return AnswerLost(f"The answer of {place.provider.label} broke off ({_mask_key(detail, place)}).")


def timeout_error(place: Endpoint, seconds: float) -> AnswerLost:
    return AnswerLost(
        f"{_capitalize(place.provider.label)} did not answer within {seconds:g} s.",
        hint="Raise LLM_TIMEOUT_SECONDS if the model needs longer.",
    )
