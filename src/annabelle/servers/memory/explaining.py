"""Tools that tell why something is known, and bring back what should not have gone."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.fact_rows import FactRow, fact_row, fact_rows, learnt_from
from annabelle.servers.memory.fact_words import Agent
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import owner_of
from annabelle.servers.memory.wording import RowId, shortened, trust_of

if TYPE_CHECKING:
    from annabelle.servers.memory import keeping, restoring
    from annabelle.store.memory import fact_sources
else:
    keeping = deferred_module("annabelle.servers.memory.keeping")
    restoring = deferred_module("annabelle.servers.memory.restoring")
    fact_sources = deferred_module("annabelle.store.memory.fact_sources")

_SHOWN = 600
_TOLD_BY = {
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

    def lines(self) -> list[str]:
        answer = _one_line(self.agent_response)
        # What was answered may repeat what a page said, so it stays quoted.
        shown = answer if self.trust == "trusted" else f"{json.dumps(answer, ensure_ascii=False)} (untrusted)"
        return [f"  user: {_one_line(self.user_message)}", f"  answer: {shown}"]


class FactExplained(Result):
    """Why a fact is known."""

    fact: FactRow
    source: FactSource
    said: SourceTurn | None = Field(description="The turn it was learnt in, when that is still remembered")
    retired_by: str | None = Field(
        description="Who made it history, where that is known: agent, cli, api, tidy or undo"
    )
    earlier: list[FactRow] = Field(description="What it took the place of, the latest first")
    later: list[FactRow] = Field(description="What took its place, up to the current one")
    trust: Trust

    def text(self) -> str:
        fact, source = self.fact, self.source
        lines = [
            fact.line(),
            f"Known since {fact.created_at:%Y-%m-%d %H:%M} UTC, {_TOLD_BY.get(source.kind, source.kind)}"
            f" (source: {fact.source}; confidence {fact.confidence:g}; {fact.trust}).",
            f"It holds from {fact.valid_from:%Y-%m-%d}"
            + (f" until {fact.valid_until:%Y-%m-%d}." if fact.valid_until else "."),
        ]
        where = [f"{name} {value}" for name, value in self._places() if value is not None]
        lines += [f"Learnt in {', '.join(where)}."] if where else []
        lines += [f"Tools seen by then: {', '.join(source.tools)}."] if source.tools else []
        lines += [f"The words: {json.dumps(source.quote, ensure_ascii=False)}"] if source.quote else []
        lines += ["What was said:", *self.said.lines()] if self.said else []
        lines += [f"Made of {', '.join(map(str, source.merged))}."] if source.merged else []
        if fact.retired_at is not None:
            by = f" by {self.retired_by}" if self.retired_by else ""
            lines.append(f"History since {fact.retired_at:%Y-%m-%d %H:%M} UTC: {fact.retired_because}{by}.")
        lines += [f"Before: {old.line()}" for old in self.earlier]
        lines += [f"After: {new.line()}" for new in self.later]
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
    fact: FactRow
    retired: list[FactRow] = Field(description="What had taken its place and is history now")
    trust: Trust

    def text(self) -> str:
        if self.outcome == "current":
            return f"It is current already: {self.fact.line()}"
        return "\n".join([f"Restored {self.fact.line()}", *(f"History now: {old.line()}" for old in self.retired)])


class ExplainTools:
    """explain_fact and restore_fact."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def explain_fact(
        self,
        fact_id: Annotated[RowId, Field(description="The fact in question, current or not")],
        agent_id: Agent = None,
    ) -> FactExplained:
        """Tell why a fact is known: when and from which message, tool or words it was learnt, how far it can be
        trusted, what it took the place of and what took its place."""
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        found = await library.database.read(
            lambda c: fact_sources.history(c, owner, keeping.require_fact(c, owner, fact_id))
        )
        row, earlier, later = fact_row(found.fact), fact_rows(found.earlier), fact_rows(found.later)
        said = None
        if (turn := found.said) is not None:
            said = SourceTurn(
                conversation_id=turn.id,
                said_at=turn.said_at,
                user_message=turn.user_message,
                agent_response=turn.agent_response,
                trust=turn.trust,
            )
        labels = [row.trust, *(one.trust for one in (*earlier, *later)), *([said.trust] if said else [])]
        return FactExplained(
            fact=row,
            source=_source(found.fact),
            said=said,
            retired_by=_retired_by(found.fact),
            earlier=earlier,
            later=later,
            trust=trust_of(*labels),
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
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        done = await restoring.restore(library, owner, fact_id, keep_successor=keep_successor)
        row, gone = fact_row(done.fact), fact_rows(done.retired)
        return FactRestored(
            fact_id=row.id,
            outcome="restored" if done.changed else "current",
            fact=row,
            retired=gone,
            trust=trust_of(row.trust, *(old.trust for old in gone)),
        )


def _source(fact: keeping.Fact) -> FactSource:
    origin = fact.origin

    def text(name: str) -> str | None:
        value = origin.get(name)
        return value if isinstance(value, str) else None

    number, merged = origin.get("conversation_id"), origin.get("merged")
    return FactSource(
        kind=text("kind") or "agent",
        message_id=text("message_id"),
        thread_id=text("thread_id"),
        channel=text("channel"),
        call_id=text("call_id"),
        conversation_id=number if isinstance(number, int) else None,
        quote=text("quote"),
        tools=learnt_from(origin),
        merged=[n for n in cast("list[object]", merged) if isinstance(n, int)] if isinstance(merged, list) else [],
    )


def _retired_by(fact: keeping.Fact) -> str | None:
    noted = fact.origin.get("retired")
    kind = cast("JsonObject", noted).get("kind") if isinstance(noted, dict) else None
    return kind if isinstance(kind, str) else None


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _SHOWN)
