"""Messages and threads as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from annabelle.core.messages import MessageSource, MessageState
from annabelle.hub.api.documented import Answer
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread


class MessageView(Answer):
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

    @classmethod
    def of(cls, message: StoredMessage) -> MessageView:
        return cls(
            id=message.id,
            thread_id=message.thread_id,
            position=message.position,
            source=message.source,
            text=message.content,
            state=message.state,
            reply_to=message.reply_to,
            metadata=message.metadata,
            trace_id=message.trace_id,
            created_at=message.created_at,
        )


class ThreadView(Answer):
    """One conversation with one agent in one chat."""

    id: str
    channel: str
    chat_id: str
    agent_id: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, thread: Thread) -> ThreadView:
        return cls(
            id=thread.id,
            channel=thread.channel,
            chat_id=thread.chat_id,
            agent_id=thread.agent_id,
            created_at=thread.created_at,
            updated_at=thread.updated_at,
        )


class MessageProgress(Answer):
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
