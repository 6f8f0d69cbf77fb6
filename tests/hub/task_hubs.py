"""A hub inside the test's process, without servers and HTTP, with a message that is being answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from sqlalchemy import Connection

from annabelle.core.home import Home
from annabelle.core.messages import OWNER, InboundMessage
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import RunningHub, assemble
from annabelle.hub.conversations.turns import load_call_context
from annabelle.hub.instance import bind_port
from annabelle.store import claims, messages, threads
from annabelle.store.messages import QueueLimits
from annabelle.toolbox.catalogue import NativeTool
from support.standing_yes import allow

ANY: JsonObject = {"type": "object", "properties": {}}
ONCE = ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True)
AGAIN = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)


class Work:
    """Tools that count their calls, and can be made to wait."""

    def __init__(self) -> None:
        self.calls: list[CallContext] = []
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def do(self, _arguments: JsonObject, context: CallContext) -> ToolResult:
        self.calls.append(context)
        self.begun.set()
        await self.go_on.wait()
        return ToolResult(text="The page says hello.", trust="untrusted")

    def tools(self) -> list[NativeTool]:
        return [NativeTool(name, "x", ANY, self.do, kind) for name, kind in (("do_once", ONCE), ("do_again", AGAIN))]


@asynccontextmanager
async def a_hub(home: Home, work: Work) -> AsyncGenerator[RunningHub]:
    """A hub without servers and HTTP, as it is after a start."""
    settings = Settings.model_validate({"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False})
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, settings, Redactor(), sock, None), stack)
            await machine.hub.agents.start()
            machine.hub.toolbox.add_native(work.tools())
            await allow(machine.hub.storage.database, do_once=(), do_again=())
            await machine.hub.services.tasks.tidy()
            await machine.hub.storage.durable.launch()
            machine.hub.base.lifecycle.mark_ready()
            await machine.hub.services.tasks.resume()
            yield machine
            machine.hub.base.lifecycle.mark_stopping()


async def turn(machine: RunningHub) -> CallContext:
    """A message that is being answered, and the context of a call in its turn."""
    inbound = InboundMessage(channel="api", chat_id="main", sender_id="me", text="Look at that page.")

    def enter(conn: Connection) -> CallContext:
        thread = threads.find_or_create_thread(conn, channel="api", chat_id="main", user_id=OWNER, agent_id="annabelle")
        messages.queue_message(conn, thread, inbound, QueueLimits())
        message_id = claims.claim_next_messages(conn, "hub", 8)[0].message_id
        return load_call_context(conn, messages.load_message(conn, message_id))

    context = await machine.hub.storage.database.write(enter)
    return context.model_copy(update={"call_id": f"{context.message_id}:1:0"})
