"""From a sentence of a person to a rule that policy can hold (TRU-05). Deterministic, and a rule only ever restricts.

What is not understood is said, never guessed: a rule that seems to hold and does not is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from annabelle.core.trust import ToolClass
from annabelle.policy.intent.grammar import SENTENCE
from annabelle.policy.intent.own_words import own_words
from annabelle.policy.rules.lexicon import (
    ACTING,
    AFTER_WHICH_NAMES_BEND,
    BOOKING,
    CALLED,
    CLASSES,
    CONDITIONS,
    DEEDS,
    EVERYTHING,
    FILLERS,
    LEADING_TO_A_NAME,
    NOT_A_NAME,
    PAYING,
    POLISH_CASES,
    SAYING,
    THINGS,
    TOOLS,
    Deed,
    K,
    Thing,
)
from annabelle.policy.rules.phrases import Phrase, phrase_of
from annabelle.policy.rules.rule import Match

# Behind a number a rule begins anew, where an order goes on for the sake of dates: of a rule that was cut the person
# is told, of one that was lost in the sentence before it they would not be.
_SENTENCE: Final = re.compile(rf"{SENTENCE.pattern}|(?<=[\d\s]\.)\s+", re.IGNORECASE)
_LITERAL: Final = re.compile(
    r"[\"“„«‘']\s*(?P<quoted>[^\"“”„«»‘']{1,120}?)\s*[\"”“»’'](?!\w)"
    r"|(?P<plain>[\w.+%-]*@[\w.-]+\w|(?:https?://|www\.)\S+\w|(?:~|\.{1,2})?/[^\s,;]+|\w+(?:/[\w.-]+)+|\w+\.\w{2,4}\b)"
)
_WORD: Final = re.compile(r"[\w'@.+-]+")
_GAP: Final = "\x00"
_MOST_IN_ONE_MESSAGE: Final = 20
"""More than anybody states at once; a text somebody pasted must not fill the book."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule as it was understood. `reading` says it back in plain words; `standing` that the sentence is for good."""

    kind: Literal["ask", "never"]
    words: str
    match: Match
    reading: str
    standing: bool


class NotUnderstood(Exception):
    """The sentence states no rule that could be held; the text says what is missing, as a sentence."""


def compile_rule(sentence: str) -> Compiled:
    """The rule a person's sentence states; raises NotUnderstood."""
    phrase = phrase_of(sentence)
    if phrase is None:
        raise NotUnderstood("This is not a rule of the form “ask me before …” or “never …”.")
    about = _About.of(phrase.rest)
    if phrase.kind == "never" and about.vague and not EVERYTHING & set(_WORD.findall(phrase.rest.lower())):
        raise NotUnderstood("It does not say what it is about: mail, files, a name, or anything.")
    match = about.match()
    return Compiled(phrase.kind, sentence.strip(), match, _said(phrase, about), phrase.standing)


def stated_in(message: str) -> list[Compiled]:
    """The standing rules a message states in the person's own words; what is quoted or pasted in states none."""
    found: list[Compiled] = []
    for sentence in _SENTENCE.split(own_words(message)):
        try:
            compiled = compile_rule(sentence)
        except NotUnderstood:
            continue
        if compiled.standing:
            found.append(compiled)
        if len(found) == _MOST_IN_ONE_MESSAGE:
            break
    return found


