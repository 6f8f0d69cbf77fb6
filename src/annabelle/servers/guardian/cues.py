"""Which families of phrases stand in a piece of text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.core.trust import ThreatType
from annabelle.servers.guardian.patterns import PATTERNS

_WORD: Final = re.compile(r"\w+")
_TELLING: Final = re.compile(
    r"ignor|disregard|forget|overrid|instruction|prompt|assistant|password|secret|from now on|you are now|do not tell|"
    r"don't tell|without asking|system:|admin|jailb|anweisung|instrucc|instruç|istruzion|instrukcj|polece|instructie|"
    r"инструкц|парол|passw|passe|contrase|senha|hasł|指令|指示|密码|パスワード|التعليمات|كلم|지시|비밀번호|无视|忽略|無視"
)
CUES: Final = tuple(pattern.name for pattern in PATTERNS)


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase that was found: the number of its family, its kind, and where it is."""

    family: int
    kind: ThreatType
    start: int
    words: str


def read_cues(text: str) -> list[Cue]:
    """At most one of each family, the first."""
    low = text.lower()
    words = set(_WORD.findall(low))
    found: list[Cue] = []
    for family, pattern in enumerate(PATTERNS):
        if not pattern.words.isdisjoint(words) or any(sign in low for sign in pattern.signs):
            match = pattern.expression.search(low)
            if match is not None:
                found.append(Cue(family, pattern.kind, match.start(), text[match.start() : match.end()]))
    return found


def telling_places(text: str) -> list[int]:
    """Where words stand that attacks are made of: a hint where to look, not a verdict."""
    return [found.start() for found in _TELLING.finditer(text.lower())]
