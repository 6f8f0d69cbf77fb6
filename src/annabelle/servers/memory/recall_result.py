"""Facts and conversation turns as search results, with their source and score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.result_text import for_model
from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory, Trust
from annabelle.servers.kit import deferred_module
from annabelle.servers.memory.arguments import lowest_trust, shorten
from annabelle.servers.memory.fact_fields import tools_of_origin
from annabelle.servers.memory.search.hits import MemoryHit, ScoreParts, SearchHits

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store.memory import conversations, facts
    from annabelle.store.memory.owner import Owner
else:
    conversations = deferred_module("annabelle.store.memory.conversations")
    facts = deferred_module("annabelle.store.memory.facts")


SHOWN_CHARACTERS = 2_000
NEIGHBOUR_CHARACTERS = 300


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
        mark = for_model(" (untrusted)", " (others may have written this)") if self.trust == "untrusted" else ""
        said = shorten(self.user_message, 200)
        return f"{for_model(f'{self.id}  ')}{self.said_at:%Y-%m-%d %H:%M}  {who}{said}{answer}{mark}"

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
        mark = for_model(", untrusted", ", others may have written this") if self.trust == "untrusted" else ""
        source = f", {shorten(self.source, 80)}" if self.source else ""
        known = for_model(f"{self.category}{source}, {self.updated_at:%Y-%m-%d}", f"{self.updated_at:%Y-%m-%d}")
        return f"{for_model(f'{self.id}  ')}{self.fact} ({known}{mark})"


def load_facts(connection: Connection, owner: Owner, found: SearchHits) -> list[RecalledFact]:
    """Load the facts of a search in its order, without those retired meanwhile."""
    rows = facts.get_facts(connection, owner, [hit.row_id for hit in found.hits])
    shown: list[RecalledFact] = []
    for hit in found.hits:
        fact = rows.get(hit.row_id)
        if fact is None or not fact.current:
            continue
        read_from = fact.origin.get("conversation_id")
        values = {**asdict(fact), "score": hit.score, "parts": hit.parts, "tools": tools_of_origin(fact.origin)}
        values["conversation_id"] = read_from if isinstance(read_from, int) else None
        shown.append(RecalledFact.model_validate(values))
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
    before, after = rows.get(hit.before), rows.get(hit.after)
    values = {
        **_shorten_messages(rows[hit.row_id], SHOWN_CHARACTERS),
        "score": hit.score,
        "parts": hit.parts,
        "before": None if before is None else _shorten_messages(before, NEIGHBOUR_CHARACTERS),
        "after": None if after is None else _shorten_messages(after, NEIGHBOUR_CHARACTERS),
    }
    return RecalledTurn.model_validate(values)


def _shorten_messages(turn: conversations.StoredTurn, most: int) -> JsonObject:
    messages = {"user_message": shorten(turn.user_message, most)}
    return {**asdict(turn), **messages, "agent_response": shorten(turn.agent_response, most)}
