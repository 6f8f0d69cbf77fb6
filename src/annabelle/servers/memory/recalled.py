"""What was found, as it is shown: the row, where it came from, and why it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.memory import FactCategory, Trust
from annabelle.servers.kit import deferred_module
from annabelle.servers.memory.wording import shortened, trust_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.servers.memory.search.found import Found, Hit
    from annabelle.store.memory import conversations, facts
    from annabelle.store.memory.owner import Owner
else:
    conversations = deferred_module("annabelle.store.memory.conversations")
    facts = deferred_module("annabelle.store.memory.facts")

SHOWN_CHARACTERS = 2_000
NEIGHBOUR_CHARACTERS = 300

Tier = Literal["hybrid", "text", "substring"]


class Why(BaseModel):
    """What a score is made of; what is 0 is left out of the answer's text."""

    model_config = ConfigDict(frozen=True)

    vector: float = Field(0.0, description="Closeness in meaning")
    text: float = Field(0.0, description="Words in common, beside the row that has most")
    context: float = Field(0.0, description="What the turns before and after add")
    speaker: float = Field(0.0, description="1 when the query names who said it")
    date: float = Field(0.0, description="1 when it was said at a time the query names")
    recency: float = 0.0
    confidence: float = 0.0


class Exchange(BaseModel):
    """What was said right before or after, shortened."""

    model_config = ConfigDict(frozen=True)

    id: int
    speaker: str
    user_message: str
    agent_response: str
    trust: Trust


class FoundTurn(BaseModel):
    """A turn of a conversation."""

    model_config = ConfigDict(frozen=True)

    id: int
    session_id: str
    speaker: str
    said_at: datetime
    user_message: str
    agent_response: str
    tags: list[str]
    tools: list[str]
    trust: Trust
    score: float
    parts: Why
    before: Exchange | None = None
    after: Exchange | None = None

    def line(self) -> str:
        who = f"{self.speaker}: " if self.speaker else ""
        answer = f" → {shortened(self.agent_response, 200)}" if self.agent_response else ""
        mark = " (untrusted)" if self.trust == "untrusted" else ""
        said = shortened(self.user_message, 200)
        return f"{self.id}  {self.said_at:%Y-%m-%d %H:%M}  {who}{said}{answer}{mark}"

    def least_trust(self) -> Trust:
        """Of all that is shown with it."""
        return trust_of(self.trust, *(near.trust for near in (self.before, self.after) if near))


class FoundFact(BaseModel):
    """A fact, with where it came from."""

    model_config = ConfigDict(frozen=True)

    id: int
    fact: str
    category: FactCategory
    confidence: float
    source: str
    trust: Trust
    created_at: datetime
    updated_at: datetime
    conversation_id: int | None = Field(default=None, description="The turn it was read from")
    tools: list[str] = Field(default=[], description="Tools whose untrusted output had been seen by then")
    score: float
    parts: Why

    def line(self) -> str:
        mark = ", untrusted" if self.trust == "untrusted" else ""
        source = f", {shortened(self.source, 80)}" if self.source else ""
        return f"{self.id}  {self.fact} ({self.category}{source}, {self.updated_at:%Y-%m-%d}{mark})"


def found_facts(connection: Connection, owner: Owner, found: Found) -> list[FoundFact]:
    """The facts of a search with their sources, in its order; one that was retired meanwhile is left out."""
    rows = facts.get(connection, owner, [hit.row_id for hit in found.hits])
    shown: list[FoundFact] = []
    for hit in found.hits:
        fact = rows.get(hit.row_id)
        if fact is None or not fact.current:
            continue
        read_from, tools = fact.origin.get("conversation_id"), fact.origin.get("tools")
        shown.append(
            FoundFact(
                id=fact.id,
                fact=fact.fact,
                category=fact.category,
                confidence=fact.confidence,
                source=fact.source,
                trust=fact.trust,
                created_at=fact.created_at,
                updated_at=fact.updated_at,
                conversation_id=read_from if isinstance(read_from, int) else None,
                tools=[str(tool) for tool in cast("list[object]", tools)] if isinstance(tools, list) else [],
                score=hit.score,
                parts=_why(hit),
            )
        )
    return shown


def found_turns(connection: Connection, owner: Owner, found: Found) -> list[FoundTurn]:
    """The turns of a search with their neighbours, in its order; one that is gone is left out."""
    rows = _rows(connection, owner, found)
    return [_turn(rows, hit) for hit in found.hits if hit.row_id in rows]


def own_side(connection: Connection, owner: Owner, found: Found) -> tuple[list[FoundTurn], int]:
    """The same without what others may have had a part in, and how many turns are not shown whole.

    Where the hub kept a turn, its message is what the user said; only the answer to it goes. A turn that was brought
    from elsewhere goes as a whole.
    """
    rows = _rows(connection, owner, found)
    own = {
        key: replace(row, agent_response="", trust="trusted") if row.trust == "untrusted" else row
        for key, row in rows.items()
        if row.trust == "trusted" or row.message_id is not None
    }
    touched = sum(rows[hit.row_id].trust == "untrusted" for hit in found.hits if hit.row_id in rows)
    return [_turn(own, hit) for hit in found.hits if hit.row_id in own], touched


def _rows(connection: Connection, owner: Owner, found: Found) -> dict[int, conversations.Turn]:
    wanted = {row for hit in found.hits for row in (hit.before, hit.row_id, hit.after) if row}
    return conversations.get(connection, owner, wanted)


def _turn(rows: Mapping[int, conversations.Turn], hit: Hit) -> FoundTurn:
    turn, before, after = rows[hit.row_id], rows.get(hit.before), rows.get(hit.after)
    return FoundTurn(
        id=turn.id,
        session_id=turn.session_id,
        speaker=turn.speaker,
        said_at=turn.said_at,
        user_message=shortened(turn.user_message, SHOWN_CHARACTERS),
        agent_response=shortened(turn.agent_response, SHOWN_CHARACTERS),
        tags=list(turn.tags),
        tools=list(turn.tools),
        trust=turn.trust,
        score=hit.score,
        parts=_why(hit),
        before=None if before is None else _exchange(before),
        after=None if after is None else _exchange(after),
    )


def _exchange(turn: conversations.Turn) -> Exchange:
    return Exchange(
        id=turn.id,
        speaker=turn.speaker,
        user_message=shortened(turn.user_message, NEIGHBOUR_CHARACTERS),
        agent_response=shortened(turn.agent_response, NEIGHBOUR_CHARACTERS),
        trust=turn.trust,
    )


def _why(hit: Hit) -> Why:
    return Why.model_validate(asdict(hit.parts))
