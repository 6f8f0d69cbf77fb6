"""A hub inside the test's process whose thinker is played by the test; everything else, the HTTP too, is real."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import httpx2 as httpx

from annabelle.core.contract import (
    ClearSession,
    ParkedCall,
    ParkedTurn,
    StreamedEvent,
    TurnAccepted,
    TurnBrief,
    TurnResult,
    TurnState,
)
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import PolicyDecision
from annabelle.hub.agents.client import ThinkerClient
from annabelle.hub.agents.runner import AgentRestartBackoff, AgentRunner
from annabelle.hub.app import make_app
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import RunningHub, assemble
from annabelle.hub.context import HubContext
from annabelle.hub.instance import bind_port
from annabelle.hub.tasks.background_calls import QueuedCallJudge
from annabelle.toolbox.catalogue import NativeTool
from support.timing import seconds

SENDS = ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=True)
READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
LETTER: JsonObject = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "body": {"type": "string"}, "copies": {"type": "integer"}},
    "required": ["to"],
    "additionalProperties": False,
}


class AskAboutLetters:
    """A policy that lets everything pass but letters: those it wants a yes for.

    With `only_when_made` it has grown stricter since a letter was queued.
    """

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.only_when_made = False
        self.while_judging: Callable[[], Awaitable[None]] | None = None

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision:
        self.judged.append(context.call_id or "")
        if tool.name == "post_letter" and arguments.get("to") == "nobody":
            return PolicyDecision(verdict="refuse", reasons=("Your rule says: never.",))
        if self.only_when_made and context.queued_as is None:
            return PolicyDecision()
        if self.while_judging is not None:
            await self.while_judging()
        if tool.name == "post_letter":
            return PolicyDecision(verdict="ask", reasons=(f"You did not name {arguments['to']}.",))
        return PolicyDecision()


@dataclass
class PlayedThinker:
    """Makes the calls it is told to in a message, in order or side by side, and parks as a thinker does."""

    agent: httpx.AsyncClient
    briefs: list[TurnBrief] = field(default_factory=list[TurnBrief])
    results: dict[str, TurnResult] = field(default_factory=dict[str, TurnResult])
    answers: list[JsonObject] = field(default_factory=list[JsonObject])
    cleared: list[ClearSession] = field(default_factory=list[ClearSession])
    before_end: Callable[[], None] | None = None
    agent_id: str = "annabelle"
    restarts: AgentRestartBackoff = field(default_factory=lambda: AgentRestartBackoff(0))

    async def ensure(self) -> ThinkerClient:
        return cast("ThinkerClient", self)

    async def unanswered(self, _client: object) -> None: ...

    async def begin(self, brief: TurnBrief) -> TurnAccepted:
        self.briefs.append(brief)
        self.results[brief.message_id] = await self._turn(brief)
        return TurnAccepted(message_id=brief.message_id, state="done")

    async def events(self, _brief: TurnBrief, _after: int, _stream: str | None) -> AsyncIterator[StreamedEvent]:
        for none in cast("list[StreamedEvent]", []):
            yield none

    async def state(self, message_id: str) -> TurnState:
        return TurnState(message_id=message_id, state="done", result=self.results[message_id])

    async def cancel(self, _message_id: str) -> None: ...

    async def clear_session(self, wanted: ClearSession) -> None:
        self.cleared.append(wanted)

    async def call(self, message_id: str, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        body = {"name": name, "arguments": arguments, "message_id": message_id, "call_id": call_id}
        answer = (await self.agent.post("/tools/call", json=body)).json()
        self.answers.append(answer)
        return answer

    async def _turn(self, brief: TurnBrief) -> TurnResult:
        try:
            plan = json.loads(brief.text)
        except ValueError:
            return TurnResult(message_id=brief.message_id, success=True, text=f"You said: {brief.text}")
        if brief.resume is None:
            wanted = [ParkedCall(model_id=f"m{n}", **call) for n, call in enumerate(plan["calls"])]
            return await self._make(brief, plan, wanted, 1)
        said = {answer.approval_id: answer for answer in brief.resume.answers}
        wanted: list[ParkedCall] = []
        for call in brief.resume.parked.pending:
            answer = said.get(call.approval_id or "")
            if answer is None or answer.verdict == "approved":
                edited = answer.arguments if answer is not None else None
                wanted.append(call.model_copy(update={"arguments": edited or call.arguments, "approval_id": None}))
        return await self._make(brief, plan, wanted, 2)

    async def _make(self, brief: TurnBrief, plan: JsonObject, wanted: list[ParkedCall], step: int) -> TurnResult:
        pending: list[ParkedCall] = []
        for n, call in enumerate(wanted):
            if pending and not plan.get("together"):
                pending.append(call)
                continue
            answer = await self.call(brief.message_id, f"{brief.message_id}:{step}:{n}", call.name, call.arguments)
            if answer.get("approval_id"):
                pending.append(call.model_copy(update={"approval_id": answer["approval_id"]}))
        if self.before_end is not None:
            self.before_end()
        parked = None
        if pending:
            parked = ParkedTurn(text=brief.text, pending=tuple(pending), progress={"steps": step})
        say = "a text that only the thinker wrote" if parked else str(plan.get("say", "done"))
        return TurnResult(message_id=brief.message_id, success=True, text=say, parked=parked)


@dataclass
class House:
    """A hub at work, the people and processes that talk to it, and what its tool did."""

    machine: RunningHub
    owner: httpx.AsyncClient
    thinker: PlayedThinker
    judge: AskAboutLetters
    posted: list[JsonObject]

    @property
    def hub(self) -> HubContext:
        return self.machine.hub

    async def say(self, *letters: JsonObject, chat: str = "main", **more: object) -> JsonObject:
        """Ask for letters to be posted; what came of the message."""
        plan = {"calls": [{"name": "post_letter", "arguments": letter} for letter in letters], **more}
        return await self.message(json.dumps(plan), chat)

    async def message(self, text: str, chat: str = "main") -> JsonObject:
        answer = await self.owner.post("/message", params={"wait": seconds(20)}, json={"text": text, "chatId": chat})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def asked(self, state: str | None = "pending") -> list[JsonObject]:
        """The owner's questions, oldest first."""
        params = {} if state is None else {"state": state}
        return (await self.owner.get("/approvals", params=params)).json()["approvals"][::-1]

    async def answer(self, approval_id: object, verdict: str = "approve", **more: object) -> httpx.Response:
        return await self.owner.post(f"/approvals/{approval_id}", json={"verdict": verdict, **more})

    async def outcome(self, answered: httpx.Response) -> JsonObject:
        """What came of the message that carries the turn on."""
        assert answered.status_code == 200, answered.text
        message_id = answered.json()["messageId"]
        return (await self.owner.get(f"/messages/{message_id}", params={"wait": seconds(20)})).json()

    async def events(self, message_id: object) -> list[JsonObject]:
        return (await self.owner.get(f"/messages/{message_id}/events")).json()["events"]

    async def said(self, thread_id: object) -> list[tuple[str, str]]:
        listed = (await self.owner.get(f"/threads/{thread_id}/messages")).json()["messages"]
        return [(line["source"], line["text"]) for line in listed if line["type"] == "text"]


