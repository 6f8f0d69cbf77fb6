"""Turns what a provider answers when it does not answer into the errors of `core.errors`; no key ever gets through."""

from __future__ import annotations

import json
from typing import cast

from annabelle.core.errors import (
    ProviderDown,
    ProviderFailed,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTrouble,
)
from annabelle.core.redact import MASK, Redactor
from annabelle.llm.backend import KeyRefused, ToolsNotSupported
from annabelle.llm.providers import Endpoint

_LONGEST_REASON = 300


def reason_in(body: object) -> tuple[str, str]:
    """Message and code of an error body, whichever of the usual shapes it has."""
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


def _masked(text: str, place: Endpoint) -> str:
    text = Redactor([place.key_text])(text)
    return text.replace(place.key_text, MASK) if place.key_text else text


def _at_start(label: str) -> str:
    return label[:1].upper() + label[1:]


def refused_status(
    status: int, body: object, place: Endpoint, model: str, retry_after: str | None = None
) -> ProviderTrouble:
    """The error for an HTTP status. Who acts next decides the class: a key, a wait, the provider, or nobody."""
    label, name = place.provider.label, place.provider.name
    begin = _at_start(label)
    text, code = reason_in(body)
    said = f" It says: {_masked(text, place)}" if text else ""
    lowered = text.lower()
    if status in (401, 403):
        # What it says is left out: several providers repeat a part of the key there.
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
        # The model wrote a tool call its provider could not read; the next try is a new throw of the dice.
        return ProviderFailed(f"{model} at {label} wrote a tool call that can not be read.{said}")
    if status == 404:
        hint = f"Check {place.provider.model_variable} and {place.provider.url_variable} in the settings."
        if name == "ollama":
            hint = f"Run: ollama pull {model}"
        return ProviderRefused(f"{begin} does not know {model or 'this address'}.{said}", hint=hint)
    if 400 <= status < 500:
        return ProviderRefused(f"{begin} refused the request (status {status}).{said}")
    return ProviderFailed(f"{begin} answered with status {status}.{said}")


def unreachable(place: Endpoint, detail: str) -> ProviderDown:
    hint = "Check the network."
    if place.provider.local and place.provider.name != "embedded":
        hint = f"Start {place.provider.label}, or check {place.provider.url_variable} in the settings."
    return ProviderDown(f"{_at_start(place.provider.label)} can not be reached ({_masked(detail, place)}).", hint=hint)


class AnswerLost(ProviderDown):
    """The request may have reached the provider, which may charge for an answer nobody got."""


def broken_off(place: Endpoint, detail: str) -> AnswerLost:
    return AnswerLost(f"The answer of {place.provider.label} broke off ({_masked(detail, place)}).")


def timed_out(place: Endpoint, seconds: float) -> AnswerLost:
    return AnswerLost(
        f"{_at_start(place.provider.label)} did not answer within {seconds:g} s.",
        hint="Raise LLM_TIMEOUT_SECONDS if the model needs longer.",
    )
