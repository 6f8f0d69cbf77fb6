"""Facts and conversation turns as search results, with their source and score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.trust import FactCategory, Trust
from annabelle.servers.kit import deferred_module
from annabelle.servers.memory.arguments import lowest_trust, shorten

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.servers.memory.search.ranking import MemoryHit, SearchHits
    from annabelle.store.memory import conversations, facts
    from annabelle.store.memory.owner import Owner
else:
    conversations = deferred_module("annabelle.store.memory.conversations")
    facts = deferred_module("annabelle.store.memory.facts")


SHOWN_CHARACTERS = 2_000
NEIGHBOUR_CHARACTERS = 300

Tier = Literal["hybrid", "text", "substring"]


class ScoreParts(BaseModel):
    """What a score is made of; what is 0 is left out of the answer's text."""

    model_config = ConfigDict(frozen=True)

    vector: float = Field(0.0, description="Closeness in meaning")
    text: float = Field(0.0, description="Words in common, beside the row that has most")
    context: float = Field(0.0, description="What the turns before and after add")
    speaker: float = Field(0.0, description="1 when the query names who said it")
    date: float = Field(0.0, description="1 when it was said at a time the query names")
    recency: float = 0.0
    confidence: float = 0.0


class NeighbourTurn(BaseModel):
    """What was said right before or after, shortened."""

    model_config = ConfigDict(frozen=True)

    id: int
    speaker: str
    user_message: str
    agent_response: str
    trust: Trust


class RecalledTurn(BaseModel):
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
    parts: ScoreParts
    before: NeighbourTurn | None = None
    after: NeighbourTurn | None = None

    def to_line(self) -> str:
        who = f"{self.speaker}: " if self.speaker else ""
        answer = f" → {shorten(self.agent_response, 200)}" if self.agent_response else ""
        mark = " (untrusted)" if self.trust == "untrusted" else ""
        said = shorten(self.user_message, 200)
        return f"{self.id}  {self.said_at:%Y-%m-%d %H:%M}  {who}{said}{answer}{mark}"

    def least_trust(self) -> Trust:
        """Lowest trust of the turn and its neighbours."""
        return lowest_trust(self.trust, *(near.trust for near in (self.before, self.after) if near))


class RecalledFact(BaseModel):
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
    parts: ScoreParts

    def to_line(self) -> str:
        mark = ", untrusted" if self.trust == "untrusted" else ""
        source = f", {shorten(self.source, 80)}" if self.source else ""
        return f"{self.id}  {self.fact} ({self.category}{source}, {self.updated_at:%Y-%m-%d}{mark})"


def load_facts(connection: Connection, owner: Owner, found: SearchHits) -> list[RecalledFact]:
    """Load the facts of a search in its order, without those retired meanwhile."""
    rows = facts.get_facts(connection, owner, [hit.row_id for hit in found.hits])
    shown: list[RecalledFact] = []
    for hit in found.hits:
        fact = rows.get(hit.row_id)
        if fact is None or not fact.current:
            continue
        read_from, tools = fact.origin.get("conversation_id"), fact.origin.get("tools")
        shown.append(
            RecalledFact(
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
                parts=_to_score_parts(hit),
            )
        )
    return shown


def load_turns(connection: Connection, owner: Owner, found: SearchHits) -> list[RecalledTurn]:
    """Load the turns of a search with their neighbours in its order, without those that are gone."""
    rows = _load_rows(connection, owner, found)
    return [_to_turn(rows, hit) for hit in found.hits if hit.row_id in rows]


def load_trusted_turns(connection: Connection, owner: Owner, found: SearchHits) -> tuple[list[RecalledTurn], int]:
    """Like `load_turns`, without untrusted text, and the number of turns not shown whole.

    Turns stored by the hub keep the user's message. Imported turns are dropped whole.
    """
    rows = _load_rows(connection, owner, found)
    own = {
        key: replace(row, agent_response="", trust="trusted") if row.trust == "untrusted" else row
        for key, row in rows.items()
        if row.trust == "trusted" or row.message_id is not None
    }
    touched = sum(rows[hit.row_id].trust == "untrusted" for hit in found.hits if hit.row_id in rows)
    return [_to_turn(own, hit) for hit in found.hits if hit.row_id in own], touched


def _load_rows(connection: Connection, owner: Owner, found: SearchHits) -> dict[int, conversations.StoredTurn]:
    wanted = {row for hit in found.hits for row in (hit.before, hit.row_id, hit.after) if row}
    return conversations.get_turns(connection, owner, wanted)


def _to_turn(rows: Mapping[int, conversations.StoredTurn], hit: MemoryHit) -> RecalledTurn:
    turn, before, after = rows[hit.row_id], rows.get(hit.before), rows.get(hit.after)
    return RecalledTurn(
        id=turn.id,
        session_id=turn.session_id,
        speaker=turn.speaker,
        said_at=turn.said_at,
        user_message=shorten(turn.user_message, SHOWN_CHARACTERS),
        agent_response=shorten(turn.agent_response, SHOWN_CHARACTERS),
        tags=list(turn.tags),
        tools=list(turn.tools),
        trust=turn.trust,
        score=hit.score,
        parts=_to_score_parts(hit),
        before=None if before is None else _to_neighbour(before),
        after=None if after is None else _to_neighbour(after),
    )


def _to_neighbour(turn: conversations.StoredTurn) -> NeighbourTurn:
    return NeighbourTurn(
        id=turn.id,
        speaker=turn.speaker,
        user_message=shorten(turn.user_message, NEIGHBOUR_CHARACTERS),
        agent_response=shorten(turn.agent_response, NEIGHBOUR_CHARACTERS),
        trust=turn.trust,
    )


def _to_score_parts(hit: MemoryHit) -> ScoreParts:
    return ScoreParts.model_validate(asdict(hit.parts))
