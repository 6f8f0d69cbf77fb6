"""Estimates tokens without a tokenizer, by model family and script, corrected by what providers report (CMP-05)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolCallPart

from annabelle.core.tools import ToolSpec

TokenizerFamily = Literal["openai", "anthropic", "llama", "gemini"]

MOST_TOKENS: Final = 1_000_000_000
"""No model reads or writes more in one call: a higher count is a mistake."""

_PER_MESSAGE = 4
_PER_IMAGE_OR_FILE = 1000
_LEARNING_RATE = 0.3
_MOST_CORRECTION = 2.0

# Chinese, Japanese, Korean: about a token per character. Cyrillic and Greek have longer tokens.
_EASTERN = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)
_CYRILLIC = re.compile("[\u0370-\u052f]+")
_LATIN = re.compile("[\x00-\u024f]+")


@dataclass(frozen=True, slots=True)
class _CharacterRates:
    """Characters per token, by script; `other` is for scripts that tokenizers rarely know well."""

    latin: float
    cyrillic: float
    eastern: float
    other: float


_RATES: Final[dict[TokenizerFamily, _CharacterRates]] = {
    "openai": _CharacterRates(4.0, 3.0, 1.2, 1.6),
    "anthropic": _CharacterRates(3.6, 2.2, 0.9, 1.2),
    "llama": _CharacterRates(3.9, 2.5, 1.2, 1.3),
    "gemini": _CharacterRates(4.0, 3.0, 1.5, 2.0),
}
_NAMES: Final[tuple[tuple[str, TokenizerFamily], ...]] = (
    ("claude", "anthropic"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("gemma", "gemini"),
    ("gpt-oss", "openai"),
    ("llama", "llama"),
    ("qwen", "llama"),
    ("mistral", "llama"),
    ("mixtral", "llama"),
    ("deepseek", "llama"),
    ("kimi", "llama"),
    ("phi", "llama"),
)


def family_of(model: str) -> TokenizerFamily:
    """Returns the tokenizer family for a model's name; OpenAI's by default."""
    name = model.lower()
    for part, family in _NAMES:
        if part in name:
            return family
    return "openai"


def estimate_text_tokens(text: str, model: str = "") -> int:
    return round(_estimate_text(text, _RATES[family_of(model)]) + 0.4999) if text else 0


def estimate_tokens(messages: Sequence[ModelMessage], tools: Sequence[ToolSpec] = (), model: str = "") -> int:
    rates = _RATES[family_of(model)]
    tokens = sum(_estimate_text(f"{tool.name}{tool.description}{tool.input_schema}", rates) for tool in tools)
    extra = 0
    for message in messages:
        extra += _PER_MESSAGE
        if isinstance(message, ModelRequest) and message.instructions:
            tokens += _estimate_text(message.instructions, rates)
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                tokens += _estimate_text(f"{part.tool_name}{part.args or ''}", rates)
                continue
            content: object = getattr(part, "content", "")
            if isinstance(content, str):
                tokens += _estimate_text(content, rates)
            elif isinstance(content, list | tuple):
                for item in content:  # pyright: ignore[reportUnknownVariableType]
                    if isinstance(item, str):
                        tokens += _estimate_text(item, rates)
                    else:
                        extra += _PER_IMAGE_OR_FILE
            elif content is not None:
                tokens += _estimate_text(str(content), rates)
    return int(tokens) + extra


class TokenCounter:
    """Estimates for one thinker, corrected by what providers report."""

    def __init__(self) -> None:
        self._ratios: dict[str, float] = {}

    def ratio(self, model: str) -> float:
        """Reported by estimated tokens of this model, 1 if unknown."""
        return self._ratios.get(model, 1.0)

    def count(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec] = (), model: str = "") -> int:
        return round(estimate_tokens(messages, tools, model) * self.ratio(model))

    def count_text(self, text: str, model: str = "") -> int:
        return round(estimate_text_tokens(text, model) * self.ratio(model))

    def learn(self, model: str, estimated: int, reported: int) -> None:
        """Learns from one call: `estimated` by `estimate_tokens`, `reported` by the provider."""
        if estimated <= 0 or reported <= 0:
            return
        seen = min(_MOST_CORRECTION, max(1 / _MOST_CORRECTION, reported / estimated))
        # The first report replaces a guess; later ones adjust a known ratio.
        known = self._ratios.get(model)
        self._ratios[model] = seen if known is None else known + _LEARNING_RATE * (seen - known)


def _estimate_text(text: str, rates: _CharacterRates) -> float:
    if text.isascii():
        return len(text) / rates.latin
    eastern = sum(len(run) for run in _EASTERN.findall(text))
    cyrillic = sum(len(run) for run in _CYRILLIC.findall(text))
    latin = sum(len(run) for run in _LATIN.findall(text))
    other = len(text) - eastern - cyrillic - latin
    return latin / rates.latin + cyrillic / rates.cyrillic + eastern / rates.eastern + other / rates.other
