"""`find_contact`: people, wherever they are known: in the memory, at Telegram, in the mail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

from annabelle.core.memory import Trust
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.security.people import People
from annabelle.hub.tools.found_people import Person, Sighting, addresses, fold, gathered
from annabelle.hub.tools.plain_memory import PlainMemory
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.native import NativeTool

_SECONDS_PER_SOURCE = 15.0
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "A name, company, e-mail address, phone number or username, or a part of it",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "How many at most"},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Question:
    """One tool to ask, and how to read its answer."""

    tool: str
    arguments: JsonObject
    read: Callable[[JsonObject], Iterator[Sighting]]

    @property
    def server(self) -> str:
        return self.tool.partition("_")[0]


@dataclass(frozen=True, slots=True)
class _Heard:
    question: _Question
    sightings: list[Sighting]
    trust: Trust = "trusted"
    trouble: str | None = None


def find_contact_tool(plain: PlainMemory, toolbox: Toolbox, agents: AgentManager, people: People) -> NativeTool:
    """Every source is asked as the caller and with its policy: what an agent, or the person it works for, may not use
    is not asked for them."""

    def usable(context: CallContext) -> set[str]:
        there = toolbox.tools(agents.policy_of(context), context.caller).tools
        names = {tool.name for tool in there}
        if context.user_id == OWNER:
            return names
        theirs = people.policy(context.user_id, tuple(there), in_turn=context.caller == "agent")
        return {name for name in names if theirs.permits(name)}

    async def ask(question: _Question, context: CallContext) -> _Heard:
        # Without an id of its own: it only reads, and the whole search is recorded as one call.
        inner = context.model_copy(update={"call_id": None})
        try:
            async with asyncio.timeout(_SECONDS_PER_SOURCE):
                result = await plain.call(question.tool, question.arguments, inner)
        except TimeoutError:
            return _Heard(question, [], trouble="It did not answer in time.")
        if result.is_error:
            return _Heard(question, [], trouble=result.text[:300])
        return _Heard(question, list(question.read(result.structured or {})), result.trust)

    async def find(arguments: JsonObject, context: CallContext) -> ToolResult:
        query, limit = str(arguments["query"]), cast("int", arguments.get("limit", 10))
        open_to_them = usable(context)
        questions = [question for question in _questions(query) if question.tool in open_to_them]
        heard = await asyncio.gather(*(ask(question, context) for question in questions))
        words = fold(query).split()
        fitting = [sighting for one in heard for sighting in one.sightings if sighting.says(words)]
        found = sorted(gathered(fitting), key=lambda person: _rank(person, fold(query)))
        trust: Trust = "trusted" if all(one.trust == "trusted" for one in heard) else "untrusted"
        return _result(found, limit, heard, trust)

    annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=True)
    return NativeTool(
        "find_contact",
        "Find a person in everything that is connected: contacts, Telegram and mail. Tells addresses, phone numbers, "
        "usernames, and where each is known from.",
        _SCHEMA,
        find,
        annotations,
        group="Contacts",
        timeout_seconds=2 * _SECONDS_PER_SOURCE,
    )


def _questions(query: str) -> list[_Question]:
    word = " ".join(query.replace('"', " ").split())
    memory = "memory_list_contacts"
    questions = [
        _Question(memory, {"name": query, "limit": 50}, _from_memory),
        _Question(memory, {"company": query, "limit": 50}, _from_memory),
        _Question("telegram_list_contacts", {}, partial(_from_telegram, kept=True)),
        _Question("telegram_search_users", {"query": query.lstrip("@") or query, "limit": 20}, _from_telegram),
        _Question("gmail_list_emails", {"query": f'from:"{word}" OR to:"{word}"', "max_results": 50}, _from_mail),
    ]
    if "@" in word.strip("@"):
        questions.append(_Question(memory, {"email": word, "limit": 5}, _from_memory))
    return questions


def _from_memory(answer: JsonObject) -> Iterator[Sighting]:
    for row in _rows(answer, "contacts"):
        key = row.get("id")
        email = _text(row, "email")
        yield Sighting(
            source="memory",
            name=_text(row, "name") or "",
            emails=(email,) if email else (),
            company=_text(row, "company"),
            role=_text(row, "role"),
            notes=_text(row, "notes"),
            contact_id=key if isinstance(key, int) else None,
            kept=row.get("trust") != "untrusted",
        )


def _from_telegram(answer: JsonObject, *, kept: bool = False) -> Iterator[Sighting]:
    for row in _rows(answer, "people"):
        phone = _text(row, "phone")
        yield Sighting(
            source="telegram",
            name=_text(row, "name") or "",
            phones=(phone,) if phone else (),
            username=_text(row, "username"),
            chat_id=_text(row, "chat_id"),
            kept=kept,
        )


def _from_mail(answer: JsonObject) -> Iterator[Sighting]:
    for row in _rows(answer, "emails"):
        for header in ("sender", "to"):
            for name, email in addresses(_text(row, header) or ""):
                yield Sighting(source="gmail", name=name, emails=(email,))


def _rows(answer: JsonObject, name: str) -> list[JsonObject]:
    found = answer.get(name)
    rows = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("JsonObject", row) for row in rows if isinstance(row, dict)]


def _text(row: JsonObject, name: str) -> str | None:
    value = row.get(name)
    return value[:1000] or None if isinstance(value, str) else None


def _rank(person: Person, query: str) -> tuple[bool, int, str]:
    """Whoever is called exactly so first, then who is known in more places."""
    names = [fold(one.name) for one in person.sightings]
    exact = query in names or any(query in map(fold, one.emails) for one in person.sightings)
    return not exact, -len({one.source for one in person.sightings}), min(filter(None, names), default="~")


def _result(people: list[Person], limit: int, heard: list[_Heard], trust: Trust) -> ToolResult:
    contacts = [person.describe() for person in people[:limit]]
    asked = {one.question.server for one in heard if one.trouble is None}
    # A server that answered one of two questions was asked, if not fully.
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
