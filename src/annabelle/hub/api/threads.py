"""Threads: what was said and done in them, errors to try again, and the live event stream (THR-01, THR-04)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, Self

from fastapi import Header, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from annabelle.core.contract import ClearSession
from annabelle.core.errors import AgentPaused, Conflict
from annabelle.core.messages import MessageSource, MessageState
from annabelle.core.tool_cells import CellStatus, ToolCell
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiRouter, Caller, Responses, TheHub, document
from annabelle.hub.context import HubContext
from annabelle.hub.conversations.error_answers import ErrorAnswerPlace, ErrorAnswers
from annabelle.hub.conversations.event_log import EventReader, stream_events
from annabelle.hub.conversations.thread_page import PageRange, ThreadEntry, load_thread_page
from annabelle.hub.security.identities import CallerIdentity
from annabelle.store import threads
from annabelle.store.approvals import OpenQuestionFilter
from annabelle.store.message_search import search_messages
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread


class MessageView(ApiAnswer):
    """One entry of a thread. `position` is its place in the order; tool calls have that of their message."""

    id: str
    thread_id: str
    position: int
    type: Literal["text", "tool"] = Field(
        default="text", description="`tool`: `metadata` tells of a call: id, name, status, input, data, message, error"
    )
    source: MessageSource
    text: str
    state: MessageState
    processed: bool = Field(default=True, description="Whether a turn has taken it up; one that waits in line has not")
    reply_to: str | None = None
    metadata: dict[str, object] = Field(default_factory=dict)
    trace_id: str | None = None
    model: str | None = Field(default=None, description="Which one answered, as provider/model")
    created_at: datetime

    @classmethod
    def from_message(cls, message: StoredMessage, model: str | None = None) -> Self:
        return cls.from_row(message, text=message.content, processed=message.state != "queued", model=model)

    @classmethod
    def from_cell(cls, message: StoredMessage, cell: ToolCell) -> Self:
        """A tool call of the message's turn."""
        return cls(
            id=cell.id,
            thread_id=message.thread_id,
            position=message.position,
            type="tool",
            source="agent",
            text=cell.message,
            state=_STATES[cell.status],
            reply_to=message.id,
            metadata=cell.to_metadata(),
            trace_id=message.trace_id,
            created_at=message.created_at,
        )


_STATES: Final[dict[CellStatus, MessageState]] = {"in_progress": "running", "success": "done", "failure": "failed"}


class ThreadView(ApiAnswer):
    """One conversation with one agent in one chat."""

    id: str
    channel: str
    chat_id: str
    agent_id: str
    title: str | None = Field(default=None, description="Of its goal, or the first words said in it")
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = Field(default=None, description="When another thread took its place in the chat")


class MessageProgress(ApiAnswer):
    """A message that was taken in, and what came of it so far."""

    message_id: str
    thread_id: str
    position: int = Field(description="Its place in the thread")
    state: MessageState
    duplicate: bool = Field(default=False, description="It had come before, by its external id; nothing was done again")
    last_event_id: int | None = Field(default=None, description="Its events come after this one: Last-Event-ID for SSE")
    reply: MessageView | None = Field(default=None, description="The answer, or the error that ended the turn")
    replies: list[MessageView] = Field(
        default_factory=list[MessageView], description="Everything said in answer, in order"
    )


router = ApiRouter("threads")
_LARGEST = 2**63 - 1

MessageId = Annotated[str, Path(pattern=ID_SHAPE, examples=["msg_01k9zq3v7k0000000000000000"])]
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


class FoundMessageView(ApiAnswer):
    """A message with the words that were searched for. Its neighbours stand around `position` in its thread."""

    id: str
    thread_id: str
    position: int
    channel: str
    source: MessageSource
    excerpt: str
    created_at: datetime


class FoundMessageList(ApiAnswer):
    messages: list[FoundMessageView]
    more_before: int | None = Field(default=None, description="`before` for what is older; none: all was searched")


