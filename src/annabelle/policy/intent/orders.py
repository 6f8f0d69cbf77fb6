"""What a person orders, read strictly: a verb used as one, not denied, and not in a question about the world.

Permission follows from this, so a doubt is no order. `intent/ordered` reads the same words generously.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.exclusions import without_spared
from annabelle.policy.intent.forms import folded
from annabelle.policy.intent.grammar import (
    ABOUT_THE_WORLD,
    ASIDE,
    ASKS,
    BRIEFLY,
    DENIED,
    DENIED_AFTER,
    DONE,
    FROM,
    INTO,
    LAST,
    NAME,
    NO_IMPERATIVE,
    NOT_TO_FORGET,
    NOT_YET,
    PLAINLY,
    POINTS_BACK,
    POLITE,
    QUOTED,
    REPORTED,
    REQUESTED,
    SENTENCE,
    SET_BEFORE,
    SUPPOSED,
    SUPPOSES,
    TAGGED,
    THEN_ASKS,
    THEN_DO,
    THEN_WRITE,
    TO_BE_KEPT,
    WONDERS,
    hidden,
)
from annabelle.policy.intent.own_words import own_words
from annabelle.policy.intent.verb_position import IMPERATIVES, Verb, looking_in, verbs_of
from annabelle.policy.intent.verbless import belongs, verbless

_NEAR: Final = 80
_FAR: Final = 300
_AND_THEN: Final = re.compile(r"(?:[\s,;:–—-]|\b(?:and|then|also|n|und|dann|et|puis|y|luego|i|potem))+$")
# Whoever writes more than twice this has pasted something, and orders before it or behind it.
_MOST: Final = 2000
_BETWEEN: Final = 20  # many short sentences take as long as a few long ones


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
    for sentence in _at_both_ends(SENTENCE.split(text)):
        if DONE.match(sentence):
            found.append(Order(frozenset({"done"}), sentence, sentence))
        asks = ABOUT_THE_WORLD.match(sentence) or (ASKS.search(sentence) and not TAGGED.search(sentence))
        if not asks or _addressed(sentence):
            found += _orders(sentence, languages)
        elif (ordered := _before_a_question(sentence)) and (before := _orders(ordered, languages)):
            found += before
        elif then := THEN_WRITE.search(sentence):
            found += _orders(then.group(), languages)
        elif then := THEN_DO.search(sentence):
            found += _orders(then[1], languages)
    return tuple(found)


def _at_both_ends(sentences: list[str]) -> list[str]:
    """Those that are read. One that is longer than any breath orders nothing, and neither does half of one."""
    first = _many(sentences)
    return sentences[:first] + sentences[max(first, len(sentences) - _many(sentences[::-1])) :]


def _many(sentences: list[str]) -> int:
    lengths = accumulate(len(sentence) + _BETWEEN for sentence in sentences)
    return sum(1 for _ in takewhile(lambda length: length <= _MOST, lengths))


def _addressed(sentence: str) -> bool:
    """Whether somebody is asked to do something, rather than about what they can do."""
    if POLITE.search(sentence):
        return True
    return REQUESTED.search(sentence) is not None and not WONDERS.match(sentence)


def _before_a_question(sentence: str) -> str:
    """What stands before what is asked: `cancel the yoga and when is the dentist?`"""
    asks = THEN_ASKS.search(sentence)
    before = sentence[: asks.start()] if asks else ""
    return "" if ABOUT_THE_WORLD.match(before) or SUPPOSES.match(before) else before


def orders(message: str) -> frozenset[ActionKind]:
    """The kinds of action this message orders."""
    return frozenset(kind for order in orders_in(message) for kind in order.kinds)


def _orders(sentence: str, languages: list[int]) -> list[Order]:
    begun: dict[int, set[ActionKind]] = {}
    # A file may be called `old-draft.md`, which orders no draft.
    bare = QUOTED.sub(hidden, NAME.sub(hidden, sentence))
    written = folded(bare)
    addressed = _addressed(sentence) or BRIEFLY.match(sentence) is not None
    for language in languages:
        for kind, verbs in verbs_of(language, addressed=addressed).items():
            for start in (start for verb in verbs for start in _meant(verb, bare, written)):
                begun.setdefault(start, set()).add(kind)
    looks = sorted({start for one in languages for start, _ in looking_in(one).starts(written)})
    if not begun and not looks:
        return _without_a_verb(sentence)
    found = _beside_a_verb(sentence, begun, looks)
    stops = sorted({*begun, *looks, len(sentence)})
    over = 0
    for start, kinds in sorted(begun.items()):
        end = stops[bisect_right(stops, start)]
        words = without_spared(ASIDE.split(sentence[start:end], maxsplit=1)[0])
        looked = bisect_left(looks, over) < bisect_left(looks, start)
        before = LAST.fullmatch(words) or ((POINTS_BACK.match(words) or SET_BEFORE.match(sentence)) and not looked)
        about = without_spared(sentence[over:start]) + words if before else words
        found.append(Order(frozenset(kinds), words, _objects(about)))
        over = end
    return found


def _without_a_verb(clause: str) -> list[Order]:
    kinds = verbless(clause)
    if kinds:
        return [Order(kinds, clause, clause)]
    # Why may stand first: "milch ist alle, auf die liste damit".
    last = clause.rpartition(",")[2]
    return _without_a_verb(last) if last != clause and PLAINLY.search(last) else []


def _beside_a_verb(sentence: str, begun: Iterable[int], looks: Sequence[int]) -> list[Order]:
    """`Eggs on the list and tell Bob`; `read the minutes, my points go on the list`. What the verb points back to, as
    in `the eggs on the list, delete them`, is what it is done to."""
    first = min((*begun, *looks))
    behind = sentence[first:]
    found: list[Order] = []
    if first and not (LAST.fullmatch(behind) or POINTS_BACK.match(behind)):
        found += _without_a_verb(_AND_THEN.sub("", sentence[:first]))
    for look in looks:
        _, comma, rest = sentence[look:].partition(",")
        if comma and (belongs(rest) or (POLITE.search(rest) and not any(start > look for start in begun))):
            found += _without_a_verb(rest)
    return found


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


def _meant(verb: Verb, sentence: str, written: str) -> list[int]:
    """Where the verb stands in what is written, and is meant."""
    meant: list[int] = []
    for start, end in verb.starts(written):
        before, after = sentence[max(0, start - _NEAR) : start], sentence[start : end + _NEAR]
        denied = DENIED.search(before) or DENIED_AFTER.match(after) or NOT_YET.search(sentence[start : start + _FAR])
        if not (denied or REPORTED.search(before) or NO_IMPERATIVE.search(before) or SUPPOSED.search(before)):
            meant.append(start)
    return meant


_MARKS: Final = tuple(frozenset(spoken.marks.split()) for spoken in IMPERATIVES)
