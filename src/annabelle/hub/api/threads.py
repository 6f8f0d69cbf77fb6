"""Threads: their messages, and the live event stream (THR-04)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Header, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from annabelle.core.contract import ClearSession
from annabelle.core.errors import AgentPaused, Conflict
from annabelle.core.messages import MessageSource, MessageState
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiRouter, Caller, Responses, TheHub, document
from annabelle.hub.context import HubContext
from annabelle.hub.conversations.event_log import EventReader, stream_events
from annabelle.hub.security.identities import CallerIdentity
from annabelle.store import messages, threads
from annabelle.store.approvals import OpenQuestionFilter


class MessageView(ApiAnswer):
    """One line of a thread. `position` is its place in the order."""

    id: str
    thread_id: str
    position: int
    source: MessageSource
    text: str
    state: MessageState
    reply_to: str | None = None
    metadata: dict[str, object] = Field(default_factory=dict)
    trace_id: str | None = None
    created_at: datetime


class ThreadView(ApiAnswer):
    """One conversation with one agent in one chat."""

    id: str
    channel: str
    chat_id: str
    agent_id: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = Field(default=None, description="When another thread took its place in the chat")


class MessageProgress(ApiAnswer):
    """A message that was taken in, and what came of it so far."""

    message_id: str
    thread_id: str
    state: MessageState
    duplicate: bool = Field(default=False, description="It had come before, by its external id; nothing was done again")
    last_event_id: int | None = Field(default=None, description="Its events come after this one: Last-Event-ID for SSE")
    reply: MessageView | None = Field(default=None, description="The answer, or the error that ended the turn")
    replies: list[MessageView] = Field(
        default_factory=list[MessageView], description="Everything said in answer, in order"
    )


router = ApiRouter("threads")
_LARGEST = 2**63 - 1

ThreadId = Annotated[str, Path(pattern=ID_SHAPE, examples=["thr_01k9zq3v7k0000000000000000"])]
After = Annotated[int | None, Query(ge=0, le=_LARGEST, description="Start behind this event; without it, with now")]
LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, le=_LARGEST, description="What a reader saw last; wins over after")
]
_STREAM: Responses = {
    200: {
        "description": "Server-sent events, each with its number as id, its type, and the event as JSON",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class ThreadList(ApiAnswer):
    threads: list[ThreadView]


class MessageList(ApiAnswer):
    messages: list[MessageView]


@router.get("/threads", **document("Your conversations"))
async def list_threads(hub: TheHub, caller: Caller, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> ThreadList:
    """The one used last comes first."""
    found = await hub.storage.database.read(lambda conn: threads.list_threads(conn, caller.user_id, limit))
    return ThreadList(threads=[ThreadView.from_row(thread) for thread in found])


@router.get("/threads/{thread_id}/messages", **document("What was said in a thread", 404))
async def list_messages(
    thread_id: ThreadId,
    hub: TheHub,
    caller: Caller,
    after: Annotated[int, Query(ge=0, le=_LARGEST, description="Start behind this position")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> MessageList:
    """In the order it was said."""
    await hub.storage.database.read(lambda conn: threads.get_thread(conn, thread_id, caller.user_id))
    found = await hub.storage.database.read(
        lambda conn: messages.list_messages(conn, thread_id, caller.user_id, after, limit)
    )
    return MessageList(messages=[MessageView.from_row(message, text=message.content) for message in found])


@router.post("/threads/{thread_id}/clear", **document("Start a thread afresh", 404, 409))
async def clear_thread(thread_id: ThreadId, hub: TheHub, caller: Caller) -> ThreadView:
    """What was said so far is archived with a summary: it is out of the agent's mind, and can still be searched."""
    thread = await hub.storage.database.read(lambda conn: threads.get_thread(conn, thread_id, caller.user_id))
    try:
        await ThinkerQuestions(hub.agents).clear_session(thread.agent_id, ClearSession(thread_id=thread.id))
    except AgentPaused as error:
        # Not Unavailable: a retry cannot succeed until somebody resumes the agent.
        raise Conflict(error.message, hint=error.hint) from error
    # A turn resumed after this would bring back the archived context.
    await hub.conversations.stopper.withdrawal.withdraw(
        OpenQuestionFilter(thread_id=thread.id), "The thread was started afresh"
    )
    return ThreadView.from_row(thread)


@router.get(
    "/threads/{thread_id}/events",
    response_class=StreamingResponse,
    **document("What happens in a thread, live", 404, more=_STREAM),
)
async def thread_events(
    thread_id: ThreadId, hub: TheHub, caller: Caller, after: After = None, last_event_id: LastEventId = None
) -> StreamingResponse:
    """Come back with Last-Event-ID and nothing is lost or doubled."""
    await hub.storage.database.read(lambda conn: threads.get_thread(conn, thread_id, caller.user_id))
    return await _stream_response(hub, caller, thread_id, after if last_event_id is None else last_event_id)


@router.get(
    "/events", response_class=StreamingResponse, **document("What happens in all your threads, live", more=_STREAM)
)
async def all_events(
    hub: TheHub, caller: Caller, after: After = None, last_event_id: LastEventId = None
) -> StreamingResponse:
    """Come back with Last-Event-ID and nothing is lost or doubled."""
    return await _stream_response(hub, caller, None, after if last_event_id is None else last_event_id)


async def _stream_response(
    hub: HubContext, caller: CallerIdentity, thread_id: str | None, after: int | None
) -> StreamingResponse:
    if after is None:
        after = await hub.storage.database.read(lambda conn: threads.last_event_number(conn, caller.user_id))
    reader = EventReader(caller.user_id, thread_id, after, caller.grant.hash)
    return StreamingResponse(
        stream_events(reader, hub.storage.database, hub.conversations.fanout),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
