"""Runs subagents: a process of its own for one task, gone when the task is over (AGT-04)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection

from annabelle.core.contract import TurnResult
from annabelle.core.errors import AnnabelleError, ErrorBody, ToolTimeout, TurnCancelled
from annabelle.core.events import TurnEvent
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.launcher import Launcher
from annabelle.hub.agents.manager import AgentManager, AgentStatus
from annabelle.hub.agents.restarts import Restarts
from annabelle.hub.agents.runner import AgentRunner, RunnerPlan
from annabelle.hub.flows.follow import Follower
from annabelle.hub.subagents.brief import MARK, SubagentAsk, brief_of, errand_of, profile_of, subagent_id
from annabelle.hub.turns import Turns
from annabelle.policy.provenance import trust_after
from annabelle.store import recent_turns
from annabelle.store.database import Database
from annabelle.store.tasks import Task
from annabelle.toolbox.policy import AgentPolicy

_log = logging.getLogger(__name__)
_FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class SubagentParts:
    """What subagents are made of."""

    home: Home
    settings: Settings
    database: Database
    agents: AgentManager
    launcher: Launcher
    turns: Turns
    tools_version: Callable[[AgentPolicy], str]
    ready: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Run:
    parent_id: str
    message_id: str
    runner: AgentRunner
    unwanted: asyncio.Event = field(default_factory=asyncio.Event)


class Subagents:
    """The subagents at work, by task."""

    def __init__(self, parts: SubagentParts) -> None:
        self._parts = parts
        self._runs: dict[str, _Run] = {}
        parts.turns.on_cancel(self._cancel)

    async def run(self, task: Task) -> ToolResult:
        """Do one task to its end. Begun again after a crash, it goes on in the same folder and the same turn."""
        parts = self._parts
        ask = SubagentAsk.model_validate(task.request["ask"])
        context = CallContext.model_validate(task.request["context"])
        assert context.agent_id is not None
        assert context.message_id is not None
        await parts.ready()
        try:
            parts.agents.check_paused(context.agent_id)
            profile = profile_of(parts.agents.agent(context.agent_id).as_profile(parts.settings), ask, task.id)
        except AnnabelleError as error:
            return _failed(task, error.body(context.trace_id))
        errand = errand_of(ask, task.id, context.message_id)
        policy = parts.agents.policy(context.agent_id).narrowed(errand.allowed, errand.denied)
        runner = AgentRunner(
            RunnerPlan(profile, 0, _FOREVER),
            parts.launcher.for_errand(context.agent_id, errand),
            Restarts(parts.settings.agent_restart_base_seconds),
            lambda: None,
        )
        run = self._runs[task.id] = _Run(context.agent_id, context.message_id, runner)
        if parts.turns.cancelled(context.message_id):
            run.unwanted.set()
        brief = brief_of(ask, task.id, context, profile.limits, parts.tools_version(policy))
        try:
            with parts.turns.lend(task.id, context), runner.turn():
                follower = Follower(brief, runner, _Unheard(), lambda: False)
                result = await _followed(
                    follower, run.unwanted, (ask.deadline(task.created_at) - now()).total_seconds()
                )
        except AnnabelleError as error:
            return _failed(task, error.body(context.trace_id))
        finally:
            del self._runs[task.id]
            await runner.kill()
        return await self._told(task, result)

    def statuses(self) -> list[AgentStatus]:
        """Those at work now, as agents."""
        config = self._parts.agents.config
        return [self._status(run) for run in self._runs.values() if config.agent(run.parent_id) is not None]

    def tidy(self, unfinished: Iterable[Task]) -> None:
        """Remove the folders of subagents whose task is over, also those a killed hub left behind."""
        kept = {subagent_id(task.agent_id or "", task.id) for task in unfinished if task.kind == "subagent"}
        for folder in self._parts.home.agents.glob(f"*{MARK}*"):
            if folder.name not in kept:
                self.remove(folder.name)

    def remove(self, agent_id: str) -> None:
        """Leave nothing of a subagent behind: neither its session nor its log."""
        home = self._parts.home
        with contextlib.suppress(OSError):
            shutil.rmtree(home.agent(agent_id), ignore_errors=True)
            for file in home.logs.glob(f"thinker-{agent_id}.log*"):
                file.unlink(missing_ok=True)

    def _cancel(self, message_id: str) -> None:
        for run in self._runs.values():
            if run.message_id == message_id:
                run.unwanted.set()

    async def _told(self, task: Task, result: TurnResult) -> ToolResult:
        """The result as its parent reads it: what came of foreign content is untrusted (TRU-03)."""
        if not result.success:
            return _failed(task, result.error or TurnCancelled("It ended without a word.").body())
        message_id = task.message_id or ""

        def look(conn: Connection) -> list[str]:
            return recent_turns.untrusted_tools(conn, message_id)

        origins = await self._parts.database.read(look)
        structured: JsonObject = {
            "taskId": task.id,
            "toolsUsed": list(result.tools_used),
            "steps": result.steps,
            "tokens": result.usage.input_tokens + result.usage.output_tokens,
        }
        text = result.text
        if result.limit is not None:
            structured["limit"] = result.limit
        if result.unknown_outcomes:
            structured["unknownOutcomes"] = list(result.unknown_outcomes)
            text += f"\n\nIt is not known whether {len(result.unknown_outcomes)} of its calls took effect."
        return ToolResult(text=text, structured=structured, trust=trust_after(origins))

    def _status(self, run: _Run) -> AgentStatus:
        parent, runner = self._parts.agents.status(run.parent_id), run.runner
        return parent.model_copy(
            update={
                "agent_id": runner.agent_id,
                "state": runner.state,
                "port": runner.port,
                "pid": runner.pid,
                "turns": runner.turns,
                "restart_count": runner.restarts.count,
                "flapping": runner.restarts.flapping,
                "last_activity_at": runner.last_activity,
                "llm_provider": runner.plan.profile.provider,
                "model": runner.plan.profile.model,
                "parent_agent_id": run.parent_id,
                "is_subagent": True,
            }
        )


class _Unheard:
    """A subagent's events are its own: who follows the conversation sees the call that sent it, and its result."""

    crowded = False

    def add(self, thread_id: str, user_id: str, event: TurnEvent) -> asyncio.Future[None]:
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heard.set_result(None)
        return heard


async def _followed(follower: Follower, unwanted: asyncio.Event, seconds: float) -> TurnResult:
    """How the turn ended; an error when it took too long or nobody wants it any more."""
    following, stopping = asyncio.ensure_future(follower.follow()), asyncio.ensure_future(unwanted.wait())
    try:
        await asyncio.wait({following, stopping}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            return await following
        if stopping.done():
            raise TurnCancelled("The subagent was stopped, because the turn it worked for was.")
        raise ToolTimeout(
            "The subagent was not done in time and was stopped.",
            hint="What it had done by then stays done. Give it more time, or a smaller task.",
        )
    finally:
        for task in (following, stopping):
            task.cancel()
        await asyncio.wait({following, stopping}, timeout=5)


def _failed(task: Task, error: ErrorBody) -> ToolResult:
    _log.warning("The subagent of %s failed: %s", task.id, error.message)
    return ToolResult.failure(error).model_copy(update={"structured": {"taskId": task.id}, "trust": "trusted"})
