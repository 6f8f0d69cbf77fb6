"""`send_message`, `propose_rule` and `get_status`: tools for an agent during its turn."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError, NotFound, RetryByModel
from annabelle.core.ids import new_id
from annabelle.core.messages import InboundMessage, TurnEvent
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.context import HubStatus
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.trust.rules import RuleOrigin, StandingRules, describe_rule
from annabelle.store import messages, threads
from annabelle.store.messages import StoredMessage
from annabelle.store.threads import Thread
from annabelle.toolbox.catalogue import OWN_WORDS, NativeTool

_SEND_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "maxLength": 100_000, "description": "What to say"},
        "chat_id": {"type": ["string", "integer"], "description": "Another chat of the user; by default this one"},
        "channel": {"type": "string", "description": "The channel of that chat; by default this one's"},
        "reply_to": {"type": ["string", "integer"], "description": "The id of a message of that chat it answers"},
    },
    "required": ["message"],
    "additionalProperties": False,
}
_CHATS_SHOWN = 20


def send_message_tools(log: EventLog) -> list[NativeTool]:
    sender = _MessageSender(log)
    # The call id is stored with the message, so a repeated call sends nothing.
    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)

    def tool(name: str, description: str) -> NativeTool:
        return NativeTool(
            name, description, _SEND_SCHEMA, sender.send, annotations, group="Communication", scan=OWN_WORDS
        )

    return [
        tool("send_message", "Say something to the user now, in this chat or another of their chats."),
        tool("send_telegram", "The same as send_message."),
    ]


class _MessageSender:
    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def send(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        text, call_id = str(arguments["message"]), context.call_id or new_id("call")

        def write(conn: Connection) -> WriteResult[StoredMessage]:
            thread = _resolve_thread(conn, arguments, context)
            # `reply_to` is the message of the turn, so that its delivery finds what was sent.
            answers = _resolve_answered(conn, arguments, thread)
            said = messages.add_agent_message(
                conn,
                thread.id,
                text,
                call_id,
                reply_to=context.message_id,
                metadata=answers,
                trace_id=context.trace_id,
            )
            event = TurnEvent(
                message_id=context.message_id or said.id,
                key=f"said:{call_id}",
                type="message",
                data={"message_id": said.id, "text": text, **answers},
            )
            return WriteResult(said, thread.user_id, threads.append_events(conn, thread.id, [event]))

        try:
            said = await self._log.transact(write)
        except RetryByModel as retry:
            return ToolResult.failure(retry.body(context.trace_id))
        sent: JsonObject = {"sent": True, "message_id": said.id, "channel": said.channel, "chat_id": said.chat_id}
        return ToolResult(text=f"The message was sent to {said.channel} {said.chat_id}.", structured=sent)


def _resolve_thread(conn: Connection, arguments: JsonObject, context: CallContext) -> Thread:
    """The target chat. Only chats the user has used: a model cannot open new ones."""
    chat_id = arguments.get("chat_id", context.chat_id)
    channel = arguments.get("channel", context.channel)
    known = threads.list_threads(conn, context.user_id, limit=1000)
    for thread in known:
        if thread.id == context.thread_id and (channel, str(chat_id)) == (thread.channel, thread.chat_id):
            return thread
    for thread in known:
        if thread.chat_id == str(chat_id) and channel in (None, thread.channel):
            return thread
    names = ", ".join(f"{thread.channel} {thread.chat_id}" for thread in known[:_CHATS_SHOWN]) or "none yet"
    raise RetryByModel("The user has no such chat.", hint=f"Leave chat_id out for the current chat, or use: {names}.")


def _resolve_answered(conn: Connection, arguments: JsonObject, thread: Thread) -> JsonObject:
    """The message that is answered, by its own or its channel's id."""
    named = arguments.get("reply_to")
    if named is None:
        return {}
    known = InboundMessage(
        channel=thread.channel,
        chat_id=thread.chat_id,
        user_id=thread.user_id,
        sender_id=thread.user_id,
        external_id=str(named),
        text=str(named),
    )
    found = messages.find_known_message(conn, known)
    if found is None:
        try:
            found = messages.get_message(conn, str(named), thread.user_id)
        except NotFound:
            found = None
    if found is None or found.thread_id != thread.id:
        raise RetryByModel(f"There is no message {named} in that chat.", hint="Leave reply_to out.")
    return {"reply_to": found.id}


_RULE_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "rule": {
            "type": "string",
            "minLength": 1,
            "maxLength": 300,
            "description": 'As "always ask before deleting mail" or "never send anything to Bob"',
        }
    },
    "required": ["rule"],
    "additionalProperties": False,
}


def propose_rule_tool(rules: StandingRules) -> NativeTool:
    async def propose(arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.thread_id is None or context.message_id is None:
            error = RetryByModel("A rule can be proposed in a conversation only.")
            return ToolResult.failure(error.body(context.trace_id))
        place = RuleOrigin(context.user_id, context.thread_id, context.message_id)
        try:
            rule = await rules.propose(str(arguments["rule"]), place)
        except AnnabelleError as error:
            return ToolResult.failure(error.body(context.trace_id))
        structured: JsonObject = {"rule_id": rule.id, "state": rule.state}
        if rule.state != "proposed":
            return ToolResult(text=f"This rule holds already. {describe_rule(rule)}", structured=structured)
        text = (
            f"Proposed, not yet in force. {describe_rule(rule)} The user confirms it: annabelle rules confirm {rule.id}"
        )
        return ToolResult(text=text, structured=structured)

    annotations = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
    description = (
        "Propose a standing rule the user has stated: what to ask about first, or never to do. "
        "The user confirms it; you can not."
    )
    return NativeTool("propose_rule", description, _RULE_SCHEMA, propose, annotations, scan=OWN_WORDS)


_STATUS_SCHEMA: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


def get_status_tool(status: Callable[[], HubStatus]) -> NativeTool:
    async def get_status(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        now = status()
        down = [server.name for server in now.servers if not server.available]
        lines = [
            f"Annabelle {now.version} is {now.status}, up for {now.uptime_seconds:.0f} s.",
            f"{now.tool_count} tools; servers: {len(now.servers) - len(down)} up"
            + (f", down: {', '.join(down)}." if down else "."),
            "Agents: " + ", ".join(f"{a.agent_id} ({'paused' if a.paused else a.state})" for a in now.agents) + ".",
            *(f"{notice.level}: {notice.text}" for notice in now.notices if notice.level != "info"),
        ]
        structured: JsonObject = now.model_dump(mode="json", by_alias=True, exclude={"address"})
        return ToolResult(text="\n".join(lines), structured=structured)

    annotations = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    return NativeTool(
        "get_status",
        "How Annabelle is doing: version, servers, agents, troubles.",
        _STATUS_SCHEMA,
        get_status,
        annotations,
    )
