"""The kinds of action a message may ask for, read generously: a verb or a noun of it anywhere is enough."""

from __future__ import annotations

import re
from typing import Final

from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.intent.verbs import ASKED

QUESTION: Final = re.compile(
    r"\W*(?:what|who|whose|why|how|when|where|which|explain|describe|was|wer|warum|wie|wann|wo|qui|pourquoi|comment|"
    r"qué|quién|cómo|co|kto|jak|dlaczego)\b[^.!?\n]*[?.!]*\s*"
)
_ASKED: Final[tuple[dict[ActionKind, re.Pattern[str]], ...]] = tuple(
    {kind: re.compile(rf"\b(?:{words})\b") for kind, words in verbs.items()} for verbs in ASKED
)


def ordered(asked: str) -> frozenset[ActionKind]:
    """The kinds of action a person's message may ask for."""
    text = asked.lower()
    if QUESTION.fullmatch(text):
        return frozenset({"search"})
    kinds: set[ActionKind] = set()
    for language in _ASKED:
        kinds |= {kind for kind, verbs in language.items() if verbs.search(text)}
    return frozenset(kinds)
