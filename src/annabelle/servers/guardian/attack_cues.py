"""Finds known attack phrases. None decides alone: each is a cue for the classifier.

The phrases are in language/*/guardian.toml. Related languages list each other's nouns, because attacks mix them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annabelle.core.trust import ThreatType
from annabelle.language.lexicon import Lexicon, join_phrases, load_lexicon

FAMILIES: Final[tuple[tuple[str, ThreatType], ...]] = (
    ("override", "prompt_injection"),
    ("new_orders", "prompt_injection"),
    ("new_self", "jailbreak"),
    ("no_rules", "jailbreak"),
    ("secrecy", "prompt_injection"),
    ("to_machine", "prompt_injection"),
    ("role_marks", "prompt_injection"),
    ("before_work", "prompt_injection"),
    ("tool_order", "prompt_injection"),
    ("show_prompt", "data_exfiltration"),
    ("say_only", "prompt_injection"),
    ("steal_secret", "data_exfiltration"),
    ("send_there", "data_exfiltration"),
    ("my_account", "prompt_injection"),
    ("for_user", "social_engineering"),
    ("pressure", "social_engineering"),
    ("more_rights", "privilege_escalation"),
    ("run_this", "code_execution"),
    ("harm", "harmful_content"),
    ("decode_this", "prompt_injection"),
    ("override_foreign", "prompt_injection"),
    ("new_self_foreign", "jailbreak"),
    ("send_foreign", "data_exfiltration"),
    ("secrecy_foreign", "prompt_injection"),
    ("leave_user", "prompt_injection"),
    ("no_check", "social_engineering"),
    ("filled_link", "data_exfiltration"),
)
"""In the order of the trained weights: adding or moving a family requires a new training."""
CUES: Final = tuple(name for name, _ in FAMILIES)
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CuePattern:
    """A family of phrases. `expression` is tried only if the text contains one of `words` or `signs`."""

    kind: ThreatType
    words: frozenset[str]
    signs: tuple[str, ...]
    expression: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase that was found, with the index of its family and its position."""

    family: int
    kind: ThreatType
    start: int
    words: str


def compile_families(lexicon: Lexicon) -> tuple[CuePattern, ...]:
    """Compile the families in order, for lower-case text."""
    return tuple(
        CuePattern(
            kind,
            lexicon.words(f"{name}.words"),
            tuple(dict.fromkeys(lexicon.phrases(f"{name}.signs"))),
            _compile_phrases(lexicon.phrases(f"{name}.phrases")),
        )
        for name, kind in FAMILIES
    )


def _compile_phrases(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Join phrases to one expression. Those that begin at a word boundary share it, for speed."""
    bounded = [phrase.removeprefix(r"\b") for phrase in phrases if phrase.startswith(r"\b")]
    others = [phrase for phrase in phrases if not phrase.startswith(r"\b")]
    return re.compile(join_phrases([rf"\b{join_phrases(bounded)}", *others]))


# Compiled on import, so that no scan has to wait.
PATTERNS: Final = compile_families(load_lexicon("guardian"))
_HINTS: Final = re.compile(load_lexicon("guardian").alternation("hints"))


def find_cues(text: str, patterns: tuple[CuePattern, ...] = PATTERNS) -> list[Cue]:
    """Find the first match of each family."""
    low = text.lower()
    words = set(_WORD.findall(low))
    found: list[Cue] = []
    for family, pattern in enumerate(patterns):
        if not pattern.words.isdisjoint(words) or any(sign in low for sign in pattern.signs):
            match = pattern.expression.search(low)
            if match is not None:
                found.append(Cue(family, pattern.kind, match.start(), text[match.start() : match.end()]))
    return found


def find_hints(text: str) -> list[int]:
    """Positions of words that are common in attacks, to choose windows by."""
    return [found.start() for found in _HINTS.finditer(text.lower())]
