"""What one sentence states, so that a new value can take the place of an old one (MEM-09).

Only sentences that say one thing in one of a few known ways are read. Whatever is richer than that ("lives in Berlin
and works at the bakery") states nothing here, because replacing it would lose the other half.
"""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.servers.memory.plain_sentence import Sentence, plain_sentence
from annabelle.servers.memory.relations import FORMS, Form
from annabelle.servers.memory.typed_value import typed_value


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation of somebody or something, with its value. Of one key, one value holds at a time."""

    key: str
    value: str
    denied: bool = False
    """It says what does not hold: "no longer", "not", "hates"."""
    decides: bool = True
    """False for what may well be said beside another value: it can be replaced, and replaces nothing."""

    def contradicts(self, other: Statement) -> bool:
        """Whether both can not hold at once. "Berlin" and "Berlin, Germany" can."""
        if self.key != other.key:
            return False
        mine, theirs = set(self.value.split()), set(other.value.split())
        agree = mine <= theirs or theirs <= mine
        return agree if self.denied != other.denied else not self.denied and not agree

    def replaces(self, other: Statement) -> bool:
        return self.decides and self.contradicts(other)


def read_statement(text: str) -> Statement | None:
    """The one relation a text states, or None when it states none that is known, or more than one."""
    sentence = plain_sentence(text)
    if sentence is None:
        return None
    for form in FORMS:
        if stated := _by_form(sentence, form):
            return stated
    if sentence.denied or not (found := typed_value(sentence.words)):
        return None
    return Statement(f"…|{found.rest}", found.value)


def _by_form(sentence: Sentence, form: Form) -> Statement | None:
    read = form.read(sentence.words)
    if read is None:
        return None
    denied = sentence.denied != form.denies
    return Statement(f"{read.subject}|{read.relation}", read.value, denied, form.decides or sentence.changed)
