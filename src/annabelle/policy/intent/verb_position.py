"""The verbs of a language, and whether one stands where an order does.

The verb is looked for first, and only where there is one is what stands before it read: most words of a long text are
none, and a text of any length costs no more than its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.english import ENGLISH
from annabelle.policy.intent.forms import folded
from annabelle.policy.intent.french import FRENCH
from annabelle.policy.intent.german import GERMAN
from annabelle.policy.intent.grammar import BEFORE_A_VERB, CONDITION_BEGINS, IN_SOMETHING, LOOKS, NO_OBJECT
from annabelle.policy.intent.polish import POLISH
from annabelle.policy.intent.spanish import SPANISH

IMPERATIVES: Final = (ENGLISH, GERMAN, FRENCH, SPANISH, POLISH)


_ENGLISH: Final = 0
# What an order may stand behind is no longer than this, and neither is a condition.
_BEFORE: Final = 40
_CONDITION: Final = 160

# Ordered only where an order stands: "nobody may delete it" has the verb, too, and "is there an update" the noun.
_PLACED: Final[frozenset[ActionKind]] = frozenset({"send", "delete", "pay", "run", "create", "update", "transfer"})

_DONE_THERE: Final[frozenset[ActionKind]] = frozenset({"create", "update"})


@dataclass(frozen=True, slots=True)
class VerbPlace:
    """What an order stands behind, as expressions that end where its verb begins."""

    near: re.Pattern[str]
    condition: re.Pattern[str]
    in_something: re.Pattern[str] | None = None

    def ends_at(self, start: int, text: str) -> bool:
        if self.near.search(text, max(0, start - _BEFORE), start):
            return True
        if self.in_something is not None and start < _CONDITION and self.in_something.match(text, 0, start):
            return True
        begins = [match.start() for match in CONDITION_BEGINS.finditer(text, max(0, start - _CONDITION), start)]
        return bool(begins) and self.condition.match(text, begins[-1], start) is not None


_BEHIND_ITS_OBJECT: Final = VerbPlace(
    re.compile(
        r"^\W*(?:(?!(?:ich|er|sie|wir|du|man|es|wer|was|wie|ja|on|ona|my|ty|kto|co|jak|i|und|ist|war|hat|jest|nie|"
        r"nicht|sagt\w*|schreibt|meint|will|mowi|pisze|chce|napisal\w*|zeby|ze|dass|wenn|jesli)\b)[^\s,;:]+ ){1,3}\Z"
    ),
    re.compile(r"(?!)"),
)


@dataclass(frozen=True, slots=True)
class Verb:
    """A kind of action's verbs; without a place they count wherever they stand."""

    pattern: re.Pattern[str]
    place: VerbPlace | None

    def starts(self, text: str) -> Iterator[tuple[int, int]]:
        """Where one begins and ends that stands where an order does."""
        at = 0
        while (match := self.pattern.search(text, at)) is not None:
            if self.place is None or self.place.ends_at(match.start(), text):
                yield match.span()
                at = match.end()
            else:
                at = match.start() + 1


@cache
def verbs_of(language: int, *, addressed: bool) -> dict[ActionKind, tuple[Verb, ...]]:
    """The verbs of a language, put together when somebody first speaks it: a start need not wait for all five."""
    spoken, place = IMPERATIVES[language], _place(language)
    found: dict[ActionKind, tuple[Verb, ...]] = {}
    for kind, verbs in spoken.plain.items():
        anywhere = language == _ENGLISH and kind not in _PLACED
        somewhere = _place(language, inside=True) if language == _ENGLISH and kind in _DONE_THERE else place
        found[kind] = (_verb(None if anywhere else somewhere, verbs),)
    for kind, verbs in spoken.placed.items():
        found[kind] = (*found.get(kind, ()), _verb(place, verbs, NO_OBJECT))
    for kind, verbs in spoken.told.items():
        found[kind] = (*found.get(kind, ()), _verb(_BEHIND_ITS_OBJECT, verbs))
    if addressed:
        for kind, verbs in spoken.asked.items():
            found[kind] = (*found.get(kind, ()), _verb(None, verbs))
    return found


@cache
def looking_in(language: int) -> Verb:
    """The verbs that only look."""
    return _verb(_place(language), LOOKS)


def _verb(place: VerbPlace | None, verbs: str, behind: str = "") -> Verb:
    return Verb(re.compile(folded(rf"\b(?:{verbs})\b{behind}")), place)


@cache
def _place(language: int, *, inside: bool = False) -> VerbPlace:
    """Where an order stands."""
    spoken = IMPERATIVES[language]
    near = rf"(?:^\W*|[,;:(–—-]\s*|\b\d{{1,2}}[.)]\s*|\b(?:{spoken.before})[,:]?\s+)"
    return VerbPlace(
        re.compile(folded(rf"(?:{BEFORE_A_VERB if language == _ENGLISH else near})\Z")),
        re.compile(folded(rf"(?:{spoken.condition})[,:]?\s+\Z")),
        re.compile(rf"{IN_SOMETHING}\Z") if inside else None,
    )
