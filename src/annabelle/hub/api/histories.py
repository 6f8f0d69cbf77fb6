"""Histories: what an agent has in mind of a thread, and the sessions that ended (THR-03). Reset is `clear`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path
from pydantic import Field

from annabelle.core.contract import CURRENT_HISTORY, HistoryRequest, SessionHistories
from annabelle.core.errors import AgentPaused, Conflict, ErrorBody, NotFound
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiRouter, Caller, TheHub, document
from annabelle.hub.api.threads import ThreadId, get_own_thread
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity

router = ApiRouter("histories")
HistoryId = Annotated[str, Path(pattern=ID_SHAPE, examples=["msg_01k9zq3v7k0000000000000000"])]


class HistoryView(ApiAnswer):
    """A session: what a model was told of a thread. The thread itself keeps every message, whatever ends here."""

    id: str
    summary: str = Field(description="What it was about; of the current one, what came before its turns")
    reason: str | None = Field(description="Why it ended: session_timeout, feed_complete or manual")
    message_count: int
    input_tokens: int
    output_tokens: int
    started_at: datetime | None
    ended_at: datetime | None


class HistoryTurnView(ApiAnswer):
    message_id: str
    at: datetime
    user: str
    assistant: str
    tools: list[str]
    error: ErrorBody | None


class WholeHistory(HistoryView):
    turns: list[HistoryTurnView]


class HistoryList(ApiAnswer):
    histories: list[HistoryView]


@router.get("/threads/{thread_id}/histories", **document("The sessions of a thread that ended", 404, 409))
async def list_histories(thread_id: ThreadId, hub: TheHub, caller: Caller) -> HistoryList:
    """Newest first, without what was said in them."""
    answer = await _read(hub, caller, thread_id, None)
    return HistoryList(histories=[HistoryView.from_row(one) for one in answer.histories])


@router.get("/threads/{thread_id}/histories/current", **document("What an agent has in mind of a thread", 404, 409))
async def current_history(thread_id: ThreadId, hub: TheHub, caller: Caller) -> WholeHistory:
    """The session that goes on. `clear` ends it."""
    return await _read_one(hub, caller, thread_id, CURRENT_HISTORY)


@router.get("/threads/{thread_id}/histories/{history_id}", **document("A session that ended, whole", 404, 409))
async def get_history(thread_id: ThreadId, history_id: HistoryId, hub: TheHub, caller: Caller) -> WholeHistory:
    """With everything that was said in it."""
    return await _read_one(hub, caller, thread_id, history_id)


async def _read_one(hub: HubContext, caller: CallerIdentity, thread_id: str, history_id: str) -> WholeHistory:
    found = (await _read(hub, caller, thread_id, history_id)).histories
    if not found:
        raise NotFound(f"There is no history {history_id} in this thread.")
    turns = [HistoryTurnView.from_row(turn) for turn in found[0].turns]
    return WholeHistory.from_row(found[0], turns=turns)


async def _read(hub: HubContext, caller: CallerIdentity, thread_id: str, history_id: str | None) -> SessionHistories:
    """Sessions are the thinker's: it is asked, and started if it does not run."""
    thread = await get_own_thread(hub, caller, thread_id)
    wanted = HistoryRequest(thread_id=thread.id, user_id=caller.user_id, history_id=history_id)
    try:
        return await ThinkerQuestions(hub.agents).read_history(thread.agent_id, wanted)
    except AgentPaused as error:
        # Not Unavailable: a retry cannot succeed until somebody resumes the agent.
        raise Conflict(error.message, hint=error.hint) from error
