"""`POST /message` and `GET /messages/{id}`: send a message and get the answer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from annabelle.core.errors import NotAllowed, NotFound
from annabelle.core.messages import InboundMessage, Name, StoredEvent
from annabelle.hub.api.endpoint import ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.api.threads import MessageId, MessageProgress, MessageView
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity
from annabelle.store import messages, threads
from annabelle.store.messages import StoredMessage

router = ApiRouter("messages")
WAIT_MAX = 600
UNFINISHED = ("queued", "running")

Wait = Annotated[float, Query(ge=0, le=WAIT_MAX, description="Wait up to so many seconds for the answer")]


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("there is nothing in it but spaces" if text else "it is empty")
    return text


class NewMessage(ApiBody):
    """Something to say to an agent."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "What is in my workspace?", "channel": "api", "chatId": "main"}]}
    )

    text: Annotated[str, AfterValidator(_check_text)] = Field(json_schema_extra={"minLength": 1, "pattern": r"\S"})
    channel: Name = "api"
    chat_id: Name = "main"
    sender_id: Name | None = Field(default=None, description="Who wrote it; by default whose token it is")
    external_id: Name | None = Field(default=None, description="Your own id of it; sending it twice is sending it once")
    agent_id: Name | None = Field(default=None, description="This agent instead of the one the chat is bound to")


class EventList(BaseModel):
    events: list[StoredEvent]


@router.post(
    "/message",
    status_code=202,
    response_model=MessageProgress,
    **document(
        "Say something to an agent",
        404,
        body=NewMessage,
        more={200: {"model": MessageProgress, "description": "With `wait`: it is answered"}},
    ),
)
async def send_message(request: Request, hub: TheHub, caller: Caller, wait: Wait = 0) -> Response:
    """Takes a message in: it is on disk when this answers, and will be answered exactly once."""
    progress = await post_message(hub, caller, await read_body(request, NewMessage), wait)
    over = wait > 0 and progress.state not in UNFINISHED
    return Response(progress.model_dump_json(by_alias=True), 200 if over else 202, media_type="application/json")


async def post_message(hub: HubContext, caller: CallerIdentity, new: NewMessage, wait: float = 0) -> MessageProgress:
    """Store a message of this caller and start its turn; what came of it within `wait` seconds."""
    if new.channel in hub.conversations.channels.names:
        raise NotAllowed(f"The answer would be sent to {new.channel}.", hint="Use another channel.", field="channel")
    # Only the owner's programs may speak for somebody else.
    sender_id = (new.sender_id if caller.kind == "owner" else None) or caller.user_id
    inbound = InboundMessage(
        **new.model_dump(exclude={"sender_id"}),
        sender_id=sender_id,
        user_id=caller.user_id,
        scopes=caller.grant.scopes,
    )
    if (agent := caller.outside_agent) is not None:
        said_by = {"source": "outside_agent", "channel": agent, "sender_id": agent}
        inbound = inbound.model_copy(update=said_by)
    with hub.conversations.reply_waiters.watch(inbound.id) as finished:
        entered = await hub.conversations.gate.receive(inbound)
        if entered.duplicate:
            progress = await wait_for_progress(hub, entered.message.id, caller.user_id, wait)
        elif wait > 0 and entered.message.state in UNFINISHED:
            await _wait_for_event(finished, wait)
            progress = await _load_progress(hub, inbound.id, caller.user_id)
        elif entered.message.state in UNFINISHED:
            progress = _to_progress(entered.message, [])
        else:
            progress = await _load_progress(hub, inbound.id, caller.user_id)
    return progress.model_copy(update={"duplicate": entered.duplicate, "last_event_id": entered.last_event_id})


@router.get("/messages/{message_id}", **document("What came of a message?", 404))
async def get_message(message_id: MessageId, hub: TheHub, caller: Caller, wait: Wait = 0) -> MessageProgress:
    """The state of a message and its answer; with `wait`, as soon as it is answered."""
    await _check_own(hub, caller, message_id)
    return await wait_for_progress(hub, message_id, caller.user_id, wait)


@router.get("/messages/{message_id}/events", **document("What happened in the turn of a message", 404))
async def message_events(message_id: MessageId, hub: TheHub, caller: Caller) -> EventList:
    """Every event of the turn so far, in order."""

    await _check_own(hub, caller, message_id)

    def load_events(conn: Connection) -> list[StoredEvent]:
        messages.get_message(conn, message_id, caller.user_id)
        return threads.list_message_events(conn, message_id, caller.user_id)

    return EventList(events=await hub.storage.database.read(load_events))


@router.post("/messages/{message_id}/cancel", **document("Stop the turn of a message", 404))
async def cancel_message(message_id: MessageId, hub: TheHub, caller: Caller, wait: Wait = 2) -> MessageProgress:
    """A message that waits is not begun; a turn that runs is interrupted. One that is answered stays answered."""
    await _check_own(hub, caller, message_id)
    await hub.conversations.gate.cancel(message_id, caller.user_id)
    return await wait_for_progress(hub, message_id, caller.user_id, wait)


async def _check_own(hub: HubContext, caller: CallerIdentity, message_id: str) -> None:
    """To another agent, what the person says elsewhere is not there."""
    if caller.outside_agent is not None:
        message = await hub.storage.database.read(lambda conn: messages.get_message(conn, message_id, caller.user_id))
        if message.channel != caller.outside_agent:
            raise NotFound(f"There is no message {message_id}.")


async def wait_for_progress(hub: HubContext, message_id: str, user_id: str, wait: float) -> MessageProgress:
    with hub.conversations.reply_waiters.watch(message_id) as finished:
        progress = await _load_progress(hub, message_id, user_id)
        if wait > 0 and progress.state in UNFINISHED:
            await _wait_for_event(finished, wait)
            progress = await _load_progress(hub, message_id, user_id)
    return progress


async def _wait_for_event(finished: asyncio.Event, wait: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(finished.wait(), wait)


async def _load_progress(hub: HubContext, message_id: str, user_id: str) -> MessageProgress:
    def load_message(conn: Connection) -> tuple[StoredMessage, list[StoredMessage]]:
        message = messages.get_message(conn, message_id, user_id)
        if message.kind != "inbound":
            raise NotFound(f"{message_id} is an answer; ask for the message it answers.")
        if message.state in UNFINISHED:
            return message, []
        return message, messages.list_replies(conn, message)

    return _to_progress(*await hub.storage.database.read(load_message))


def _to_progress(message: StoredMessage, replies: list[StoredMessage]) -> MessageProgress:
    views = [MessageView.from_message(reply) for reply in replies]
    return MessageProgress.from_row(message, message_id=message.id, reply=views[-1] if views else None, replies=views)
