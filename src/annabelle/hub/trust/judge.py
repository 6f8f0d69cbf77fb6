"""Judges every call of an agent by policy, from the stored facts of its turn (POL-04)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, cast, get_args

from sqlalchemy import Connection

from annabelle.core.connections import connection_file
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trace import TraceFile
from annabelle.core.trust import OUTSIDE, Label, PolicyDecision, Source
from annabelle.policy.decide import decide, needs_facts
from annabelle.policy.order_question import OrderQuestion, ask_about
from annabelle.policy.person_words import content_words
from annabelle.policy.recipients import answered, find_sender_names
from annabelle.policy.rules.rule import RuleSource
from annabelle.policy.seen_content import SeenContent, SeenResult
from annabelle.policy.tool_traits import HUB, READING, ToolTraits, guess_traits
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.store import tool_calls
from annabelle.store.database import Database
from annabelle.store.tool_calls import StoredToolResult

_WARNINGS = frozenset({"suspicious", "unscanned"})


def load_turn_facts(
    conn: Connection, message_id: str, own: frozenset[str], people: tuple[SeenResult, ...] = ()
) -> TurnFacts:
    """What the person said and the agent saw in the whole thread. `people` are known contacts."""
    record = tool_calls.read_turn_provenance(conn, message_id)
    return TurnFacts(
        words=record.words,
        earlier=record.earlier,
        origins=record.untrusted,
        suspicious=bool(record.warnings & _WARNINGS),
        unsolicited_read="pried" in record.warnings,
        seen=SeenContent((*map(_to_seen_result, record.results), *people)),
        own=own,
    )


def _to_seen_result(kept: StoredToolResult) -> SeenResult:
    source, structured = kept.result.get("source"), kept.result.get("structured")
    return SeenResult(
        tool=kept.tool,
        source=cast("Source", source) if source in get_args(Source) else None,
        trusted=kept.trusted,
        private="private" in kept.labels,
        labels=tuple(cast("Label", label) for label in kept.labels if label in get_args(Label)),
        text=str(kept.result.get("text") or ""),
        structured=cast("JsonObject", structured) if isinstance(structured, dict) else None,
        this_turn=kept.this_turn,
        failed=kept.result.get("is_error") is True,
        cut=kept.cut,
    )


_LIST: Final = "memory_list_contacts"
_MOST: Final = 200
_SECONDS: Final = 2.0
_MAIL: Final = "gmail_list_emails"
_MAILS: Final = 50
_MAIL_SECONDS: Final = 10.0
_NAMES: Final = 3


class CallTool(Protocol):
    async def __call__(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult: ...


class AddressBook:
    """Looks people up for policy, so that it need not ask about a contact the agent did not look up."""

    def __init__(self, call: CallTool) -> None:
        self._call = call

    async def people(self, context: CallContext) -> tuple[SeenResult, ...]:
        """The user's contacts. Empty if there is no memory server, or it does not answer."""
        found = await self._ask(_LIST, {"limit": _MOST}, context, _SECONDS)
        if found is None:
            return ()
        return (SeenResult(_LIST, "memory", trusted=True, structured=found, this_turn=False),)

    async def writers(self, names: frozenset[str], context: CallContext) -> dict[str, frozenset[str]]:
        """All sender addresses seen with each name, so that an impostor shows up beside the real person."""
        found: dict[str, frozenset[str]] = {}
        for name in sorted(names)[:_NAMES]:
            asked: JsonObject = {"query": f"from:{name}", "max_results": _MAILS}
            mails = await self._ask(_MAIL, asked, context, _MAIL_SECONDS)
            if mails is not None:
                things = SeenResult(_MAIL, "mail", structured=mails).things
                named = (thing for thing in things if name in content_words(thing.sender))
                found[name] = frozenset(address for thing in named for address in thing.addresses("sender"))
        return found

    async def _ask(self, tool: str, arguments: JsonObject, context: CallContext, seconds: float) -> JsonObject | None:
        asked = CallContext(caller="hub", user_id=context.user_id, agent_id=context.agent_id)
        try:
            async with asyncio.timeout(seconds):
                found = await self._call(tool, arguments, asked)
        except (AnnabelleError, TimeoutError):
            return None
        return None if found.is_error else found.structured


