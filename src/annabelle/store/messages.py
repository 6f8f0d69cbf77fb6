"""Messages in order, stored whether or not a model answers (SES-05), and claims on the ones in progress (DUR-04)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, RowMapping, and_, bindparam, func, select, update

from annabelle.core.errors import Conflict, TooManyRequests
from annabelle.core.ids import new_id
from annabelle.core.messages import InboundMessage, MessageSource, MessageState, now
from annabelle.core.tools import JsonObject
from annabelle.store import threads
from annabelle.store.portable_sql import InsertNew, from_row, read_all, read_first, require_found
from annabelle.store.tables import messages

MessageKind = Literal["inbound", "answer", "said"]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A stored message. `position` defines the order, independent of clocks."""

    position: int
    id: str
    thread_id: str
    user_id: str
    channel: str
    chat_id: str
    sender_id: str
    external_id: str | None
    role: Literal["user", "assistant"]
    source: MessageSource
    kind: MessageKind
    content: str
    metadata: JsonObject
    state: MessageState
    reply_to: str | None
    call_id: str | None
    trace_id: str | None
    created_at: datetime
    background: bool = False


def message_from_row(row: RowMapping) -> StoredMessage:
    return from_row(StoredMessage, row)


_insert_message = InsertNew(messages, whole_rows=True)
_by_id = select(messages).where(messages.c.id == bindparam("id"))
_own = _by_id.where(messages.c.user_id == bindparam("user_id"))
_by_external_id = select(messages).where(
    messages.c.channel == bindparam("channel"),
    messages.c.chat_id == bindparam("chat_id"),
    messages.c.user_id == bindparam("user_id"),
    messages.c.external_id == bindparam("external_id"),
)
_answer = select(messages).where(messages.c.reply_to == bindparam("id"), messages.c.kind == "answer")
_replies = (
    select(messages)
    .where(
        messages.c.thread_id == bindparam("thread_id"),
        messages.c.user_id == bindparam("user_id"),
        messages.c.position > bindparam("position"),
        messages.c.reply_to == bindparam("id"),
    )
    .order_by(messages.c.position)
)
_said = select(messages).where(messages.c.call_id == bindparam("call_id"))
_queued = select(func.count()).select_from(messages).where(messages.c.state == "queued")
_queued_here = _queued.where(messages.c.thread_id == bindparam("thread_id"))
# However much work waits in the background, a person's message is taken.
_queued_by_people = _queued.where(~messages.c.background)
_move = (
    update(messages)
    .where(messages.c.id == bindparam("message"), messages.c.state.in_(("queued", "running")))
    .values(state=bindparam("new_state"))
)
_listing = (
    select(messages)
    .where(
        messages.c.thread_id == bindparam("thread_id"),
        messages.c.user_id == bindparam("user_id"),
        messages.c.position > bindparam("after"),
    )
    .order_by(messages.c.position)
    .limit(bindparam("limit"))
)
_listing_before = (
    select(messages)
    .where(
        messages.c.thread_id == bindparam("thread_id"),
        messages.c.user_id == bindparam("user_id"),
        messages.c.position > bindparam("after"),
        messages.c.position < bindparam("before"),
    )
    .order_by(messages.c.position.desc())
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class QueueLimits:
    per_thread: int = 50
    total: int = 1000


@dataclass(frozen=True, slots=True)
class QueuedReceipt:
    message: StoredMessage
    duplicate: bool


def queue_message(
    connection: Connection,
    thread: threads.Thread,
    message: InboundMessage,
    limits: QueueLimits,
    *,
    trace_id: str | None = None,
    background: bool = False,
    metadata: JsonObject | None = None,
) -> QueuedReceipt:
    """Queues a message. A repeat, by its id or its channel's id, returns the stored one (I-20)."""
    threads.touch_thread(connection, thread.id, now())
    if known := find_known_message(connection, message):
        return QueuedReceipt(known, duplicate=True)
    _check_limits(connection, thread.id, limits)
    values: JsonObject = {
        "id": message.id,
        "external_id": message.external_id,
        "role": "user",
        "source": message.source,
        "kind": "inbound",
        "content": message.text,
        "metadata": metadata or {},
        "background": background,
        "state": "queued",
        "sender_id": message.sender_id,
        "trace_id": trace_id,
        "created_at": message.sent_at,
    }
    inserted = _insert_message.insert(connection, values | _thread_values(thread))
    if inserted is not None:
        return QueuedReceipt(message_from_row(inserted), duplicate=False)
    known = find_known_message(connection, message)
    if known is None:
        raise Conflict(f"The id {message.id} belongs to another message.")
    return QueuedReceipt(known, duplicate=True)


def find_known_message(connection: Connection, message: InboundMessage) -> StoredMessage | None:
    """Finds a message that came before, by its id or its channel's id."""
    if message.external_id is not None:
        key = message.model_dump(include={"channel", "chat_id", "user_id", "external_id"})
        if found := read_first(connection, StoredMessage, _by_external_id, key):
            return found
    return read_first(connection, StoredMessage, _own, {"id": message.id, "user_id": message.user_id})


def _check_limits(connection: Connection, thread_id: str, limits: QueueLimits) -> None:
    if connection.execute(_queued_here, {"thread_id": thread_id}).scalar_one() >= limits.per_thread:
        raise TooManyRequests(
            f"{limits.per_thread} messages already wait in this thread.",
            hint="Wait for an answer, then send it again.",
            retry_after=5,
        )
    if connection.execute(_queued_by_people).scalar_one() >= limits.total:
        raise TooManyRequests(
            f"{limits.total} messages already wait in all threads together.", hint="Try again later.", retry_after=10
        )


def add_reply(
    connection: Connection,
    *,
    reply_to: str,
    content: str,
    source: Literal["agent", "error"] = "agent",
    metadata: JsonObject | None = None,
    trace_id: str | None = None,
) -> StoredMessage:
    """Adds the answer to a message. If there is one already, that one stays and is returned."""
    asked = load_message(connection, reply_to)
    values: JsonObject = {
        "id": new_id("msg"),
        "role": "assistant",
        "source": source,
        "kind": "answer",
        "content": content,
        "metadata": metadata or {},
        "reply_to": reply_to,
        "trace_id": trace_id or asked.trace_id,
    }
    inserted = _insert_message.insert(connection, _reply_values(asked) | values)
    answer = find_answer(connection, reply_to) if inserted is None else message_from_row(inserted)
    assert answer is not None, "an answer that was not inserted is there already"
    return answer


def find_answer(connection: Connection, message_id: str) -> StoredMessage | None:
    return read_first(connection, StoredMessage, _answer, {"id": message_id})


def list_replies(connection: Connection, message: StoredMessage) -> list[StoredMessage]:
    """Lists all replies to a message in its own thread, in order."""
    parameters: JsonObject = {
        "thread_id": message.thread_id,
        "user_id": message.user_id,
        "position": message.position,
        "id": message.id,
    }
    return read_all(connection, StoredMessage, _replies, parameters)


def add_agent_message(
    connection: Connection,
    thread_id: str,
    content: str,
    call_id: str,
    *,
    reply_to: str | None = None,
    metadata: JsonObject | None = None,
    trace_id: str | None = None,
) -> StoredMessage:
    """Stores what an agent said by a tool call; the same call again returns the same message."""
    thread = threads.load_thread(connection, thread_id)
    values: JsonObject = {
        "id": new_id("msg"),
        "sender_id": thread.agent_id,
        "role": "assistant",
        "source": "agent",
        "kind": "said",
        "content": content,
        "metadata": metadata or {},
        "state": "done",
        "reply_to": reply_to,
        "call_id": call_id,
        "trace_id": trace_id,
        "created_at": now(),
    }
    inserted = _insert_message.insert(connection, values | _thread_values(thread))
    if inserted is None:
        return read_all(connection, StoredMessage, _said, {"call_id": call_id})[0]
    return message_from_row(inserted)


def _thread_values(thread: threads.Thread) -> JsonObject:
    return {
        "thread_id": thread.id,
        "user_id": thread.user_id,
        "channel": thread.channel,
        "chat_id": thread.chat_id,
    }


def _reply_values(asked: StoredMessage) -> JsonObject:
    return {
        "thread_id": asked.thread_id,
        "user_id": asked.user_id,
        "channel": asked.channel,
        "chat_id": asked.chat_id,
        "sender_id": "annabelle",
        "state": "done",
        "created_at": now(),
    }


def set_message_state(connection: Connection, message_id: str, state: MessageState) -> bool:
    """Changes a message's state unless it is finished; returns whether it did."""
    return connection.execute(_move, {"message": message_id, "new_state": state}).rowcount == 1


def get_message(connection: Connection, message_id: str, user_id: str) -> StoredMessage:
    """Returns a message of this person; NotFound for anyone else's."""
    found = read_first(connection, StoredMessage, _own, {"id": message_id, "user_id": user_id})
    return require_found(found, f"message {message_id}")


def list_texts(connection: Connection, message_ids: Sequence[str], user_id: str) -> dict[str, str]:
    """What these messages of a person say."""
    wanted = select(messages.c.id, messages.c.content).where(messages.c.id.in_(message_ids))
    return {str(one): str(said) for one, said in connection.execute(wanted.where(messages.c.user_id == user_id))}


def is_background(connection: Connection, message_id: str) -> bool:
    found = read_first(connection, StoredMessage, _by_id, {"id": message_id})
    return found is not None and found.background


def load_message(connection: Connection, message_id: str) -> StoredMessage:
    """Loads a message of any person, for internal use; never to answer a person's request."""
    found = read_first(connection, StoredMessage, _by_id, {"id": message_id})
    return require_found(found, f"message {message_id}")


def list_unfinished_in_chat(connection: Connection, channel: str, chat_id: str, user_id: str) -> list[str]:
    """Lists the running and waiting messages of a chat, oldest first."""
    columns = messages.c
    query = (
        select(columns.id)
        .where(columns.user_id == user_id, columns.channel == channel, columns.chat_id == chat_id)
        .where(columns.kind == "inbound", columns.state.in_(("queued", "running")))
        .order_by(columns.position)
    )
    return list(connection.execute(query).scalars())


def has_unfinished(connection: Connection, channel: str, chat_id: str) -> bool:
    """Whether anything runs or waits in a chat, of anybody."""
    columns = messages.c
    query = select(columns.id).where(columns.state.in_(("queued", "running")), columns.kind == "inbound")
    found = query.where(columns.channel == channel, columns.chat_id == chat_id).limit(1)
    return connection.execute(found).first() is not None


def was_anything_said(connection: Connection, thread_id: str) -> bool:
    """Whether a thread has anything in it but commands and their answers."""
    asked = messages.alias("asked")
    answers_command = select(asked.c.id).where(asked.c.id == messages.c.reply_to, asked.c.source == "command").exists()
    said = select(messages.c.id).where(
        messages.c.thread_id == thread_id, messages.c.source != "command", ~answers_command
    )
    return connection.execute(said.limit(1)).first() is not None


def count_unfinished(connection: Connection, thread_id: str) -> int:
    unfinished = messages.c.state.in_(("queued", "running"))
    query = select(func.count()).select_from(messages).where(messages.c.thread_id == thread_id, unfinished)
    return connection.execute(query).scalar_one()


def list_unasked(connection: Connection, message: StoredMessage, since: datetime, limit: int) -> list[StoredMessage]:
    """Lists what was said in the chat of a message before it without answering anything, oldest first."""
    columns = messages.c
    query = (
        select(messages)
        .where(columns.thread_id == message.thread_id, columns.kind == "said", columns.reply_to.is_(None))
        .where(columns.position < message.position, columns.created_at >= since)
        .order_by(columns.position.desc())
        .limit(limit)
    )
    return read_all(connection, StoredMessage, query)[::-1]


def list_messages(
    connection: Connection, thread_id: str, user_id: str, after: int = 0, limit: int = 100, *, before: int | None = None
) -> list[StoredMessage]:
    """Lists a person's thread in order: the first messages after a position, or the last ones `before` one."""
    parameters: JsonObject = {"thread_id": thread_id, "user_id": user_id, "after": after, "limit": limit}
    if before is None:
        return read_all(connection, StoredMessage, _listing, parameters)
    return read_all(connection, StoredMessage, _listing_before, parameters | {"before": before})[::-1]


def count_queued(connection: Connection) -> int:
    return int(connection.execute(_queued).scalar_one())


def count_said_since(connection: Connection, channel: str, chat_id: str, since: datetime) -> int:
    """How many messages a person wrote in a chat since then."""
    columns = messages.c
    own = columns.channel == channel, columns.chat_id == chat_id, columns.source == "user", columns.created_at >= since
    return int(connection.execute(select(func.count()).select_from(messages).where(*own)).scalar_one())


def count_open(connection: Connection) -> int:
    """How many messages of anybody wait or run."""
    open_ = select(func.count()).select_from(messages).where(messages.c.state.in_(("queued", "running")))
    return int(connection.execute(open_).scalar_one())


def last_answered_at(connection: Connection) -> datetime | None:
    """When the newest message came whose turn has ended well."""
    ended = messages.c.kind == "inbound", messages.c.state == "done"
    return connection.execute(select(func.max(messages.c.created_at)).where(*ended)).scalar()


def list_agent_turns(connection: Connection, agent_id: str, limit: int) -> list[StoredMessage]:
    """The newest messages to an agent, of everybody, newest first."""
    of_agent = select(messages).join(threads.threads, threads.threads.c.id == messages.c.thread_id)
    turns = of_agent.where(threads.threads.c.agent_id == agent_id, messages.c.kind == "inbound")
    return read_all(connection, StoredMessage, turns.order_by(messages.c.position.desc()).limit(limit))


@dataclass(frozen=True, slots=True)
class TracedMessage(StoredMessage):
    """A message whose turn left a trace. A turn that goes on after a decision has the trace it began with."""

    agent_id: str = ""
    answered_at: datetime | None = None


def list_traced(connection: Connection, user_id: str, limit: int, before: int | None = None) -> list[TracedMessage]:
    """The newest messages of a person that have a trace, newest first; with `before`, those before this position."""
    answer, columns = messages.alias("answer"), messages.c
    query = (
        select(messages, threads.threads.c.agent_id, answer.c.created_at.label("answered_at"))
        .join(threads.threads, threads.threads.c.id == columns.thread_id)
        .outerjoin(answer, and_(answer.c.reply_to == columns.id, answer.c.kind == "answer"))
        .where(columns.user_id == user_id, columns.kind == "inbound", columns.source != "decision")
        .where(columns.trace_id.is_not(None), *(() if before is None else (columns.position < before,)))
    )
    return read_all(connection, TracedMessage, query.order_by(columns.position.desc()).limit(limit))


def list_by_ids(connection: Connection, ids: Iterable[str]) -> list[StoredMessage]:
    """Of everybody, in order. Unknown ids are left out."""
    return read_all(
        connection, StoredMessage, select(messages).where(messages.c.id.in_(ids)).order_by(messages.c.position)
    )
