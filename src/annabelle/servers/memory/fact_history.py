"""Tools that explain where a fact came from and restore a retired one."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.result_text import for_model
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import Agent, RowId, lowest_trust, resolve_owner, shorten
from annabelle.servers.memory.fact_fields import FactShown, show_fact, show_facts, tools_of_origin
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from annabelle.servers.memory import fact_writer
    from annabelle.store.memory import fact_history
else:
    fact_writer = deferred_module("annabelle.servers.memory.fact_writer")
    fact_history = deferred_module("annabelle.store.memory.fact_history")


_SHOWN = 600
_SOURCE_TEXTS = {
    "agent": "stored by the agent during a conversation",
    "conversation": "read from a conversation after it",
    "cli": "told by a person at the terminal",
    "api": "told by a person through the API",
    "hub": "stored by Annabelle",
    "tidy": "made of other facts when they were tidied",
    "file": "imported from a file",
}


class FactSource(BaseModel):
    """Where a fact came from."""

    model_config = ConfigDict(frozen=True)

    kind: str = Field(description="agent, conversation, cli, api, hub, tidy or file")
    message_id: str | None
    thread_id: str | None
    channel: str | None
    call_id: str | None
    conversation_id: int | None
    quote: str | None = Field(description="The words it was read from")
    tools: list[str] = Field(description="Tools whose output had been seen by then")
    merged: list[int] = Field(description="The facts it was made of")


class SourceTurn(BaseModel):
    """What was said where a fact came from."""

    model_config = ConfigDict(frozen=True)

    conversation_id: int
    said_at: datetime
    user_message: str
    agent_response: str
    trust: Trust

    def to_lines(self) -> list[str]:
        answer = _one_line(self.agent_response)
        # What was answered may repeat what a page said, so it stays quoted.
        mark = for_model("(untrusted)", "(others may have written this)")
        shown = answer if self.trust == "trusted" else f"{json.dumps(answer, ensure_ascii=False)} {mark}"
        return [f"  user: {_one_line(self.user_message)}", f"  answer: {shown}"]


class FactExplained(Result):
    """Why a fact is known."""

    fact: FactShown
    source: FactSource
    said: SourceTurn | None = Field(description="The turn it was learnt in, when that is still remembered")
    retired_by: str | None = Field(
        description="Who made it history, where that is known: agent, cli, api, tidy or undo"
    )
    earlier: list[FactShown] = Field(description="What it took the place of, the latest first")
    later: list[FactShown] = Field(description="What took its place, up to the current one")
    trust: Trust

    def to_text(self) -> str:
        fact, source = self.fact, self.source
        lines = [
            fact.to_line(),
            f"Known since {fact.created_at:%Y-%m-%d %H:%M} UTC, {_SOURCE_TEXTS.get(source.kind, source.kind)}"
            f" (source: {fact.source}; confidence {fact.confidence:g}; {fact.trust}).",
            f"It holds from {fact.valid_from:%Y-%m-%d}"
            + (f" until {fact.valid_until:%Y-%m-%d}." if fact.valid_until else "."),
        ]
        where = [f"{name} {value}" for name, value in self._places() if value is not None and for_model("id")]
        lines += [f"Learnt in {', '.join(where)}."] if where else []
        lines += [f"Tools seen by then: {', '.join(source.tools)}."] if source.tools else []
        lines += [f"The words: {json.dumps(source.quote, ensure_ascii=False)}"] if source.quote else []
        lines += ["What was said:", *self.said.to_lines()] if self.said else []
        lines += [f"Made of {', '.join(map(str, source.merged))}."] if source.merged else []
        if fact.retired_at is not None:
            by = f" by {self.retired_by}" if self.retired_by else ""
            lines.append(f"History since {fact.retired_at:%Y-%m-%d %H:%M} UTC: {fact.retired_because}{by}.")
        lines += [f"Before: {old.to_line()}" for old in self.earlier]
        lines += [f"After: {new.to_line()}" for new in self.later]
        return "\n".join(lines)

    def _places(self) -> list[tuple[str, object]]:
        source = self.source
        return [
            ("conversation", source.conversation_id),
            ("message", source.message_id),
            ("thread", source.thread_id),
            ("channel", source.channel),
        ]


class FactRestored(Result):
    """A fact that is current again, or was all the time."""

    fact_id: int
    outcome: Literal["restored", "current"] = Field(description="`current` when it was no history")
    fact: FactShown
    retired: list[FactShown] = Field(description="What had taken its place and is history now")
    trust: Trust

    def to_text(self) -> str:
        if self.outcome == "current":
            return f"It is current already: {self.fact.to_line()}"
        return "\n".join(
            [f"Restored {self.fact.to_line()}", *(f"History now: {old.to_line()}" for old in self.retired)]
        )


class FactHistoryTools(MemoryTools):
    """explain_fact and restore_fact."""

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def explain_fact(
        self,
        fact_id: Annotated[RowId, Field(description="The fact in question, current or not")],
        agent_id: Agent = None,
    ) -> FactExplained:
        """Tell why a fact is known: when and from which message, tool or words it was learnt, how far it can be
        trusted, what it took the place of and what took its place."""
        owner = resolve_owner(current_call(), agent_id)
        found = await self._read(
            lambda c: fact_history.read_fact_history(c, owner, fact_writer.require_fact(c, owner, fact_id))
        )
        row, earlier, later = show_fact(found.fact), show_facts(found.earlier), show_facts(found.later)
        said = None
        if found.said is not None:
            said = SourceTurn.model_validate({**asdict(found.said), "conversation_id": found.said.id})
        labels = [row.trust, *(one.trust for one in (*earlier, *later)), *([said.trust] if said else [])]
        return FactExplained(
            fact=row,
            source=_read_source(found.fact),
            said=said,
            retired_by=_retired_by(found.fact),
            earlier=earlier,
            later=later,
            trust=lowest_trust(*labels),
        )

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False, audience="people")
    async def restore_fact(
        self,
        fact_id: Annotated[RowId, Field(description="A fact that was replaced or deleted")],
        keep_successor: Annotated[
            bool, Field(description="Keep what took its place as well, because both are true")
        ] = False,
        agent_id: Agent = None,
    ) -> FactRestored:
        """Bring back a fact that was replaced or deleted. What had taken its place becomes history, unless
        keep_successor is true."""
        owner = resolve_owner(current_call(), agent_id)
        memory = await self._memory.get()
        done = await fact_writer.restore_fact(memory, owner, fact_id, keep_successor=keep_successor)
        row, gone = show_fact(done.fact), show_facts(done.retired)
        return FactRestored(
            fact_id=row.id,
            outcome="restored" if done.changed else "current",
            fact=row,
            retired=gone,
            trust=lowest_trust(row.trust, *(old.trust for old in gone)),
        )


def _read_source(fact: fact_writer.Fact) -> FactSource:
    origin = fact.origin

    def get_text(name: str) -> str | None:
        value = origin.get(name)
        return value if isinstance(value, str) else None

    number, merged = origin.get("conversation_id"), origin.get("merged")
    return FactSource(
        kind=get_text("kind") or "agent",
        message_id=get_text("message_id"),
        thread_id=get_text("thread_id"),
        channel=get_text("channel"),
        call_id=get_text("call_id"),
        conversation_id=number if isinstance(number, int) else None,
        quote=get_text("quote"),
        tools=tools_of_origin(origin),
        merged=[n for n in cast("list[object]", merged) if isinstance(n, int)] if isinstance(merged, list) else [],
    )


def _retired_by(fact: fact_writer.Fact) -> str | None:
    noted = fact.origin.get("retired")
    kind = cast("JsonObject", noted).get("kind") if isinstance(noted, dict) else None
    return kind if isinstance(kind, str) else None


def _one_line(text: str) -> str:
    return shorten(" ".join(text.split()), _SHOWN)
