"""Sentences that were meant as a rule and are none: passed over in silence they would seem to hold (TRU-05)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.grammar import SENTENCE
from annabelle.policy.intent.own_words import own_words
from annabelle.policy.rules.compile import NotUnderstood, compile_rule, stated_in
from annabelle.policy.rules.lexicon import DEEDS, NOT_A_NAME, THINGS, Deed
from annabelle.policy.rules.phrases import Phrase, phrase_of

_SENTENCE: Final = re.compile(SENTENCE.pattern, re.IGNORECASE)
_MOST: Final = 3
"""In one message; whoever pastes a page of rules need not hear of each."""
_LONGEST: Final = 300
# "Always ask me when …": it says so itself, though not in a form that is read.
_ALWAYS_ASK: Final = re.compile(
    r"^\W*(?:(?:please|bitte|por favor|proszę|you (?:must|should))\W+)?"
    r"(?:always (?:\w+ )?(?:ask|check with|confirm with|consult) me|(?:ask|check with|confirm with|consult) me always|"
    r"(?:frag|frage) mich (?:bitte )?immer|demande-moi toujours|(?:siempre pregúntame|pregúntame siempre)|"
    r"(?:zawsze pytaj|pytaj(?: mnie)? zawsze))\b",
    re.IGNORECASE,
)
_FOR_GOOD: Final = re.compile(
    r"\b(?:always|immer|stets|toujours|siempre|zawsze|before you|bevor du|avant que tu|antes de que|zanim)\b",
    re.IGNORECASE,
)
# What stands before the verb of an order.
_NEVER: Final = re.compile(
    r"(?:\W|ne\b|jamais\b|nigdy(?: więcej)?\b|(?P<nie>nie(?:mals)?\b|auf keinen fall\b|unter keinen umständen\b))*",
    re.IGNORECASE,
)
_PAST: Final = re.compile(r"(?:sent|spent|paid|bought|ran|wrote|\w+ed|\w+[łl](?:em|am))\b", re.IGNORECASE)
_AT_A_COMPUTER: Final[tuple[Deed, ...]] = ("delete", "send", "download")
"""Deeds that are hardly ever spoken of otherwise. Ovens are opened too, and miles are run."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The sentence, and what about it can not be held."""

    words: str
    why: str


def missed_in(message: str) -> list[Missed]:
    """What a message states as a rule for good, about something that Annabelle does, and was not understood."""
    found: list[Missed] = []
    for missed in _looked_at(own_words(message)):
        found.append(missed)
        if len(found) == _MOST:
            break
    return found


def _looked_at(text: str) -> Iterator[Missed]:
    for sentence in _SENTENCE.split(text):
        words = _beside_rules(sentence)
        if not words or len(words) > _LONGEST or words.endswith("?"):
            continue
        phrase = phrase_of(words)
        if phrase is None:
            if _ALWAYS_ASK.search(words) and _deeds(words):
                yield Missed(words, "This is not of the form “ask me before …” or “never …”.")
            continue
        if not phrase.standing or not _meant(words, phrase):
            continue
        try:
            compile_rule(words)
        except NotUnderstood as trouble:
            yield Missed(words, str(trouble))


def _beside_rules(sentence: str) -> str:
    """What is left of it beside the rules it states: “from 2024. Never …” is one sentence, for a date may stand so."""
    for rule in stated_in(sentence):
        sentence = sentence.replace(rule.words, "")
    return sentence.strip()


def _meant(words: str, phrase: Phrase) -> bool:
    """Whether it is an order about something Annabelle could do: who never eats meat gives none."""
    if phrase.kind == "ask":
        return bool(_deeds(words) or _FOR_GOOD.search(words))
    before = _NEVER.match(phrase.rest)
    order = phrase.rest[before.end() :] if before is not None else phrase.rest
    first = [deed for deed, pattern in DEEDS.items() if pattern.match(order)]
    if _PAST.match(order) or not (first or (before is not None and before["nie"] and _deeds(order))):
        return False
    return bool(set(_deeds(order)) & set(_AT_A_COMPUTER)) or _about_something(order)


def _deeds(words: str) -> list[Deed]:
    return [deed for deed, pattern in DEEDS.items() if pattern.search(words)]


def _about_something(words: str) -> bool:
    """Whether it names a kind of thing Annabelle works with, or people a rule could not know."""
    if any(pattern.search(words) for pattern in THINGS.values()):
        return True
    return any(word in NOT_A_NAME for word in re.findall(r"\w+", words.lower()))