@dataclass(frozen=True, slots=True)
class _About:
    """What a rule is about: what is done, to which kinds of things, and the names that must stand in the call."""

    deeds: tuple[Deed, ...]
    things: tuple[Thing, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, rest: str) -> _About:
        literals = [next(filter(None, match.groups())).strip(" .,;:!") for match in _LITERAL.finditer(rest)]
        text = _LITERAL.sub(f" {_GAP} ", rest)
        deeds, text = _taken(DEEDS, text, most=3)
        things, text = _taken(THINGS, text, most=3)
        names = [*literals, *_names(text)]
        deeds, things = (deeds, things) if deeds else _nouns_as_verbs(things)
        if not deeds:
            raise NotUnderstood("It does not say what is to be done or left: delete, send, change, run, buy …")
        return cls(deeds, things, tuple(dict.fromkeys(names)))

    @property
    def vague(self) -> bool:
        """Whether it names neither a kind of thing nor a name; spending and running say enough by themselves."""
        return not self.things and not self.names and not set(self.deeds) <= {"pay", "book", "run", "act"}

    def match(self) -> Match:
        classes: set[ToolClass] = {one for deed in self.deeds for one in CLASSES[deed]}
        if "pay" in self.deeds or "book" in self.deeds:
            if set(self.deeds) - {"pay", "book"}:
                raise NotUnderstood("Spending and something else in one rule: say them as two.")
            return Match(
                tools=BOOKING if "book" in self.deeds else PAYING, classes=_ordered(classes), mentions=self.names
            )
        if "settings" in self.things:
            return Match(classes=("control",), mentions=self.names)
        if "read" in self.deeds:
            return Match(tools=self._tools(), mentions=self.names) if self.things or self.names else _too_wide()
        if set(self.things) & {"money", "travel"}:
            raise NotUnderstood("Which tools that would be is not known. Say it as “ask me before you pay” or “book”.")
        if self.names and set(self.things) <= {"file"}:
            # A file can also be sent or reached by a script, and a person by a filter that forwards.
            wider: set[ToolClass] = {"control"} if set(self.deeds) & {"send", "write"} else set()
            wider |= {"execute", "send_outside"} if "change" in self.deeds and self.things else set()
            return Match(classes=_ordered(classes | wider), mentions=self.names)
        if classes == {"send_outside"} and set(self.things) & {"file", "note", "contact", "memory", "code"}:
            raise NotUnderstood("What is in a message can not be told from the call alone. Say whom it must not go to.")
        if classes == {"execute"}:
            return Match(classes=("execute",), mentions=self.names)
        return Match(tools=self._tools(), classes=_ordered(classes), mentions=self.names)

    def _tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(glob for thing in self.things for glob in TOOLS[thing]))


def _too_wide() -> Match:
    raise NotUnderstood("It does not say what must not be opened.")


def _taken(forms: Mapping[K, re.Pattern[str]], text: str, *, most: int) -> tuple[tuple[K, ...], str]:
    """The words of a lexicon in the text, and the text without them."""
    found: list[K] = []
    for name, pattern in forms.items():
        hits = list(pattern.finditer(text))
        if hits and len(found) < most:
            found.append(name)
            for hit in reversed(hits):
                text = f"{text[: hit.start()]} {_GAP} {text[hit.end() :]}"
    return tuple(found), text


def _nouns_as_verbs(things: tuple[Thing, ...]) -> tuple[tuple[Deed, ...], tuple[Thing, ...]]:
    """ "Never mail Bob", "never contact Bob", "no purchases": the noun says what is done."""
    if "mail" in things:
        return ("send",), ("mail",)
    if "chat" in things or "contact" in things:
        return ("send",), ()
    return (("pay",), ()) if "money" in things else ((), things)


def _names(text: str) -> list[str]:
    """What is left when all known words are gone: names, or something that was not understood."""
    names: list[str] = []
    run: list[str] = []
    led = ""
    for word in [*_WORD.findall(text.replace(_GAP, " . ")), "."]:
        bare = word.strip("'.")
        low = bare.lower()
        if low in CONDITIONS:
            raise NotUnderstood(f"The condition “{bare}” can not be held; a rule holds always.")
        if not bare or low in FILLERS or low in LEADING_TO_A_NAME:
            if run:
                names += _name(run, led)
                run = []
            led = low if low in LEADING_TO_A_NAME else "" if bare else _GAP
            continue
        run.append(bare)
    return names


def _name(words: list[str], led: str) -> list[str]:
    """A name as it may stand in a call; `led` is the word that leads to it, which a name in small letters needs."""
    name = " ".join(words)
    if any(word.lower() in NOT_A_NAME for word in words):
        raise NotUnderstood(f"Who or what “{name}” is can not be seen in a call. Say the name or the address.")
    if not led and not any(word[0].isupper() or word[0].isdigit() for word in words):
        raise NotUnderstood(f"“{name}” is not understood. Put a name in quotes if it is one.")
    bent = led in AFTER_WHICH_NAMES_BEND and name[0].isupper() and len(name) > 3
    return [name, *(name.removesuffix(end) for end in POLISH_CASES if bent and name.endswith(end))]


def _ordered(classes: Iterable[ToolClass]) -> tuple[ToolClass, ...]:
    wanted = set(classes)
    return tuple(one for one in ACTING if one in wanted)


def _said(phrase: Phrase, about: _About) -> str:
    deeds = " or ".join(SAYING[deed] for deed in about.deeds)
    things = " or ".join(CALLED[thing] for thing in about.things if thing != "money")
    names = " or ".join(f"“{name}”" for name in about.names)
    what = f"anything that {deeds}{f' {things}' if things else ''}{f' and mentions {names}' if names else ''}"
    return f"Before {what}: ask you." if phrase.kind == "ask" else f"Never: {what}."
