"""Asked before every call of an agent: what is the call, what is known of its turn, what does policy say (POL-04)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from annabelle.core.tools import CallContext, JsonObject, ToolSpec
from annabelle.core.trust import Decision
from annabelle.hub.trust.address_book import AddressBook
from annabelle.hub.trust.turn_facts import turn_facts
from annabelle.policy.decide import decide, needs_facts
from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.people import answered, names_of_writers
from annabelle.policy.rules.rule import RuleBook
from annabelle.policy.tools.guess import guessed
from annabelle.policy.tools.reviewed import HUB
from annabelle.policy.tools.traits import Traits
from annabelle.store import recent_turns
from annabelle.store.database import Database

_READING: Final = frozenset({"read_private", "read_untrusted"})


@dataclass(frozen=True, slots=True)
class JudgeParts:
    """What the judge looks things up in. `reviewed` is what people wrote of a tool."""

    database: Database
    rules: RuleBook
    reviewed: Callable[[ToolSpec], Traits | None]
    own_addresses: Callable[[], frozenset[str]] = frozenset
    book: AddressBook | None = None


class TrustJudge:
    """Decides from stored facts alone: nothing a model, a thinker or a server says of itself has a part in it."""

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> Decision:
        parts, own = self._parts, _own_chat(context)
        call = self._call(tool, arguments, own)
        if not needs_facts(call):
            return decide(call, TurnFacts())
        rules = await parts.rules.for_call(context.user_id, context.agent_id)
        message_id = context.message_id
        if message_id is None:
            return decide(call, TurnFacts(), rules)
        # Before foreign content was seen, reading depends on nothing: the rest of the facts is not loaded. But an item
        # of the vault must be named even then.
        reads = set(call.classes) <= _READING and not call.traits.of
        if not rules and reads and not await self._tainted(message_id):
            return decide(call, TurnFacts())

        book = parts.book if _reaches_people(call) else None
        people = await book.people(context) if book is not None else ()

        def look(conn: Connection) -> tuple[Decision, TurnFacts]:
            # Decided where it is loaded, off the loop: a long conversation takes a while to read.
            turn = turn_facts(conn, message_id, own | parts.own_addresses(), people)
            return decide(call, turn, rules), turn

        decision, turn = await parts.database.read(look)
        if book is None or decision.verdict != "ask":
            return decision
        reached = (one for thing in turn.things_of(call) for one in answered(thing, turn))
        names = names_of_writers((*call.values(call.traits.to), *reached), turn)
        if not names:
            return decision
        # Somebody known from their mail alone: worth a look into the mailbox before the person is asked.
        return decide(call, replace(turn, writers=await book.writers(names, context)), rules)

    async def _tainted(self, message_id: str) -> bool:
        return await self._parts.database.read(lambda conn: recent_turns.is_tainted(conn, message_id))

    def _call(self, tool: ToolSpec, arguments: JsonObject, own: frozenset[str]) -> CallFacts:
        traits = self._parts.reviewed(tool) or guessed(tool)
        call = CallFacts(tool.name, arguments, traits, traits.classes_of(arguments))
        if tool.server == HUB and traits.to and all(one.casefold() in own for one in call.values(traits.to)):
            return CallFacts(tool.name, arguments, traits, traits.classes)  # said to whom the agent talks with anyway
        return call


def _reaches_people(call: CallFacts) -> bool:
    return "send_outside" in call.classes or any(call.values(call.traits.to))


def _own_chat(context: CallContext) -> frozenset[str]:
    return frozenset(one.casefold() for one in (context.chat_id, context.channel) if one) | {"me"}
