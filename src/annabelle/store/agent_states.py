"""Agent states: which agents are paused, since when and why; a restart keeps it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from annabelle.core.messages import now
from annabelle.store.statements import InsertOrUpdate
from annabelle.store.tables import agent_states

_put_row = InsertOrUpdate(agent_states, ["agent_id"], ["paused", "reason", "paused_at", "window_from"])


@dataclass(frozen=True, slots=True)
class AgentState:
    agent_id: str
    paused: bool = False
    reason: str | None = None
    paused_at: datetime | None = None
    window_from: datetime | None = None


def get(connection: Connection, agent_id: str) -> AgentState:
    """How an agent stands; one never paused is not."""
    row = connection.execute(select(agent_states).where(agent_states.c.agent_id == agent_id)).first()
    return AgentState(agent_id) if row is None else AgentState(*row)


def listing(connection: Connection) -> dict[str, AgentState]:
    """Every agent that was ever paused."""
    rows = connection.execute(select(agent_states).order_by(agent_states.c.agent_id))
    return {state.agent_id: state for state in (AgentState(*row) for row in rows)}


def pause(connection: Connection, agent_id: str, reason: str) -> AgentState:
    """Pause an agent; one that is paused keeps its first reason and time."""
    state = get(connection, agent_id)
    return state if state.paused else _put(connection, AgentState(agent_id, True, reason, now(), state.window_from))


def resume(connection: Connection, agent_id: str, *, reset_window: bool = False) -> AgentState:
    """Let an agent go on; with `reset_window` what it spent until now is forgotten."""
    window_from = now() if reset_window else get(connection, agent_id).window_from
    return _put(connection, AgentState(agent_id, window_from=window_from))


def _put(connection: Connection, state: AgentState) -> AgentState:
    _put_row(connection, asdict(state))
    return state
