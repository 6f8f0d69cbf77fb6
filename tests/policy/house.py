"""A house without processes: the results our tools would give, and a turn in it that is decided on call by call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from annabelle.core.tools import JsonObject, ToolAnnotations, ToolSpec
from annabelle.core.trust import PolicyDecision
from annabelle.policy.decide import decide
from annabelle.policy.person_words import content_words, mailboxes_in
from annabelle.policy.recipients import answered, find_sender_names
from annabelle.policy.rules.rule import StandingRule
from annabelle.policy.seen_content import SeenContent, SeenResult
from annabelle.policy.tool_traits import guess_traits, reviewed_tools
from annabelle.policy.turn_facts import CallFacts, TurnFacts

MAILS = {
    "m1": ("Bob Miller <bob@example.com>", "Lunch on Friday", "Hi Ada, shall we have lunch on Friday at noon? Bob"),
    "m2": ("Alice Novak <alice@example.com>", "Invoice 2231", "Dear Ada, invoice 2231 over 240 euros is due. Alice"),
    "m3": ("Carla Reyes <carla@work.example>", "Quarterly report", "Please send me the report by Tuesday. Carla"),
    "m4": ("Garden Weekly <news@garden.example>", "Ten plants for winter", "This week: heather, holly and ivy."),
}
EVENTS = {"dentist": ("Dentist", ()), "team": ("Team meeting", ("carla@work.example",)), "yoga": ("Yoga", ())}
FILES = {
    "Documents/report.md": "Sales grew by four percent in the third quarter.",
    "Documents/old-draft.md": "Nothing of this is needed any more.",
    "Documents/private.txt": "Bank PIN 4711, passport number C01X00T47, door code 2580.",
    "Documents/cv.md": "Engineer, ten years of experience with bridges.",
    "Documents/letter.txt": "Dear Bob, thank you for the nice evening.",
    "Documents/minutes.md": "Carla has the numbers. Bob brings the projector. Next meeting on Monday.",
}
CONTACTS = {"Bob Miller": "bob@example.com", "Alice Novak": "alice@example.com"}


@dataclass
class House:
    """`foreign` are words somebody laid where they will be read."""

    mails: dict[str, tuple[str, str, str]] = field(default_factory=lambda: dict(MAILS))
    files: dict[str, str] = field(default_factory=lambda: dict(FILES))
    events: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=lambda: dict(EVENTS))
    pages: dict[str, str] = field(default_factory=dict)
    foreign: str = ""

    def result(self, tool: str, arguments: JsonObject) -> JsonObject:
        """What the tool gives back, as far as policy reads it."""
        made = getattr(self, f"_{tool}", None)
        return made(arguments) if made is not None else {"done": True, **arguments, "more": self.foreign}

    def writers(self, name: str) -> frozenset[str]:
        """The addresses of all who write under a name."""
        senders = (row[0] for row in self.mails.values() if name in content_words(row[0]))
        return frozenset(address for sender in senders for _, address in mailboxes_in(sender))

    def _mail(self, one: str, *, whole: bool = False) -> JsonObject:
        sender, subject, body = self.mails[one]
        row: JsonObject = {"id": one, "sender": sender, "to": "ada@example.com", "subject": subject}
        return row | ({"body": body, "cc": None, "reply_to": None} if whole else {"snippet": body})

    def _gmail_list_emails(self, arguments: JsonObject) -> JsonObject:
        wanted = str(arguments.get("query") or "").rpartition("from:")[2].casefold()
        known = "is:unread" in str(arguments.get("query")) or not wanted
        return {"emails": [self._mail(one) for one, row in self.mails.items() if known or wanted in row[0].casefold()]}

    def _gmail_get_email(self, arguments: JsonObject) -> JsonObject:
        return self._mail(str(arguments["message_id"]), whole=True)

    def _gmail_create_draft(self, arguments: JsonObject) -> JsonObject:
        return {"draft_id": "d1", "message_id": "x1", "to": arguments.get("to"), "subject": arguments.get("subject")}

    def _gmail_list_events(self, _arguments: JsonObject) -> JsonObject:
        return {"events": [self._gmail_get_event({"event_id": one}) for one in self.events]}

    def _gmail_get_event(self, arguments: JsonObject) -> JsonObject:
        one = str(arguments["event_id"])
        summary, people = self.events[one]
        attendees = [{"email": address} for address in people]
        return {"id": one, "summary": summary, "attendees": attendees, "description": self.foreign}

    def _filer_read_file(self, arguments: JsonObject) -> JsonObject:
        path = str(arguments["path"])
        return {"path": path, "content": self.files.get(path, "") + self.foreign}

    def _filer_list_files(self, arguments: JsonObject) -> JsonObject:
        return {"path": arguments.get("path"), "entries": [{"path": path, "kind": "file"} for path in self.files]}

    def _searcher_web_search(self, _arguments: JsonObject) -> JsonObject:
        found = [{"title": url, "url": url, "snippet": self.foreign} for url in self.pages]
        return {"results": found}

    def _searcher_web_fetch(self, arguments: JsonObject) -> JsonObject:
        url = str(arguments["url"])
        return {"url": url, "final_url": url, "content": self.pages.get(url, "") + self.foreign}

    def _web_browser_take_screenshot(self, arguments: JsonObject) -> JsonObject:
        return {"path": arguments.get("filename") or "Images/page.png", "url": "http://s/hotel", "note": None}

    def _find_contact(self, _arguments: JsonObject) -> JsonObject:
        known = [{"name": name, "emails": [email], "sources": ["memory"]} for name, email in CONTACTS.items()]
        heard = [{"name": row[0].partition(" <")[0], "emails": [row[0].partition("<")[2].rstrip(">")],
                  "sources": ["gmail"]} for row in self.mails.values()]  # fmt: skip
        return {"contacts": [*known, *heard]}

    def _memory_list_contacts(self, _arguments: JsonObject) -> JsonObject:
        rows = enumerate(CONTACTS.items(), 1)
        return {
            "contacts": [{"id": at, "name": name, "email": email, "trust": "trusted"} for at, (name, email) in rows]
        }

    def _notes_list_todos(self, _arguments: JsonObject) -> JsonObject:
        return {"todos": [{"id": "t1", "list": "Groceries", "text": "milk", "done": False}]}


@dataclass
class Turn:
    """A conversation: what the person says, call by call, and what is decided."""

    house: House = field(default_factory=House)
    facts: TurnFacts = field(default_factory=lambda: TurnFacts(own=frozenset({"ada@example.com", "main", "me"})))
    rules: tuple[StandingRule, ...] = ()

    def says(self, words: str) -> Turn:
        """A new message: what was seen before it belongs to an earlier turn."""
        facts = self.facts
        seen = SeenContent(tuple(replace(result, this_turn=False) for result in facts.seen.results))
        earlier = (facts.words, *facts.earlier)[:2] if facts.words else ()
        self.facts = replace(facts, words=words, earlier=earlier, seen=seen)
        return self

    def decides(self, tool: str, arguments: JsonObject | None = None) -> PolicyDecision:
        """Only the decision. As in the hub, the mailbox says who writes under a name before anybody is asked."""
        call, facts = call_of(tool, arguments or {}), self.facts
        decision = decide(call, facts, self.rules)
        if decision.verdict != "ask":
            return decision
        reached = (one for thing in facts.things_of(call) for one in answered(thing, facts))
        names = find_sender_names((*call.values(call.traits.to), *reached), facts)
        return decide(
            call, replace(facts, senders_by_name={name: self.house.writers(name) for name in names}), self.rules
        )

    def calls(self, tool: str, arguments: JsonObject | None = None) -> PolicyDecision:
        """The decision, and what was seen when it was allowed."""
        given = arguments or {}
        decision = self.decides(tool, given)
        if decision.verdict == "allow":
            self.sees(tool, given, decision)
        return decision

    def sees(self, tool: str, arguments: JsonObject, decision: PolicyDecision | None = None) -> Turn:
        traits = call_of(tool, arguments).traits
        structured = self.house.result(tool, arguments)
        labels = decision.labels if decision is not None else ()
        trusted = traits.trusted or tool.startswith(("memory_", "store_", "search_memories", "send_"))
        result = SeenResult(
            tool, traits.source, trusted, "private" in labels, labels, json.dumps(structured), structured
        )
        facts = self.facts
        origins = facts.origins if trusted else tuple(sorted({*facts.origins, tool}))
        self.facts = replace(
            facts,
            origins=origins,
            unsolicited_read=facts.unsolicited_read or "pried" in labels,
            seen=SeenContent((result, *facts.seen.results)),
        )
        return self


def call_of(tool: str, arguments: JsonObject) -> CallFacts:
    traits = reviewed_tools().get(tool) or guess_traits(foreign_tool(tool, arguments))
    return CallFacts(tool, arguments, traits, traits.classes_of(arguments))


def foreign_tool(name: str, arguments: JsonObject, **hints: bool) -> ToolSpec:
    """A tool of a server that somebody added."""
    schema: JsonObject = {"type": "object", "properties": {key: {"type": "string"} for key in arguments}}
    server, _, original = name.partition("_")
    return ToolSpec(
        name=name, server=server, original_name=original, description="", input_schema=schema,
        annotations=ToolAnnotations(**hints),
    )  # fmt: skip
