"""What a person orders, read strictly: a verb used as one, not denied, and not in a question about the world.

Permission follows from this, so a doubt is no order. `intent/ordered` reads the same words generously.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from annabelle.policy.intent.imperatives import IMPERATIVES, Imperatives
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.intent.own_words import own_words

_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+|\n+|;\s")
_BEFORE_A_VERB: Final = (
    r"(?:^\W*|[,;:(–—-]\s*|\b(?:and|then|please|also|just|now|you|or|plz|pls|ok|okay|hey|annabelle|to|kindly|next|"
    r"afterwards|finally|first)[,:]?\s+)"
)
_NO_OBJECT: Final = r"(?!\s+(?:from|of|by|about|sent|i got|that (?:came|arrived)|me\b|us\b|says?|is|are|was|were)\b)"
_ABOUT_THE_WORLD: Final = re.compile(
    r"\W*(?:what|what's|whats|who|who's|whose|why|how|when|where|which|did|does|has|is|are|was|were|should|"
    r"whether|was|wer|warum|wieso|wie|wann|wo|welche\w*|hat|haben|ist|sind|wurde\w*|qui|que|quoi|quel\w*|pourquoi|"
    r"comment|quand|est-ce|qué|quién|cómo|cuándo|cuál\w*|co|kto|jak|kiedy|dlaczego|czy)\b"
)
_ASKS: Final = re.compile(r"\W*(?:do|have|had)\b.*\?\W*$")
_ADDRESSED: Final = re.compile(
    r"\b(?:(?:can|could|would|will|won't) you|please|pls|kannst du|könntest du|können sie|würdest du|bitte|peux-tu|"
    r"pouvez-vous|pourrais-tu|s'il te plaît|s'il vous plaît|puedes|podrías|por favor|możesz|proszę)\b"
)
_DENIED: Final = re.compile(
    r"(?:\b(?:don't|dont|do not|never|without|not|no need to|needn't|shouldn't|can't|won't|nicht|kein\w*|ohne|nie|"
    r"niemals|ne|jamais|sans|no|sin|nunca|bez|nigdy)|\bn')\s*(?:\w+\s+){0,2}$"
)
_DENIED_AFTER: Final = re.compile(r"^\s*(?:\S+\s+){0,5}(?:nicht|pas|keine?\w*)\b")


_Verbs = dict[ActionKind, tuple[re.Pattern[str], ...]]


def _compiled(spoken: Imperatives) -> _Verbs:
    found: _Verbs = {}
    for kind, verbs in spoken.plain.items():
        found[kind] = (re.compile(rf"\b(?:{verbs})\b"),)
    for kind, verbs in spoken.placed.items():
        placed = re.compile(rf"{_BEFORE_A_VERB}(?P<verb>{verbs})\b{_NO_OBJECT}")
        found[kind] = (*found.get(kind, ()), placed)
    return found


_SPOKEN: Final = tuple((frozenset(spoken.marks.split()), _compiled(spoken)) for spoken in IMPERATIVES)


@lru_cache(maxsize=256)
def orders(message: str) -> frozenset[ActionKind]:
    """The kinds of action this message orders."""
    kinds: set[ActionKind] = set()
    text = own_words(message).replace("’", "'").lower()
    languages = _languages(text)
    for sentence in _SENTENCE.split(text):
        asks = _ABOUT_THE_WORLD.match(sentence) or _ASKS.match(sentence)
        if asks and not _ADDRESSED.search(sentence):
            continue
        for language in languages:
            kinds |= {kind for kind, verbs in language.items() if any(_meant(verb, sentence) for verb in verbs)}
    return frozenset(kinds)


def _languages(text: str) -> list[_Verbs]:
    """Those it may be written in: a verb of one language is a noun of another, as "note" is in French and English."""
    words = re.findall(r"\w+", text)
    marks = [sum(word in known for word in words) for known, _ in _SPOKEN]
    return [verbs for count, (_, verbs) in zip(marks, _SPOKEN, strict=True) if 2 * count >= max(marks)]


def _meant(verb: re.Pattern[str], sentence: str) -> bool:
    return any(
        not _DENIED.search(sentence[: _start(match)]) and not _DENIED_AFTER.match(sentence[match.end() :])
        for match in verb.finditer(sentence)
    )


def _start(match: re.Match[str]) -> int:
    return match.start("verb") if "verb" in match.re.groupindex else match.start()
