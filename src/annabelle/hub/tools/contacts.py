"""`find_contact`: finds people in memory, Telegram and mail, and merges duplicates."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import getaddresses
from functools import partial
from typing import cast

from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import Trust
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.tools.memory import PlainMemory
from annabelle.toolbox.catalogue import READS, NativeTool, native_tool, number_parameter, text_parameter
from annabelle.toolbox.facade import Toolbox

_MIN_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Sighting:
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
    """Whether it is in the person's own contacts. Names in search results and mails can be forged."""

    def matches_words(self, words: list[str]) -> bool:
        known = (self.name, *self.emails, self.username, self.company, self.role, self.notes)
        text = fold(" ".join(filter(None, known)))
        digits = " ".join(map(digits_of, self.phones))
        return all(word in text or (digits_of(word) and digits_of(word) in digits) for word in words)

    def marks(self) -> set[str]:
        """Identifiers that belong to one person only."""
        phones = {f"phone:{number}" for phone in self.phones if len(number := digits_of(phone)) >= _MIN_DIGITS}
        emails = {f"email:{email.casefold()}" for email in self.emails}
        return phones | emails | ({f"user:{self.username.casefold()}"} if self.username else set())


@dataclass(slots=True)
class KnownPerson:
    sightings: list[Sighting] = field(default_factory=list[Sighting])

    def marks(self) -> set[str]:
        return {mark for sighting in self.sightings for mark in sighting.marks()}

    def names(self) -> set[str]:
        """Full names only, because first names are shared."""
        return {name for sighting in self.sightings if " " in (name := fold(sighting.name))}

    @property
    def kept(self) -> bool:
        return any(sighting.kept for sighting in self.sightings)

    def is_same_as(self, other: Sighting) -> bool:
        """Whether an identifier matches, or the full name without a conflicting identifier.

        A name alone never merges a stranger with a saved contact.
        """
        mine, others = self.marks(), other.marks()
        if mine & others:
            return True
        if self.kept != other.kept:
            return False
        kinds = {mark.partition(":")[0] for mark in mine} & {mark.partition(":")[0] for mark in others}
        return not kinds and bool(self.names() & KnownPerson([other]).names())

    def trust(self) -> Trust:
        """Trusted if the person's own contacts hold every identifier."""
        known = {mark for sighting in self.sightings if sighting.kept for mark in sighting.marks()}
        return "trusted" if self.kept and self.marks() <= known else "untrusted"

    def describe(self) -> JsonObject:
        """The tool's output for this person, without unknown fields."""
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


def merge_sightings(sightings: list[Sighting]) -> list[KnownPerson]:
    """Groups sightings by person, also those that match only through a third."""
    people: list[KnownPerson] = []
    # Identifiers first: full names only match the rest.
    for sighting in sorted(sightings, key=lambda one: not one.marks()):
        same = [person for person in people if person.is_same_as(sighting)]
        joined = KnownPerson([*(one for person in same for one in person.sightings), sighting])
        people = [*(person for person in people if person not in same), joined]
    return people


def parse_addresses(header: str) -> list[tuple[str, str]]:
    found = getaddresses([header[:5000]])
    return [(name.strip(), email.strip()) for name, email in found if "@" in email]


