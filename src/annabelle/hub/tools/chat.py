"""`send_message`, `propose_rule` and `get_status`: tools for an agent during its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError, NotFound, RetryByModel
from annabelle.core.ids import new_id
from annabelle.core.messages import CHAT_APPS, SKILLS, InboundMessage, TurnEvent
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.base import HubBase
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.status import HubStatus
from annabelle.hub.trust.rules import RuleOrigin, StandingRules, describe_rule
from annabelle.store import messages, threads
from annabelle.store.messages import StoredMessage
from annabelle.store.outbox import queue_delivery
from annabelle.store.threads import Thread
from annabelle.toolbox.catalogue import OWN_WORDS, READS, WRITES_ONCE, NativeTool, native_tool, text_parameter

_CHATS_SHOWN = 20


def send_message_tools(log: EventLog, base: HubBase) -> list[NativeTool]:
    async def send(arguments: JsonObject, context: CallContext) -> ToolResult:
        text, call_id = str(arguments["message"]), context.call_id or new_id("call")
        file = arguments.get("file")
        if file is not None:
            await asyncio.to_thread(base.find_file, str(file))

        def write(conn: Connection) -> WriteResult[StoredMessage]:
            thread = _resolve_thread(conn, arguments, context)
            # Whoever reads the thread itself is told where the file is; a chat app has it sent.
            path = "" if file is None or thread.channel in CHAT_APPS else f"\n\n{base.workspace / str(file)}"
            # `reply_to` is the message of the turn, so that its delivery finds what was sent.
            about = _resolve_answered(conn, arguments, thread) | ({} if file is None else {"file": file})
            said = messages.add_agent_message(
                conn,
                thread.id,
                text + path,
                call_id,
                reply_to=context.message_id,
                metadata=about,
                trace_id=context.trace_id,
            )
            queue_delivery(conn, said)
            event = TurnEvent(
                message_id=context.message_id or said.id,
                key=f"said:{call_id}",
                type="message",
                data={"message_id": said.id, "text": said.content, **about},
            )
            return WriteResult(said, thread.user_id, threads.append_events(conn, thread.id, [event]))

        said = await log.transact(write)
        sent: JsonObject = {"sent": True, "message_id": said.id, "channel": said.channel, "chat_id": said.chat_id}
        return ToolResult(text=f"The message was sent to {said.channel} {said.chat_id}.", structured=sent)

    def tool(name: str, description: str) -> NativeTool:
        return native_tool(
            name,
            description,
            {
                "message": text_parameter(100_000, "What to say"),
                "file": {"type": "string", "description": "A file to send with it: its path in the workspace"},
                "chat_id": {"type": ["string", "integer"], "description": "Another of the user's chats"},
                "channel": {"type": "string", "description": "The channel of that chat"},
                "reply_to": {"type": ["string", "integer"], "description": "Id of a message there that it answers"},
            },
            required=("message",),
            # The call id is stored with the message, so a repeated call sends nothing.
            annotations=WRITES_ONCE.model_copy(update={"open_world": True}),
            group="Communication",
            scan=OWN_WORDS,
        )(send)

    return [
        tool("send_message", "Say something to the user now, in this chat or another of their chats."),
        tool("send_telegram", "The same as send_message."),
    ]


def _resolve_thread(conn: Connection, arguments: JsonObject, context: CallContext) -> Thread:
    """The target chat. Only chats the user has used: a model cannot open new ones."""
    chat_id = arguments.get("chat_id", context.chat_id)
    channel = arguments.get("channel", context.channel)
    here = threads.find_thread(conn, context.thread_id) if context.thread_id and channel != SKILLS else None
    if here and (here.user_id, here.channel, here.chat_id) == (context.user_id, channel, str(chat_id)):
        return here
    known = threads.list_threads(conn, context.user_id, limit=1000)
    for thread in known:
        if thread.ended_at is None and thread.chat_id == str(chat_id) and channel in (None, thread.channel):
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


def propose_rule_tool(rules: StandingRules) -> NativeTool:
    @native_tool(
        "propose_rule",
        "Propose a standing rule the user has stated: what to ask about first, or never to do. "
        "The user confirms it; you can not.",
        {"rule": text_parameter(300, 'As "always ask before deleting mail" or "never send anything to Bob"')},
        required=("rule",),
        annotations=WRITES_ONCE,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def propose_rule(arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.thread_id is None or context.message_id is None:
            raise RetryByModel("A rule can be proposed in a conversation only.")
        place = RuleOrigin(context.user_id, context.thread_id, context.message_id)
        rule = await rules.propose(str(arguments["rule"]), place)
        structured: JsonObject = {"rule_id": rule.id, "state": rule.state}
        if rule.state != "proposed":
            return ToolResult(text=f"This rule holds already. {describe_rule(rule)}", structured=structured)
        text = (
            f"Proposed, not yet in force. {describe_rule(rule)} The user confirms it: annabelle rules confirm {rule.id}"
        )
        return ToolResult(text=text, structured=structured)

    return propose_rule


def get_status_tool(status: Callable[[], HubStatus]) -> NativeTool:
    @native_tool("get_status", "How Annabelle is doing: version, servers, agents, troubles.", {}, annotations=READS)
    async def get_status(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        now = status()
        structured: JsonObject = now.model_dump(mode="json", by_alias=True, exclude={"address"})
        return ToolResult(text=describe_status(now), structured=structured)

    return get_status


def describe_status(now: HubStatus) -> str:
    down = [server.name for server in now.servers if not server.available]
    lines = [
        f"Annabelle {now.version} is {now.status}, up for {now.uptime_seconds:.0f} s.",
        f"{now.tool_count} tools; servers: {len(now.servers) - len(down)} up"
        + (f", down: {', '.join(down)}." if down else "."),
        "Agents: " + ", ".join(f"{a.agent_id} ({'paused' if a.paused else a.state})" for a in now.agents) + ".",
        *(f"{notice.level}: {notice.text}" for notice in now.notices if notice.level != "info"),
    ]
    return "\n".join(lines)
