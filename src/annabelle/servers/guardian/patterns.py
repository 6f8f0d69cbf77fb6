"""Phrases that hardly ever stand in ordinary content: each kind of threat in the languages people write mail in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.servers.guardian.threats import ThreatType


@dataclass(frozen=True, slots=True)
class Pattern:
    """One family of phrases. `words`: one of them stands in every text that can match, which is quick to see."""

    kind: ThreatType
    weight: float
    words: tuple[str, ...]
    expression: re.Pattern[str]


def _pattern(kind: ThreatType, weight: float, words: str, expression: str) -> Pattern:
    return Pattern(kind, weight, tuple(words.split()), re.compile(expression, re.IGNORECASE))


_GAP = r"[\s\W]{1,6}(?:[\w’']+[\s\W]{1,6}){0,4}?"

PATTERNS: Final[tuple[Pattern, ...]] = (
    _pattern(
        "prompt_injection",
        0.95,
        "ignore disregard forget override bypass neglect overlook skip drop",
        rf"\b(?:ignor\w*|disregard\w*|forget\w*|overrid\w*|bypass\w*|neglect\w*|overlook\w*|skip|drop){_GAP}"
        r"(?:previous|prior|above|earlier|preceding|foregoing|former|initial|original|system|existing|past|before)"
        rf"(?:{_GAP}(?:instruct\w*|prompts?|directions?|rules?|commands?|orders?|guidelines?|messages?|context|tasks?|"
        r"directives?|training|constraints?))",
    ),
    _pattern(
        "data_exfiltration",
        0.9,
        "send forward email mail post upload transmit leak exfiltrate share",
        r"\b(?:send|forward|e-?mail|post|upload|transmit|leak|exfiltrate|share)\b.{0,80}?"
        r"\b(?:passwords?|passcodes?|api[ _-]?keys?|secrets?|credentials?|tokens?|private keys?|ssh keys?|cookies)\b"
        r".{0,60}?\bto\b",
    ),
    _pattern(
        "jailbreak",
        0.9,
        "dan jailbreak jailbroken unfiltered unrestricted developer",
        r"\b(?:do anything now|jailbr(?:eak|oken)|developer mode|DAN mode|un(?:filtered|restricted|censored)\b"
        r".{0,60}\b(?:ai|assistant|model|persona|chatbot|responses?))\b",
    ),
)
