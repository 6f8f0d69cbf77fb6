"""Removes what was said in a chat (CMD-04).

The rows stay, without their content: a message that its channel sends again is still known, and foreign content that
was read still taints its thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, delete, exists, or_, select, update

from annabelle.core.tools import JsonObject
from annabelle.store.messages import StoredMessage
from annabelle.store.portable_sql import read_all
from annabelle.store.tables import approvals, events, messages, parked_turns, to_remember, tool_calls

REMOVED: Final = "(deleted)"
_KEPT_FACTS: Final = frozenset({"root", "resumes", "labels", "risk"})
"""What policy needs to know about a message, and nobody's words."""
_AT_ONCE: Final = 500
_MOST: Final = 100_000

_asked = messages.alias("asked")
_is_command = or_(
    messages.c.source == "command",
    exists().where(_asked.c.id == messages.c.reply_to, _asked.c.source == "command"),
)


@dataclass(frozen=True, slots=True)
class MessageRange:
    """Which messages of a chat are meant: those of a time, or the last so many that are no commands."""

    since: datetime | None = None
    until: datetime | None = None
    last: int | None = None


def list_chat_messages(connection: Connection, chat: tuple[str, str, str], wanted: MessageRange) -> list[StoredMessage]:
    """Lists what was said in a chat (channel, chat, person), oldest first: whole turns that are over."""
    channel, chat_id, user_id = chat
    query = select(messages).where(
        messages.c.channel == channel,
        messages.c.chat_id == chat_id,
        messages.c.user_id == user_id,
        messages.c.state.in_(("done", "failed")),
        messages.c.content != REMOVED,
    )
    if wanted.since is not None:
        query = query.where(messages.c.created_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(messages.c.created_at < wanted.until)
    if wanted.last is not None:
        query = query.where(~_is_command)
    newest = query.order_by(messages.c.position.desc()).limit(wanted.last or _MOST)
    found = {message.id: message for message in read_all(connection, StoredMessage, newest)}
    # A question goes with its answer, and an answer with its question.
    asked = [one.reply_to for one in found.values() if one.reply_to is not None and one.reply_to not in found]
    for ids in _split(asked):
        for message in read_all(connection, StoredMessage, select(messages).where(messages.c.id.in_(ids))):
            found.setdefault(message.id, message)
    for ids in _split(list(found)):
        for message in read_all(connection, StoredMessage, select(messages).where(messages.c.reply_to.in_(ids))):
            found.setdefault(message.id, message)
    return sorted(
        (one for one in found.values() if one.user_id == user_id and one.content != REMOVED),
        key=lambda one: one.position,
    )


def remove_content(connection: Connection, gone: Sequence[StoredMessage]) -> None:
    """Removes the content of messages with what their turns read, asked and reported."""
    for message in gone:
        facts: JsonObject = {name: value for name, value in message.metadata.items() if name in _KEPT_FACTS}
        values = {"content": REMOVED, "metadata": facts | {"deleted": True}}
        connection.execute(update(messages).where(messages.c.id == message.id).values(values))
    no_words: JsonObject = {"arguments": {}, "reasons": [], "edited": None, "note": None}
    for ids in _split([message.id for message in gone]):
        connection.execute(delete(events).where(events.c.message_id.in_(ids)))
        connection.execute(update(tool_calls).where(tool_calls.c.message_id.in_(ids)).values(result=None))
        connection.execute(update(approvals).where(approvals.c.message_id.in_(ids)).values(no_words))
        connection.execute(delete(parked_turns).where(parked_turns.c.message_id.in_(ids)))
        connection.execute(delete(to_remember).where(to_remember.c.message_id.in_(ids)))


def _split(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    """Parts that fit into one statement."""
    return (ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE))