class ReadOrder(Protocol):
    """A model's verdict whether a person ordered a call; None if there is none."""

    async def __call__(self, question: OrderQuestion, context: CallContext) -> bool | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustJudge:
    """Decides from stored facts only, never from what a model, a thinker or a server claims.

    `reviewed` returns the traits that people wrote for a tool.
    """

    database: Database
    rules: RuleSource
    reviewed: Callable[[ToolSpec], ToolTraits | None]
    own_addresses: Callable[[], frozenset[str]] = frozenset
    address_book: AddressBook | None = None
    read_order: ReadOrder | None = None
    """Set where a model for it is configured."""
    traces: TraceFile | None = None

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision:
        decision = await self._decide(tool, arguments, context)
        if self.traces is not None and (decision.order or decision.verdict != "allow"):
            told: JsonObject = {"tool": tool.name, "call_id": context.call_id, "verdict": decision.verdict}
            self.traces.write("call.judged", {**told, "order": list(decision.order)})
        return decision

    async def _decide(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision:
        own = _own_chat(context)
        call = self._call(tool, arguments, own)
        if not needs_facts(call):
            return decide(call, TurnFacts())
        rules = await self.rules.for_call(context.user_id, context.agent_id)
        message_id = context.message_id
        if context.confirmed:
            return decide(call, TurnFacts(confirmed=True), rules)
        if message_id is None:
            # What the person allowed an agent of the home, another agent may not do.
            restrictions = tuple(rule for rule in rules if rule.kind != "allow")
            return decide(call, TurnFacts(origins=OUTSIDE), restrictions)
        # Until foreign content was seen, reading is allowed without further facts, except for items of the vault, which
        # must be named.
        reads = set(call.classes) <= READING and not call.traits.of
        if not rules and reads and not await self._tainted(message_id):
            return decide(call, TurnFacts())

        book = self.address_book if _reaches_people(call) else None
        people = await book.people(context) if book is not None else ()

        def decide_from_turn(conn: Connection) -> tuple[PolicyDecision, TurnFacts]:
            # Decide here, off the event loop: a long conversation takes a while to read.
            turn = load_turn_facts(conn, message_id, own | self.own_addresses(), people)
            return decide(call, turn, rules), turn

        decision, turn = await self.database.read(decide_from_turn)
        if self.read_order is not None and decision.verdict != "refuse" and (question := ask_about(call, turn)):
            ordered = await self.read_order(question, context)
            if ordered is not None:
                turn = turn.with_verdict(call.traits.wants, ordered=ordered)
                decision = decide(call, turn, rules)
        if book is None or decision.verdict != "ask":
            return decision
        reached = (one for thing in turn.things_of(call) for one in answered(thing, turn))
        names = find_sender_names((*call.values(call.traits.to), *reached), turn)
        if not names:
            return decision
        # The recipient may be known from mail only: search the mailbox before asking the person.
        return decide(call, replace(turn, senders_by_name=await book.writers(names, context)), rules)

    async def _tainted(self, message_id: str) -> bool:
        return await self.database.read(lambda conn: tool_calls.is_tainted(conn, message_id))

    def _call(self, tool: ToolSpec, arguments: JsonObject, own: frozenset[str]) -> CallFacts:
        traits = self.reviewed(tool) or guess_traits(tool)
        call = CallFacts(tool.name, arguments, traits, traits.classes_of(arguments))
        if tool.server == HUB and traits.to and all(one.casefold() in own for one in call.values(traits.to)):
            return CallFacts(tool.name, arguments, traits, traits.classes)  # sent to the agent's own chat
        return call


def _reaches_people(call: CallFacts) -> bool:
    return "send_outside" in call.classes or any(call.values(call.traits.to))


def _own_chat(context: CallContext) -> frozenset[str]:
    return frozenset(one.casefold() for one in (context.chat_id, context.channel) if one) | {"me"}


_KINDS = (("google", "email"), ("mail", "address"))


def make_own_addresses_reader(home: Home) -> Callable[[], frozenset[str]]:
    """Returns a function that reads the user's own addresses. Unreadable files are ignored."""

    def read_own_addresses() -> frozenset[str]:
        found = (_read_field(connection_file(home, kind), field) for kind, field in _KINDS)
        return frozenset(address.casefold() for address in found if address)

    return read_own_addresses


def _read_field(file: Path, name: str) -> str | None:
    try:
        kept = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    value = cast("dict[str, object]", kept).get(name) if isinstance(kept, dict) else None
    return value if isinstance(value, str) else None
