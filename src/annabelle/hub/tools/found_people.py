"""People as different servers know them, put together where they are the same person."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from email.utils import getaddresses

from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject

_MIN_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Sighting:
    """One person in one server."""

    source: str
    name: str = ""
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    username: str | None = None
    chat_id: str | None = None
    company: str | None = None
    role: str | None = None
    notes: str | None = None
    contact_id: int | None = None
    kept: bool = False
    """Whether it stands in a book the person keeps. In a search or on a mail people call themselves what they like."""

    def says(self, words: list[str]) -> bool:
        """Whether every word of a search is in what is known."""
        known = (self.name, *self.emails, self.username, self.company, self.role, self.notes)
        text = fold(" ".join(filter(None, known)))
        digits = " ".join(map(digits_of, self.phones))
        return all(word in text or (digits_of(word) and digits_of(word) in digits) for word in words)

    def marks(self) -> set[str]:
        """What only one person has."""
        phones = {f"phone:{number}" for phone in self.phones if len(number := digits_of(phone)) >= _MIN_DIGITS}
        emails = {f"email:{email.casefold()}" for email in self.emails}
        return phones | emails | ({f"user:{self.username.casefold()}"} if self.username else set())


@dataclass(slots=True)
class Person:
    """What all servers together know of somebody."""

    sightings: list[Sighting] = field(default_factory=list[Sighting])

    def marks(self) -> set[str]:
        return {mark for sighting in self.sightings for mark in sighting.marks()}

    def names(self) -> set[str]:
        """Full names only: many people are called Anna."""
        return {name for sighting in self.sightings if " " in (name := fold(sighting.name))}

    @property
    def kept(self) -> bool:
        return any(sighting.kept for sighting in self.sightings)

    def is_also(self, other: Sighting) -> bool:
        """The same address, number or username, or the same full name where none of these speaks against it. A stranger
        does not become somebody the person keeps by a name alone."""
        mine, others = self.marks(), other.marks()
        if mine & others:
            return True
        if self.kept != other.kept:
            return False
        kinds = {mark.partition(":")[0] for mark in mine} & {mark.partition(":")[0] for mark in others}
        return not kinds and bool(self.names() & Person([other]).names())

    def trust(self) -> Trust:
        """Trusted when a book of the person's has every way to reach them."""
        known = {mark for sighting in self.sightings if sighting.kept for mark in sighting.marks()}
        return "trusted" if self.kept and self.marks() <= known else "untrusted"

    def describe(self) -> JsonObject:
        """As the tool gives it back; what nobody knows is left out."""
        seen = sorted(self.sightings, key=lambda one: not one.kept)

        def first(values: list[str | None]) -> str | None:
            return next((value for value in values if value), None)

        told: JsonObject = {
            "name": first([one.name for one in seen]),
            "emails": list({email.casefold(): email for one in reversed(seen) for email in one.emails}.values()),
            "phones": list({digits_of(phone): phone for one in reversed(seen) for phone in one.phones}.values()),
            "username": first([one.username for one in seen]),
            "telegram_chat_id": first([one.chat_id for one in seen]),
            "company": first([one.company for one in seen]),
            "role": first([one.role for one in seen]),
            "notes": first([one.notes for one in seen]),
            "contact_id": next((one.contact_id for one in seen if one.contact_id is not None), None),
            "sources": list(dict.fromkeys(one.source for one in seen)),
            "trust": self.trust(),
        }
        return {name: value for name, value in told.items() if value not in (None, [])}


def gathered(sightings: list[Sighting]) -> list[Person]:
    """One person for everything that belongs together, also when two belong together only through a third."""
    people: list[Person] = []
    # By what is unique first: a full name joins only what is left over.
    for sighting in sorted(sightings, key=lambda one: not one.marks()):
        same = [person for person in people if person.is_also(sighting)]
        joined = Person([*(one for person in same for one in person.sightings), sighting])
        people = [*(person for person in people if person not in same), joined]
    return people


def addresses(header: str) -> list[tuple[str, str]]:
    """Names and addresses of a mail's header."""
    found = getaddresses([header[:5000]])
    return [(name.strip(), email.strip()) for name, email in found if "@" in email]


def fold(text: str) -> str:
    """Without case and accents, so that Zoë is found as zoe."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(char for char in plain if not unicodedata.combining(char)).split())


def digits_of(text: str) -> str:
    """A phone number without what people write between its digits; empty when it is none."""
    number = re.sub(r"[\s().+/-]", "", text)
    return number.removeprefix("00") if number.isascii() and number.isdecimal() else ""
