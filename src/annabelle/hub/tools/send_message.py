"""`send_message`: an agent says something in a chat before its turn is over (RTR-07)."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.errors import RetryByModel
from annabelle.core.events import TurnEvent
from annabelle.core.ids import new_id
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.events.log import EventLog, Written
from annabelle.store import events, messages, threads
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread
from annabelle.toolbox.native import OWN_WORDS, NativeTool

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "What to say"},
        "chat_id": {"type": ["string", "integer"], "description": "Another chat of the user; by default this one"},
        "channel": {"type": "string", "description": "The channel of that chat; by default this one's"},
    },
    "required": ["message"],
    "additionalProperties": False,
}
_CHATS_SHOWN = 20


def send_message_tools(log: EventLog) -> list[NativeTool]:
    """The tool, and the name it has had before."""
    sender = _Sender(log)
    # A call id is stored with the message, so a repeated call finds it and says nothing twice.
    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)

    def tool(name: str, description: str) -> NativeTool:
        return NativeTool(name, description, _SCHEMA, sender.send, annotations, group="Communication", scan=OWN_WORDS)

    return [
        tool("send_message", "Say something to the user now, in this chat or another of their chats."),
        tool("send_telegram", "The same as send_message."),
    ]


class _Sender:
    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def send(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        text, call_id = str(arguments["message"]), context.call_id or new_id("call")

        def write(conn: Connection) -> Written[StoredMessage]:
            thread = _thread(conn, arguments, context)
            said = messages.add_agent_message(
                conn, thread.id, text, call_id, reply_to=context.message_id, trace_id=context.trace_id
            )
            event = TurnEvent(
                message_id=context.message_id or said.id,
                key=f"said:{call_id}",
                type="message",
                data={"message_id": said.id, "text": text},
            )
            return Written(said, thread.user_id, events.append(conn, thread.id, [event]))

        try:
            said = await self._log.transact(write)
        except RetryByModel as retry:
            return ToolResult.failure(retry.body(context.trace_id))
        sent: JsonObject = {"sent": True, "message_id": said.id, "channel": said.channel, "chat_id": said.chat_id}
        return ToolResult(text=f"The message was sent to {said.channel} {said.chat_id}.", structured=sent)


def _thread(conn: Connection, arguments: JsonObject, context: CallContext) -> Thread:
    """The chat that is meant. Only chats the user has already used: a model can not open a way out."""
    chat_id = arguments.get("chat_id", context.chat_id)
    channel = arguments.get("channel", context.channel)
    known = threads.listing(conn, context.user_id, limit=1000)
    for thread in known:
        if thread.id == context.thread_id and (channel, str(chat_id)) == (thread.channel, thread.chat_id):
            return thread
    for thread in known:
        if thread.chat_id == str(chat_id) and channel in (None, thread.channel):
            return thread
    names = ", ".join(f"{thread.channel} {thread.chat_id}" for thread in known[:_CHATS_SHOWN]) or "none yet"
    raise RetryByModel("The user has no such chat.", hint=f"Leave chat_id out for the current chat, or use: {names}.")
