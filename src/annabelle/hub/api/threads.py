"""Threads: what was said, and the live stream of what happens (THR-04)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import StreamingResponse

from annabelle.core.errors import AgentPaused, Conflict
from annabelle.hub.api.documented import ID_SHAPE, Answer, Caller, Responses, TheHub, failures
from annabelle.hub.api.views import MessageView, ThreadView
from annabelle.hub.events.sse import Reader, stream
from annabelle.hub.memory.thinking import Thinking
from annabelle.hub.services import Hub
from annabelle.store import events, messages, threads
from annabelle.store.open_questions import Where

router = APIRouter(tags=["threads"])
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


class ThreadList(Answer):
    threads: list[ThreadView]


class MessageList(Answer):
    messages: list[MessageView]


@router.get("/threads", operation_id="list_threads", responses=failures(), summary="Your conversations")
async def list_threads(hub: TheHub, caller: Caller, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> ThreadList:
    """The one used last comes first."""
    found = await hub.database.read(lambda conn: threads.listing(conn, caller.user_id, limit))
    return ThreadList(threads=[ThreadView.of(thread) for thread in found])


@router.get(
    "/threads/{thread_id}/messages",
    operation_id="list_messages",
    responses=failures(404),
    summary="What was said in a thread",
)
async def list_messages(
    thread_id: ThreadId,
    hub: TheHub,
    caller: Caller,
    after: Annotated[int, Query(ge=0, le=_LARGEST, description="Start behind this position")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> MessageList:
    """In the order it was said."""
    await hub.database.read(lambda conn: threads.get(conn, thread_id, caller.user_id))
    found = await hub.database.read(lambda conn: messages.listing(conn, thread_id, caller.user_id, after, limit))
    return MessageList(messages=[MessageView.of(message) for message in found])


@router.post(
    "/threads/{thread_id}/clear",
    operation_id="clear_thread",
    responses=failures(404, 409),
    summary="Start a thread afresh",
)
async def clear_thread(thread_id: ThreadId, hub: TheHub, caller: Caller) -> ThreadView:
    """What was said so far is archived with a summary: it is out of the agent's mind, and can still be searched."""
    thread = await hub.database.read(lambda conn: threads.get(conn, thread_id, caller.user_id))
    try:
        await Thinking(hub.agents).clear_session(thread.agent_id, thread.id)
    except AgentPaused as error:
        # Nothing is broken, and asking again changes nothing: first somebody has to let the agent go on.
        raise Conflict(error.message, hint=error.hint) from error
    # A turn that went on after this would bring back what is out of mind now, without what is known of it.
    await hub.approvals.withdrawing.withdraw(Where(thread_id=thread.id), "The thread was started afresh")
    return ThreadView.of(thread)


@router.get(
    "/threads/{thread_id}/events",
    operation_id="thread_events",
    responses=failures(404) | _STREAM,
    response_class=StreamingResponse,
    summary="What happens in a thread, live",
)
async def thread_events(
    thread_id: ThreadId, hub: TheHub, caller: Caller, after: After = None, last_event_id: LastEventId = None
) -> StreamingResponse:
    """Come back with Last-Event-ID and nothing is lost or doubled."""
    await hub.database.read(lambda conn: threads.get(conn, thread_id, caller.user_id))
    return await _stream(hub, caller.user_id, thread_id, after if last_event_id is None else last_event_id)


@router.get(
    "/events",
    operation_id="all_events",
    responses=failures() | _STREAM,
    response_class=StreamingResponse,
    summary="What happens in all your threads, live",
)
async def all_events(
    hub: TheHub, caller: Caller, after: After = None, last_event_id: LastEventId = None
) -> StreamingResponse:
    """Come back with Last-Event-ID and nothing is lost or doubled."""
    return await _stream(hub, caller.user_id, None, after if last_event_id is None else last_event_id)


async def _stream(hub: Hub, user_id: str, thread_id: str | None, after: int | None) -> StreamingResponse:
    if after is None:
        after = await hub.database.read(lambda conn: events.last_seq(conn, user_id))
    return StreamingResponse(
        stream(Reader(user_id, thread_id, after), hub.database, hub.fanout),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