@asynccontextmanager
async def a_house(home: Home, **settings: object) -> AsyncGenerator[House]:
    """As after a start. Another one on the same home is the same hub, started again."""
    given = {"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False, **settings}
    judge, posted = AskAboutLetters(), cast("list[JsonObject]", [])

    async def post(arguments: JsonObject, _context: CallContext) -> ToolResult:
        posted.append(arguments)
        return ToolResult(text="posted", trust="trusted")

    async def look(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        return ToolResult(text="nothing new", trust="trusted")

    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, Settings.model_validate(given), Redactor(), sock, None), stack)
            hub = machine.hub
            await hub.agents.start()
            hub.toolbox.add_native(
                [
                    NativeTool("post_letter", "Posts a letter.", LETTER, post, SENDS),
                    NativeTool("look_around", "Looks.", {"type": "object"}, look, READS),
                ]
            )
            router = hub.toolbox._router
            queue_judge = cast("QueuedCallJudge", router._hooks.judge)
            # What policy really says is told in its own tests.
            router._hooks = replace(router._hooks, judge=replace(queue_judge, inner=judge))
            agent = await stack.enter_async_context(client(hub, hub.security.identities.admit("annabelle")))
            thinker = PlayedThinker(agent)

            @contextlib.asynccontextmanager
            async def turn(agent_id: str) -> AsyncGenerator[AgentRunner]:
                hub.agents.check_paused(agent_id)
                yield cast("AgentRunner", thinker)

            hub.agents.turn = turn  # type: ignore[method-assign]
            await machine.hub.storage.durable.launch()
            hub.base.lifecycle.mark_ready()
            await hub.services.approvals.expiry.start()
            await machine.hub.conversations.thread_queue.recover()
            await hub.services.tasks.resume()
            owner = await stack.enter_async_context(client(hub, home.token_file.read_text().strip()))
            yield House(machine, owner, thinker, judge, posted)
            hub.base.lifecycle.mark_stopping()


def client(hub: HubContext, token: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(make_app(hub))
    headers = {"X-Annabelle-Token": token}
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers, timeout=seconds(60))
