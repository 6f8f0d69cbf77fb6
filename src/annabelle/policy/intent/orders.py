"""What a person orders, read strictly: a verb used as one, not denied, and not in a question about the world.

Permission follows from this, so a doubt is no order. `intent/ordered` reads the same words generously.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from annabelle.policy.intent.forms import folded
from annabelle.policy.intent.grammar import (
    ABOUT_THE_WORLD,
    ASIDE,
    ASKS,
    BEFORE_A_VERB,
    BRIEFLY,
    CALLED_FOR,
    DENIED,
    DENIED_AFTER,
    DONE,
    FROM,
    IN_SOMETHING,
    INTO,
    KEPT_THERE,
    LAST,
    LOOKS,
    NAME,
    NO_IMPERATIVE,
    NO_OBJECT,
    NOT_TO_FORGET,
    NOT_YET,
    PLACED_THERE,
    POINTS_BACK,
    POLITE,
    QUOTED,
    REPORTED,
    REQUESTED,
    SENT_THERE,
    SENTENCE,
    SET_BEFORE,
    STATES,
    SUPPOSED,
    TAGGED,
    THEN_DO,
    THEN_WRITE,
    TO_BE_KEPT,
    WONDERS,
)
from annabelle.policy.intent.imperatives import IMPERATIVES
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.intent.own_words import own_words
from annabelle.policy.intent.sparing import without_spared

_NEAR: Final = 80

# Ordered only where an order stands: "nobody may delete it" has the verb, too, and "is there an update" the noun.
_PLACED: Final[frozenset[ActionKind]] = frozenset({"send", "delete", "pay", "run", "create", "update", "transfer"})

_DONE_THERE: Final[frozenset[ActionKind]] = frozenset({"create", "update"})

_Verbs = dict[ActionKind, tuple[re.Pattern[str], ...]]


@dataclass(frozen=True, slots=True)
class Order:
    """One order: its kinds of action, its words, and those for what it is done to and where it is to go."""

    kinds: frozenset[ActionKind]
    words: str
    objects: str


@lru_cache(maxsize=256)
def orders_in(message: str) -> tuple[Order, ...]:
    """The orders of a message, one after the other."""
    text = NOT_TO_FORGET.sub("please ", own_words(message).replace("’", "'").casefold())
    text = TO_BE_KEPT.sub(lambda match: match[1] + "_" * len(match[2]), text)
    languages = _languages(text)
    found: list[Order] = []
    for sentence in SENTENCE.split(text):
        if DONE.match(sentence):
            found.append(Order(frozenset({"done"}), sentence, sentence))
        asks = ABOUT_THE_WORLD.match(sentence) or (ASKS.search(sentence) and not TAGGED.search(sentence))
        if not asks or _addressed(sentence):
            found += _orders(sentence, languages)
        elif then := THEN_WRITE.search(sentence):
            found += _orders(then.group(), languages)
        elif then := THEN_DO.search(sentence):
            found += _orders(then[1], languages)
    return tuple(found)


def _addressed(sentence: str) -> bool:
    """Whether somebody is asked to do something, rather than about what they can do."""
    if POLITE.search(sentence):
        return True
    return REQUESTED.search(sentence) is not None and not WONDERS.match(sentence)


def orders(message: str) -> frozenset[ActionKind]:
    """The kinds of action this message orders."""
    return frozenset(kind for order in orders_in(message) for kind in order.kinds)


def _orders(sentence: str, languages: list[int]) -> list[Order]:
    begun: dict[int, set[ActionKind]] = {}
    # A file may be called `old-draft.md`, which orders no draft.
    bare = QUOTED.sub(_hidden, NAME.sub(_hidden, sentence))
    written = folded(bare)
    addressed = _addressed(sentence) or BRIEFLY.match(sentence) is not None
    for language in languages:
        for kind, verbs in _verbs(language, addressed=addressed).items():
            for start in (start for verb in verbs for start in _meant(verb, bare, written)):
                begun.setdefault(start, set()).add(kind)
    looks = sorted({match.start("verb") for one in languages for match in _looking(one).finditer(written)})
    if not begun and not looks:
        return _without_a_verb(sentence)
    stops = sorted({*begun, *looks, len(sentence)})
    found: list[Order] = []
    over = 0
    for start, kinds in sorted(begun.items()):
        end = next(stop for stop in stops if stop > start)
        words = without_spared(ASIDE.split(sentence[start:end], maxsplit=1)[0])
        looked = any(over <= look < start for look in looks)
        before = LAST.fullmatch(words) or ((POINTS_BACK.match(words) or SET_BEFORE.match(sentence)) and not looked)
        about = without_spared(sentence[over:start]) + words if before else words
        found.append(Order(frozenset(kinds), words, _objects(about)))
        over = end
    return found


def _without_a_verb(sentence: str) -> list[Order]:
    """`Eggs and milk on the shopping list`; `the letter to Bob by mail, please`."""
    kinds: set[ActionKind] = set()
    if sentence.rstrip().endswith("?") or STATES.search(sentence):
        return []
    bare = QUOTED.sub(_hidden, NAME.sub(_hidden, sentence))
    if PLACED_THERE.search(sentence) or KEPT_THERE.search(sentence) or CALLED_FOR.search(bare):
        kinds.add("create")
    if SENT_THERE.search(sentence):
        kinds.add("send")
    return [Order(frozenset(kinds), sentence, sentence)] if kinds else []


def _hidden(match: re.Match[str]) -> str:
    """As long as before, and with the sign behind it: `read a.md, then send it`."""
    name = match.group().rstrip(",;:.!?)")
    return "_" * len(name) + match.group()[len(name) :]


def _objects(words: str) -> str:
    """What it is done to, and where it goes: `put the lunch from Bob's mail into my calendar` is about no mail."""
    words = words.replace(" rid of ", " rid ")  # which is one verb
    taken_from = FROM.search(words)
    if taken_from is None:
        return words
    targets = (match.group() for match in INTO.finditer(words, taken_from.start()))
    return " ".join((words[: taken_from.start()], *targets))


def _languages(text: str) -> list[int]:
    """Those it may be written in: a verb of one language is a noun of another, as "note" is in French and English."""
    words = re.findall(r"\w+", text)
    marks = [sum(word in known for word in words) for known in _MARKS]
    return [language for language, count in enumerate(marks) if 2 * count >= max(marks) or max(marks) == 1]


def _meant(verb: re.Pattern[str], sentence: str, written: str) -> list[int]:
    """Where the verb stands in what is written, and is meant."""
    meant: list[int] = []
    for match in verb.finditer(written):
        start = match.start("verb")
        before, after = sentence[max(0, start - _NEAR) : start], sentence[start : match.end() + _NEAR]
        denied = DENIED.search(before) or DENIED_AFTER.match(after) or NOT_YET.search(sentence[start:])
        if not (denied or REPORTED.search(before) or NO_IMPERATIVE.search(before) or SUPPOSED.search(before)):
            meant.append(start)
    return meant


@cache
def _verbs(language: int, *, addressed: bool) -> _Verbs:
    """The verbs of a language, put together when somebody first speaks it: a start need not wait for all five."""
    spoken, place = IMPERATIVES[language], _place(language)
    found: _Verbs = {}
    for kind, verbs in spoken.plain.items():
        anywhere = language == _ENGLISH and kind not in _PLACED
        somewhere = f"(?:{place}|{IN_SOMETHING})" if language == _ENGLISH and kind in _DONE_THERE else place
        found[kind] = (_pattern(r"\b" if anywhere else somewhere, verbs),)
    for kind, verbs in spoken.placed.items():
        found[kind] = (*found.get(kind, ()), _pattern(place, verbs, NO_OBJECT))
    if addressed:
        for kind, verbs in spoken.asked.items():
            found[kind] = (*found.get(kind, ()), _pattern(r"\b", verbs))
    return found


@cache
def _looking(language: int) -> re.Pattern[str]:
    return _pattern(_place(language), LOOKS)


def _pattern(place: str, verbs: str, behind: str = "") -> re.Pattern[str]:
    return re.compile(folded(rf"{place}(?P<verb>{verbs})\b{behind}"))


def _place(language: int) -> str:
    """Where an order stands."""
    if language == _ENGLISH:
        return BEFORE_A_VERB
    return rf"(?:^\W*|[,;:(–—-]\s*|\b\d{{1,2}}[.)]\s*|\b(?:{IMPERATIVES[language].before})[,:]?\s+)"


_ENGLISH: Final = 0
_MARKS: Final = tuple(frozenset(spoken.marks.split()) for spoken in IMPERATIVES)
