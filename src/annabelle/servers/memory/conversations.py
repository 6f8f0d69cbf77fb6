"""Tools for conversations: keep a turn, find turns, and read them for facts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from annabelle.core.contract import PastTurn
from annabelle.core.errors import InvalidArguments
from annabelle.core.messages import now
from annabelle.core.result_text import for_model
from annabelle.core.trust import Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import (
    Label,
    RowId,
    clean_text,
    lowest_trust,
    mask_secrets,
    read_date_range,
    resolve_origin,
    resolve_owner,
    start_of,
)
from annabelle.servers.memory.lazy_memory import MemoryTools
from annabelle.servers.memory.recall_result import RecalledTurn, load_turns
from annabelle.servers.memory.search.hits import Tier

if TYPE_CHECKING:
    from annabelle.servers.memory import open_memory
    from annabelle.store.memory import conversations
else:
    open_memory = deferred_module("annabelle.servers.memory.open_memory")
    conversations = deferred_module("annabelle.store.memory.conversations")

_log = logging.getLogger(__name__)

KEPT_CHARACTERS = 100_000
"""Of a longer message the beginning is kept."""

READ_CHARACTERS = 8_000
"""Of a longer message the beginning is read for facts: more would not fit into one answer."""

Agent = Annotated[str | None, Field(description="The agent whose conversations are meant; leave it out for your own")]
Query = Annotated[str, Field(description="What to look for: a question or a few words, in any language")]
MessageText = Annotated[str, AfterValidator(lambda text: clean_text(text[: KEPT_CHARACTERS + 1]))]


class ConversationStored(Result):
    """A turn that is remembered."""

    conversation_id: int
    status: Literal["stored", "known"] = Field(description="known: this message was stored before, nothing changed")
    masked: list[str] = Field(default=[], description="Kinds of secrets that were masked before it was kept")
    shortened: bool = Field(default=False, description="Whether a message was too long to be kept whole")
    trust: Trust

    def to_text(self) -> str:
        notes = [
            *([f"Masked before it was kept: {', '.join(self.masked)}."] if self.masked else []),
            *([f"Only the first {KEPT_CHARACTERS:,} characters of a message are kept."] if self.shortened else []),
        ]
        said = "Remembered" if self.status == "stored" else "Known already"
        return " ".join([f"{said}{for_model(f' as conversation {self.conversation_id}')}.", *notes])


class ConversationsFound(Result):
    """Turns, best first."""

    tier: Tier
    conversations: list[RecalledTurn]
    trust: Trust

    def to_text(self) -> str:
        return "\n".join(turn.to_line() for turn in self.conversations) or "Nothing like it was talked about."


class UnextractedTurns(Result):
    turns: list[PastTurn]
    trust: Trust


class TurnsMarkedExtracted(Result):
    marked: int = Field(description="How many turns were marked now; those marked before are not counted")
    trust: Trust = "trusted"


class ConversationTools(MemoryTools):
    """store_conversation, search_conversations, list_unextracted, mark_extracted."""

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def store_conversation(
        self,
        user_message: Annotated[MessageText, Field(description="What was said")],
        agent_response: Annotated[MessageText, Field(description="What was answered; may be empty")],
        session_id: Annotated[
            Label | None, Field(description="The conversation it belongs to; by default the current one")
        ] = None,
        tags: Annotated[list[Label] | None, Field(max_length=20, description="Words to file it under")] = None,
        tools: Annotated[
            list[Label] | None, Field(max_length=100, description="Tools the answer was made with")
        ] = None,
        said_at: Annotated[
            str | None, Field(max_length=40, description="When, as in 2026-01-31T08:00; by default now")
        ] = None,
        speaker: Annotated[Label | None, Field(description="Who said it, where a name is known")] = None,
        agent_id: Agent = None,
    ) -> ConversationStored:
        """Remember one exchange word for word, to be found again by search_conversations. Conversations with Annabelle
        are remembered by themselves; this is for those that took place elsewhere. Secrets in it are masked."""
        call = current_call()
        owner, (trust, _) = resolve_owner(call, agent_id), resolve_origin(call)
        if not user_message and not agent_response:
            raise InvalidArguments("There is nothing to remember: both messages are empty.", field="user_message")
        at = None if said_at is None else start_of(said_at, self._zone(), "said_at")
        shortened = max(len(user_message), len(agent_response)) > KEPT_CHARACTERS
        said, in_said = mask_secrets(user_message[:KEPT_CHARACTERS])
        answered, in_answered = mask_secrets(agent_response[:KEPT_CHARACTERS])
        masked = list(dict.fromkeys((*in_said, *in_answered)))
        if masked:
            _log.warning("a conversation held a %s, which was masked", " and a ".join(masked))
        memory = await self._memory.get()
        new = conversations.NewTurn(
            session_id=session_id or call.thread_id or call.chat_id or "",
            user_message=said,
            agent_response=answered,
            said_at=at or now(),
            speaker=speaker or "",
            tags=tuple(dict.fromkeys(tags or ())),
            tools=tuple(dict.fromkeys(tools or ())),
            trust=trust,
            # Only the hub knows of a message that it was delivered, and stores each once however often it tries.
            message_id=call.message_id if call.caller == "hub" else None,
        )
        turn, is_new = await open_memory.store_turn(memory, owner, new)
        return ConversationStored(
            conversation_id=turn.id,
            status="stored" if is_new else "known",
            masked=masked,
            shortened=shortened,
            trust=turn.trust,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def search_conversations(
        self,
        query: Query,
        limit: Annotated[int, Field(ge=1, le=50, description="How many turns at most")] = 10,
        date_from: Annotated[
            str | None, Field(max_length=40, description="Said on this day or later, as in 2026-01-31")
        ] = None,
        date_to: Annotated[str | None, Field(max_length=40, description="Said on this day or earlier")] = None,
        agent_id: Agent = None,
    ) -> ConversationsFound:
        """Find what was said in earlier conversations, by meaning and by words, with what was said right before and
        after. Name who said it or when, if it is known: both help."""
        owner = resolve_owner(current_call(), agent_id)
        since, until = read_date_range(date_from, date_to, self._zone())
        if not query.strip():
            raise InvalidArguments(
                "query is empty.", hint="query_timeline tells what was said in a time.", field="query"
            )
        memory = await self._memory.get()
        found = await memory.search.search_conversations(owner, query, limit, since=since, until=until)
        rows = await memory.database.read(lambda c: load_turns(c, owner, found))
        turns = [
            turn
            for turn in rows
            if (since is None or turn.said_at >= since) and (until is None or turn.said_at < until)
        ]
        return ConversationsFound(
            tier=found.tier, conversations=turns, trust=lowest_trust(*(turn.least_trust() for turn in turns))
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def list_unextracted(
        self,
        session_id: Annotated[str | None, Field(description="Only of this conversation; by default of all")] = None,
        limit: Annotated[int, Field(ge=1, le=50, description="How many turns at most")] = 10,
        agent_id: Agent = None,
    ) -> UnextractedTurns:
        """The last turns that no facts were read from yet, oldest first."""
        owner = resolve_owner(current_call(), agent_id)
        turns = await self._read(lambda c: conversations.list_unextracted(c, owner, session_id, limit))
        rows = [
            PastTurn(
                conversation_id=turn.id,
                message_id=turn.message_id,
                at=turn.said_at,
                user=turn.user_message[:READ_CHARACTERS],
                assistant=turn.agent_response[:READ_CHARACTERS],
                tools=turn.tools,
                trust=turn.trust,
            )
            for turn in turns
        ]
        return UnextractedTurns(turns=rows, trust=lowest_trust(*(turn.trust for turn in turns)))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def mark_extracted(
        self,
        conversation_ids: Annotated[list[RowId], Field(min_length=1, max_length=200, description="Ids of turns")],
        agent_id: Agent = None,
    ) -> TurnsMarkedExtracted:
        """Note that facts were read from these turns, so that it is not done again."""
        owner = resolve_owner(current_call(), agent_id)
        marked = await self._write(lambda c: conversations.mark_extracted(c, owner, conversation_ids))
        return TurnsMarkedExtracted(marked=marked)
