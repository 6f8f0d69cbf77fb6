"""`chat`, `check_status` and `check_notifications`: talking to Annabelle herself over MCP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from pydantic import ValidationError
from sqlalchemy import Connection

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, InvalidArguments, NotAllowed
from annabelle.core.messages import OWNER, StoredEvent, now
from annabelle.core.tools import JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.hub.api.messages import UNFINISHED, NewMessage, post_message, wait_for_progress
from annabelle.hub.api.threads import MessageProgress
from annabelle.hub.context import HubContext
from annabelle.hub.mcp.guarded_call import MCP_CHAT, WAIT_SECONDS
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.security.request_guard import validation_error
from annabelle.hub.tools.chat import describe_status
from annabelle.store import threads
from annabelle.store.threads import Thread
from annabelle.toolbox.catalogue import NATIVE, READS, WRITES_ONCE

_RECENT: Final = timedelta(days=1)
_MOST: Final = 50
_MOST_READ: Final = 1_000
_SHOWN_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class McpCaller:
    """A program that speaks MCP: how its calls are judged, and the token it came with."""

    agent: CallerIdentity
    token: CallerIdentity

    @classmethod
    def from_identity(cls, token: CallerIdentity) -> McpCaller:
        return cls(token.as_outside_agent("mcp"), token)

    @property
    def speaks_for_person(self) -> bool:
        """Whether the person gave it a token of their own, rather than one for an agent."""
        return self.token.outside_agent is None

    @property
    def may_manage(self) -> bool:
        return self.token.kind == "owner" and self.speaks_for_person and "manage" in self.token.grant.scopes


@dataclass(slots=True)
class OwnTools:
    """The tools that are no server's. What a caller was told is remembered until the hub stops."""

    hub: HubContext
    _told: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _unheard: set[str] = field(default_factory=set[str])
    _cancelled: BackgroundTasks = field(default_factory=BackgroundTasks)

    def specs(self) -> list[ToolSpec]:
        return [
            _spec(
                "chat",
                "Say something to Annabelle and get her answer. She has her own history of each chat, tools and "
                "memory, and asks her person before she does what they did not order.",
                {
                    "message": {"type": "string", "minLength": 1, "description": "What to say"},
                    "chat_id": {"type": "string", "description": f"Which conversation; by default {MCP_CHAT!r}"},
                },
                WRITES_ONCE,
                ("message",),
            ),
            _spec("check_status", "How Annabelle is doing: version, servers, agents, troubles.", {}, READS),
            _spec(
                "check_notifications",
                "What Annabelle said without being asked, what she asks her person, and what came of your own calls "
                "that took longer, since you last looked.",
                {
                    "after": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Start behind this one; by default new ones",
                    }
                },
                READS,
            ),
        ]

    def find(self, name: str) -> Callable[[McpCaller, JsonObject], Awaitable[ToolResult]] | None:
        known = {"chat": self.chat, "check_status": self.check_status, "check_notifications": self.check_notifications}
        return known.get(name)

    async def chat(self, caller: McpCaller, arguments: JsonObject) -> ToolResult:
        if "talk" not in caller.token.grant.scopes:
            raise NotAllowed(f"The token {caller.token.grant.name} has no scope talk.")
        try:
            said = NewMessage.model_validate(
                {"text": arguments.get("message", ""), "chat_id": arguments.get("chat_id", MCP_CHAT)}
            )
        except ValidationError as error:
            raise validation_error(error) from error
        posting = asyncio.ensure_future(post_message(self.hub, caller.agent, said))
        try:
            message_id = (await asyncio.shield(posting)).message_id
            progress = await wait_for_progress(self.hub, message_id, caller.agent.user_id, WAIT_SECONDS)
        except asyncio.CancelledError:
            self._cancelled.start(self._cancel(posting, caller.agent.user_id))
            raise
        facts: JsonObject = {"message_id": message_id, "state": progress.state}
        if progress.state in UNFINISHED:
            self._unheard.add(message_id)
            text = "She is still at it. check_notifications tells the answer when it is there."
            return ToolResult(text=text, structured=facts, trust="trusted")
        text = "\n\n".join(one.text for one in progress.replies)
        return ToolResult(text=text, structured=facts, is_error=progress.state == "failed")

    async def _cancel(self, posting: asyncio.Future[MessageProgress], user_id: str) -> None:
        """The turn may have begun before the caller was told of it."""
        with contextlib.suppress(AnnabelleError):  # if it was not posted, nothing runs
            await self.hub.conversations.gate.cancel((await posting).message_id, user_id)

    async def check_status(self, caller: McpCaller, _arguments: JsonObject) -> ToolResult:
        now = self.hub.status()
        if caller.agent.user_id != OWNER:
            return ToolResult(text=f"Annabelle {now.version} is {now.status}.", trust="trusted")
        return ToolResult(text=describe_status(now), trust="trusted")

    async def check_notifications(self, caller: McpCaller, arguments: JsonObject) -> ToolResult:
        name = (caller.agent.user_id, caller.agent.outside_agent or "")
        given = arguments.get("after")
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
            raise InvalidArguments("after is not a number of a notification.", field="after")
        after = self._told.get(name, 0) if given is None else given
        read = await self._read(caller, after)
        found = [(event, thread) for event, thread in read if self._is_for(caller, event, thread)]
        shown = found[:_MOST]
        last = (shown if len(found) > _MOST else read)[-1][0].seq if read else after
        self._told[name] = max(last, self._told.get(name, 0))
        self._unheard -= {event.message_id for event, _ in shown}
        lines = [_describe(event, thread) for event, thread in shown] or ["There is nothing new."]
        if len(found) > _MOST:
            lines.append("There is more: look again.")
        return ToolResult(text="\n\n".join(lines), structured={"count": len(shown), "after": last})

    async def _read(self, caller: McpCaller, after: int) -> list[tuple[StoredEvent, Thread]]:
        user_id, since = caller.agent.user_id, now() - _RECENT

        def read(conn: Connection) -> list[tuple[StoredEvent, Thread]]:
            events = threads.list_said_after(conn, user_id, after, since, _MOST_READ)
            known = {one: threads.load_thread(conn, one) for one in {event.thread_id for event in events}}
            return [(event, known[event.thread_id]) for event in events]

        return await self.hub.storage.database.read(read)

    def _is_for(self, caller: McpCaller, event: StoredEvent, thread: Thread) -> bool:
        own = thread.channel == caller.agent.outside_agent
        # To another agent, what the person says elsewhere is not there.
        if not own and not caller.speaks_for_person:
            return False
        asked_elsewhere = event.type == "approval" and not own  # the caller's own calls answer with the question
        return event.key == "posted" or asked_elsewhere or event.message_id in self._unheard


def _describe(event: StoredEvent, thread: Thread) -> str:
    where = f"{event.at:%Y-%m-%d %H:%M} UTC, {thread.channel} {thread.chat_id}"
    if event.type == "approval":
        return f"{where}: she asks whether she may call {event.data.get('tool')} ({event.data.get('approval_id')})."
    return f"{where}: {str(event.data.get('text', ''))[:_SHOWN_CHARS]}"


def _spec(
    name: str, description: str, parameters: JsonObject, annotations: ToolAnnotations, required: Iterable[str] = ()
) -> ToolSpec:
    schema: JsonObject = {"type": "object", "properties": parameters, "additionalProperties": False}
    return ToolSpec(
        name=name,
        server=NATIVE,
        original_name=name,
        description=description,
        input_schema=schema | {"required": list(required)},
        annotations=annotations,
    )
