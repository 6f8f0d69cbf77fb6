"""Who gets something by an order: those right behind its verb or behind `to`, not those it speaks of (POL-04)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.person_words import PersonWords, normalize_text

_WHOSE_IT_IS: Final = re.compile(
    r"\b(?:(?:mail|e-?mail|write|message|contact|ask|to|tell) them|(?:write to|contact|ask|(?:mail|message|note|line|"
    r"letter|inquiry|request) to) the \w+|(?:at|"
    r"to) the (?:e-?mail |mail )?address (?:given|there|on|from|it|they)|an sie|ihnen|frag\w* das \w+|leur|à eux|"
    r"a ellos|pregunta\w* al \w+|do nich)\b"
)
_SOMEBODY: Final = re.compile(
    r"\b(?:to|à) (?!(?:them|the|eux|ask|inquire|enquire|see|check|know|find|consult|book|have|get|be|say|tell|let|"
    r"make|reserve|confirm|request|order|write|cancel|change)\b)[^\W\d]"
)
_TO_BE_SAID: Final = re.compile(r"\b(?:whether|if|that|how|why|when|dass|ob|que|si|że|czy)\b[^\n]*")
_NOT_THEM: Final = re.compile(
    r"\b(?:not|don't|never|except|instead of|rather than|nicht|statt|anstatt|pas|au lieu de|no|en vez de|nie|"
    r"zamiast)\b(?: tell| to| an| à| a| do)? [\w.@'-]+(?: (?:to|an|à|a|do) [\w.@'-]+)?"
)
_NAME: Final = r"[\w.@'+-]+(?: (?!(?:and|und|et|y|i|to|an|à|a|do|the|about|of|with|for|on|in)\b)[\w.@'+-]+)?"
_NAMES: Final = rf"{_NAME}(?:(?:,| and| und| et| y| i| &) {_NAME}){{0,8}}"
_VERB: Final = r"^\W*[\w'-]+(?: (?:back|up|out|off|mail|email|an e?-?mail|a mail|a message|a note|a line))?(?: to)?"
_TO: Final = (
    r"\b(?:to|cc|bcc|copy|an|à|a|do|tell|ask|let|invite|invit\w+|remind|inform|notify|confirm with|check with|"
    r"touch with)"
)
_BEHIND: Final = re.compile(rf"(?:{_VERB}|{_TO}) (?=({_NAMES}))")
# A meeting is with those who come; what is only told about may be with anybody.
_OR_WITH: Final = re.compile(rf"(?:{_VERB}|{_TO}|\b(?:with|mit|avec|con|z|w)) (?=({_NAMES}))")
_TO_ME: Final = re.compile(r"\b(?:send|mail|e-?mail|write|give|tell|forward|text|message|show) (?:me|us)\b(?!.* to \w)")
_ALL_THERE: Final = re.compile(
    r"\b(?:everyone|everybody|all|attendees|participants|guests|invitees|alle\w*|teilnehmer\w*|tous|toutes|todos|"
    r"todas|participantes|wszyst\w+|uczestnik\w*)\b"
)
# Whose words or things are spoken of is not who gets them: "tell Alice what Bob wrote", "forward Bob's mail to Alice".
_SOURCE: Final = re.compile(
    r"\b(?:what|which|that|whatever|was|ce que|lo que|co) [\w.@-]+(?: [\w.@-]+)? (?:wrote|writes|said|says|sent|asks|"
    r"asked|wants|wanted|thinks|needs|schrieb|schreibt|sagte?|will|a (?:écrit|dit)|escribió|dice|dijo|napisał|chce)\b|"
    r"\b[\w.-]+'s\b|\b(?:from|by|von|vom|od) [\w.@-]+"
)


def receiving(orders: Iterable[str], kinds: Sequence[ActionKind]) -> PersonWords:
    """What of orders says who gets something: right behind the verb, or behind `to`. Whoever else stands there is
    spoken of, or has written what it is about."""
    behind = _OR_WITH if "schedule" in kinds else _BEHIND
    texts = (_TO_BE_SAID.sub(" ", _NOT_THEM.sub(" ", _SOURCE.sub(" ", normalize_text(order)))) for order in orders)
    return PersonWords(match[1] for text in texts for match in behind.finditer(text))


def is_for_the_person(order: str) -> bool:
    """`Send me a summary of the lunch with Bob` goes to nobody else."""
    return _TO_ME.search(order) is not None


def is_for_all_of_them(order: str) -> bool:
    """`Everyone in the team meeting`."""
    return _ALL_THERE.search(order) is not None


def is_for_whose_page_it_is(order: str) -> bool:
    """`Look at the hotel's page and mail them`, and to nobody else."""
    return _WHOSE_IT_IS.search(order) is not None and _SOMEBODY.search(order) is None
