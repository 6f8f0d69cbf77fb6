"""Parses sentences that state a standing rule: "ask me before …", "never …" (language/*/rules.toml).

Each pattern captures in `rest` what the rule is about. Orders for the moment ("don't send it yet") look similar, so
only sentences with always, never or from now on are rules by themselves. Others count if given as a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from annabelle.language.lexicon import Lexicon, load_lexicon

_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class RulePhrase:
    """What a sentence restricts, and how. `standing`: its own words say that it is permanent."""

    kind: Literal["ask", "never"]
    rest: str
    standing: bool


class _PhrasePatterns:
    def __init__(self, lexicon: Lexicon) -> None:
        def whole_sentences(group: str) -> tuple[re.Pattern[str], ...]:
            return lexicon.patterns(group, r"{}\W*", re.IGNORECASE)

        def compile_group(template: str, group: str) -> re.Pattern[str]:
            return re.compile(template.replace("{}", lexicon.alternation(group)), re.IGNORECASE)

        self.ask_first, self.hands_off = whole_sentences("ask_first"), whole_sentences("hands_off")
        self.never, self.not_now = whole_sentences("never"), whole_sentences("not")
        self.lead = compile_group(r"[\s\W]*(?P<lead>(?:{}\b[\s,:!.–-]*)*)", "lead")
        self.from_now_on = compile_group("{}", "from_now_on")
        self.of_oneself = compile_group(r"\W*{}\b", "of_oneself")
        self.at_hand = lexicon.whole_words("at_hand", re.IGNORECASE)
        self.reason = compile_group(r",? {}\b.*$", "reason")
        # A fast filter: every message is checked, and few sentences contain one of these.
        self.worth_a_look = compile_group(rf"\b{lexicon.alternation('worth_a_look')}\b|{{}}", "clitics")


@cache
def _patterns() -> _PhrasePatterns:
    return _PhrasePatterns(load_lexicon("rules"))


def parse_phrase(sentence: str) -> RulePhrase | None:
    patterns = _patterns()
    text = " ".join(sentence.split(maxsplit=_LONGEST)).replace("’", "'")
    if len(text) > _LONGEST or text.endswith("?") or not patterns.worth_a_look.search(text):
        return None
    text = patterns.reason.sub("", text)
    lead = patterns.lead.match(text)
    for_good = lead is not None and patterns.from_now_on.search(lead["lead"]) is not None
    text = text if lead is None else text[lead.end() :]
    if patterns.of_oneself.match(text):
        return None
    return next(_readings(text, patterns, for_good=for_good), None)


def strip_lead(text: str) -> str:
    """The text without what may stand before a rule or an order: `and just`."""
    lead = _patterns().lead.match(text)
    return text if lead is None else text[lead.end() :]


def _readings(text: str, patterns: _PhrasePatterns, *, for_good: bool) -> Iterator[RulePhrase]:
    for pattern in patterns.ask_first:
        if match := pattern.fullmatch(text):
            yield RulePhrase("ask", match["rest"], standing=not patterns.at_hand.search(match["rest"]))
    for pattern in patterns.hands_off:
        if match := pattern.fullmatch(text):
            yield RulePhrase("never", f"touch {match['rest']}", standing=for_good)
    for forms, standing in ((patterns.never, True), (patterns.not_now, for_good)):
        for pattern in forms:
            if match := pattern.fullmatch(text):
                yield RulePhrase(
                    "never", match["rest"], standing=standing and not patterns.at_hand.search(match["rest"])
                )