def fold(text: str) -> str:
    """Removes case and accents, so that Zoë is found as zoe."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(char for char in plain if not unicodedata.combining(char)).split())


def digits_of(text: str) -> str:
    """Digits of a phone number, empty if the text is not one."""
    number = re.sub(r"[\s().+/-]", "", text)
    return number.removeprefix("00") if number.isascii() and number.isdecimal() else ""


_SECONDS_PER_SOURCE = 15.0


@dataclass(frozen=True, slots=True)
class _ContactQuery:
    tool: str
    arguments: JsonObject
    read: Callable[[JsonObject], Iterator[Sighting]]

    @property
    def server(self) -> str:
        return self.tool.partition("_")[0]


@dataclass(frozen=True, slots=True)
class _ContactAnswer:
    question: _ContactQuery
    sightings: list[Sighting]
    trust: Trust = "trusted"
    trouble: str | None = None


def find_contact_tool(plain: PlainMemory, toolbox: Toolbox, agents: AgentRegistry, access: ToolAccess) -> NativeTool:
    """Asks every source with the policies of the caller and of its user."""

    def usable(context: CallContext) -> set[str]:
        there = toolbox.tools(agents.policy_of(context), context.caller).tools
        theirs = access.user_policy(context)
        return {tool.name for tool in there if theirs is None or theirs.permits(tool.name)}

    async def ask(question: _ContactQuery, context: CallContext) -> _ContactAnswer:
        # No call id: it only reads, and the whole search is recorded as one call.
        inner = context.model_copy(update={"call_id": None})
        try:
            async with asyncio.timeout(_SECONDS_PER_SOURCE):
                result = await plain.call(question.tool, question.arguments, inner)
        except TimeoutError:
            return _ContactAnswer(question, [], trouble="It did not answer in time.")
        if result.is_error:
            return _ContactAnswer(question, [], trouble=result.text[:300])
        return _ContactAnswer(question, list(question.read(result.structured or {})), result.trust)

    @native_tool(
        "find_contact",
        "Find a person in everything that is connected: contacts, Telegram and mail. Tells addresses, phone numbers, "
        "usernames, and where each is known from.",
        {
            "query": text_parameter(100, "A name, company, e-mail address, phone number or username, or a part of it"),
            "limit": number_parameter(1, 50, 10, "How many at most"),
        },
        required=("query",),
        annotations=READS.model_copy(update={"open_world": True}),
        group="Contacts",
        timeout_seconds=2 * _SECONDS_PER_SOURCE,
    )
    async def find(arguments: JsonObject, context: CallContext) -> ToolResult:
        query, limit = str(arguments["query"]), cast("int", arguments.get("limit", 10))
        open_to_them = usable(context)
        questions = [question for question in _queries(query) if question.tool in open_to_them]
        heard = await asyncio.gather(*(ask(question, context) for question in questions))
        words = fold(query).split()
        fitting = [sighting for one in heard for sighting in one.sightings if sighting.matches_words(words)]
        found = sorted(merge_sightings(fitting), key=lambda person: _rank(person, fold(query)))
        trust: Trust = "trusted" if all(one.trust == "trusted" for one in heard) else "untrusted"
        return _result(found, limit, heard, trust)

    return find


def _queries(query: str) -> list[_ContactQuery]:
    word = " ".join(query.replace('"', " ").split())
    memory = "memory_list_contacts"
    questions = [
        _ContactQuery(memory, {"name": query, "limit": 50}, _from_memory),
        _ContactQuery(memory, {"company": query, "limit": 50}, _from_memory),
        _ContactQuery("telegram_list_contacts", {}, partial(_from_telegram, kept=True)),
        _ContactQuery("telegram_search_users", {"query": query.lstrip("@") or query, "limit": 20}, _from_telegram),
        _ContactQuery("gmail_list_emails", {"query": f'from:"{word}" OR to:"{word}"', "max_results": 50}, _from_mail),
    ]
    if "@" in word.strip("@"):
        questions.append(_ContactQuery(memory, {"email": word, "limit": 5}, _from_memory))
    return questions


def _from_memory(answer: JsonObject) -> Iterator[Sighting]:
    for row in _rows(answer, "contacts"):
        key = row.get("id")
        email = _text_field(row, "email")
        yield Sighting(
            source="memory",
            name=_text_field(row, "name") or "",
            emails=(email,) if email else (),
            company=_text_field(row, "company"),
            role=_text_field(row, "role"),
            notes=_text_field(row, "notes"),
            contact_id=key if isinstance(key, int) else None,
            kept=row.get("trust") != "untrusted",
        )


def _from_telegram(answer: JsonObject, *, kept: bool = False) -> Iterator[Sighting]:
    for row in _rows(answer, "people"):
        phone = _text_field(row, "phone")
        yield Sighting(
            source="telegram",
            name=_text_field(row, "name") or "",
            phones=(phone,) if phone else (),
            username=_text_field(row, "username"),
            chat_id=_text_field(row, "chat_id"),
            kept=kept,
        )


def _from_mail(answer: JsonObject) -> Iterator[Sighting]:
    for row in _rows(answer, "emails"):
        for header in ("sender", "to"):
            for name, email in parse_addresses(_text_field(row, header) or ""):
                yield Sighting(source="gmail", name=name, emails=(email,))


def _rows(answer: JsonObject, name: str) -> list[JsonObject]:
    found = answer.get(name)
    rows = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("JsonObject", row) for row in rows if isinstance(row, dict)]


def _text_field(row: JsonObject, name: str) -> str | None:
    value = row.get(name)
    return value[:1000] or None if isinstance(value, str) else None


def _rank(person: KnownPerson, query: str) -> tuple[bool, int, str]:
    """Sort key: exact matches first, then people known to more sources."""
    names = [fold(one.name) for one in person.sightings]
    exact = query in names or any(query in map(fold, one.emails) for one in person.sightings)
    return not exact, -len({one.source for one in person.sightings}), min(filter(None, names), default="~")


def _result(people: list[KnownPerson], limit: int, heard: list[_ContactAnswer], trust: Trust) -> ToolResult:
    contacts = [person.describe() for person in people[:limit]]
    asked = {one.question.server for one in heard if one.trouble is None}
    # A server that answered one of two queries appears in both lists.
    silent = {one.question.server: one.trouble for one in heard if one.trouble is not None}
    not_asked = [{"server": server, "why": why} for server, why in sorted(silent.items())]
    lines = [_line(contact) for contact in contacts] or ["Nobody was found."]
    lines += [f"[{len(people) - limit} more]"] if len(people) > limit else []
    lines += [f"[not asked: {entry['server']}: {entry['why']}]" for entry in not_asked]
    structured: JsonObject = {
        "contacts": contacts,
        "total": len(people),
        "asked": sorted(asked),
        "not_asked": not_asked,
    }
    return ToolResult(text="\n".join(lines), structured=structured, trust=trust)


def _line(contact: JsonObject) -> str:
    known = [
        str(contact.get("name") or "(no name)"),
        *cast("list[str]", contact.get("emails", [])),
        *cast("list[str]", contact.get("phones", [])),
        f"@{contact['username']}" if "username" in contact else "",
        ", ".join(str(contact[key]) for key in ("role", "company") if key in contact),
    ]
    return f"{' · '.join(filter(None, known))} ({', '.join(cast('list[str]', contact['sources']))})"
