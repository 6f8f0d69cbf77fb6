"""Everything said to a person that is not the answer of a turn: results of skills and tasks, warnings (TRU-02).

A message is stored once by its key, stands in the history of its chat with the label of what is in it, and is
delivered: a terminal or a program reads it from the thread, a chat app has it sent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.core.messages import CHAT_APPS, StoredEvent, TurnEvent
from annabelle.core.tools import JsonObject
from annabelle.store import message_state, messages, threads
from annabelle.store.messages import StoredMessage

_RECENT: Final = timedelta(days=1)
_MOST: Final = 3
_SHOWN_CHARS: Final = 500


def post(
    conn: Connection,
    thread_id: str,
    text: str,
    key: str,
    about: JsonObject | None = None,
    *,
    reply_to: str | None = None,
    trace_id: str | None = None,
) -> list[StoredEvent]:
    """Say something in a chat, in the transaction of what it is about. The same key again says nothing."""
    said = messages.add_agent_message(conn, thread_id, text, key, reply_to=reply_to, metadata=about, trace_id=trace_id)
    return announce(conn, said)


def announce(conn: Connection, said: StoredMessage) -> list[StoredEvent]:
    """Deliver a stored message that nobody has been shown yet."""
    queue_delivery(conn, said)
    data: JsonObject = {"message_id": said.id, "text": said.content, **said.metadata}
    event = TurnEvent(message_id=said.id, key="posted", type="message", data=data)
    return threads.append_events(conn, said.thread_id, [event])


def queue_delivery(conn: Connection, said: StoredMessage) -> None:
    """To be sent by its channel; a terminal or a program reads the thread, so for them it is there."""
    message_state.create_delivery(conn, said, "pending" if said.channel in CHAT_APPS else "sent")


def describe_unasked(conn: Connection, message: StoredMessage) -> tuple[str, ...]:
    """What was said unasked in the chat of a message lately, so that the person can reply to it.

    What may be somebody else's words is only named. A turn that wants it looks it up with a tool, and is labelled then.
    """
    said = messages.list_unasked(conn, message, message.created_at - _RECENT, _MOST)
    return tuple(f"{one.created_at:%Y-%m-%d %H:%M} UTC: {_describe(one)}" for one in said)


def _describe(said: StoredMessage) -> str:
    about = said.metadata
    if about.get("trust") != "untrusted":
        return said.content[:_SHOWN_CHARS]
    if "skill_id" in about:
        return f"what the skill “{about.get('name')}” found (memory_get_skill {about['skill_id']} shows it)"
    if "note_id" in about:
        return f"the result of the task “{about.get('name')}” (search_notes shows it)"
    return f"the result of a task (get_job_status {about.get('task_id')} shows it)"