@router.get("/threads", **document("Your conversations"))
async def list_threads(hub: TheHub, caller: Caller, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> ThreadList:
    """The one used last comes first."""
    found = await hub.storage.database.read(lambda conn: threads.list_threads(conn, caller.user_id, limit))
    return ThreadList(threads=[ThreadView.from_row(thread) for thread in found])


@router.get("/threads/search", **document("Find what was said in your conversations"))
async def search_threads(
    hub: TheHub,
    caller: Caller,
    q: Annotated[
        str, Query(min_length=1, max_length=200, pattern=r"\S", description="Words that all have to be in it")
    ],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[int | None, Query(ge=0, le=_LARGEST, description="Only before this position")] = None,
) -> FoundMessageList:
    """Newest first, whatever the case and accents. After many messages it stops, and says where to go on."""
    result = await hub.storage.database.read(
        lambda conn: search_messages(conn, caller.user_id, q, limit=limit, before=before)
    )
    found = [FoundMessageView.from_row(one, excerpt=one.excerpt(q)) for one in result.found]
    return FoundMessageList(messages=found, more_before=result.more_before)


@router.get("/threads/{thread_id}", **document("One conversation", 404))
async def show_thread(thread_id: ThreadId, hub: TheHub, caller: Caller) -> ThreadView:
    """Whatever its age."""
    return ThreadView.from_row(await get_own_thread(hub, caller, thread_id))


@router.get("/threads/{thread_id}/messages", **document("What was said and done in a thread", 404))
async def list_messages(
    thread_id: ThreadId,
    hub: TheHub,
    caller: Caller,
    after: Annotated[int, Query(ge=0, le=_LARGEST, description="Start behind this position")] = 0,
    before: Annotated[
        int | None, Query(ge=0, le=_LARGEST, description="The last ones before this position instead of the first")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="So many messages, with their tool calls")] = 100,
) -> MessageList:
    """In the order it was said. The tool calls of a turn stand behind its message, and never without it."""
    wanted = PageRange(after, before, limit)
    found = await hub.storage.database.read(lambda conn: load_thread_page(conn, thread_id, caller.user_id, wanted))
    return MessageList(messages=[view for entry in found for view in _to_views(entry)])


def _to_views(entry: ThreadEntry) -> list[MessageView]:
    return [
        MessageView.from_message(entry.message, entry.model),
        *(MessageView.from_cell(entry.message, cell) for cell in entry.cells),
    ]


@router.post(
    "/threads/{thread_id}/messages/{message_id}/retry",
    status_code=202,
    **document("Try again what ended in an error", 404, 409),
)
async def retry_message(thread_id: ThreadId, message_id: MessageId, hub: TheHub, caller: Caller) -> MessageProgress:
    """Takes the id of the error. The same words are said again once; asking again answers with the same message."""
    admitted = await _error_answers(hub).retry(ErrorAnswerPlace(thread_id, message_id, caller.user_id))
    return MessageProgress.from_row(
        admitted.message,
        message_id=admitted.message.id,
        duplicate=admitted.duplicate,
        last_event_id=admitted.last_event_id,
    )


@router.post("/threads/{thread_id}/messages/{message_id}/dismiss", **document("Put an error aside, as seen", 404, 409))
async def dismiss_message(thread_id: ThreadId, message_id: MessageId, hub: TheHub, caller: Caller) -> MessageView:
    """It stays in the thread, marked as dismissed."""
    answer = await _error_answers(hub).dismiss(ErrorAnswerPlace(thread_id, message_id, caller.user_id))
    return MessageView.from_message(answer)


def _error_answers(hub: HubContext) -> ErrorAnswers:
    return ErrorAnswers(hub.storage.database, hub.storage.events, hub.conversations.gate)


async def get_own_thread(hub: HubContext, caller: CallerIdentity, thread_id: str) -> Thread:
    """A thread of the caller; NotFound for anyone else's."""
    return await hub.storage.database.read(lambda conn: threads.get_thread(conn, thread_id, caller.user_id))


@router.post("/threads/{thread_id}/clear", **document("Start a thread afresh", 404, 409))
async def clear_thread(thread_id: ThreadId, hub: TheHub, caller: Caller) -> ThreadView:
    """What was said so far is archived with a summary: it is out of the agent's mind, and can still be searched."""
    thread = await get_own_thread(hub, caller, thread_id)
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
    await get_own_thread(hub, caller, thread_id)
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
