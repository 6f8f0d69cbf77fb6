"""Subagents: their brief, their tools, and the process that does the one task (AGT-04)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, get_args

from sqlalchemy import Connection

from annabelle.agents.subagent import FORBIDDEN_TOOLS, SubagentRequest, make_brief, read_persona
from annabelle.core.contract import AgentProfile, TurnResult
from annabelle.core.errors import AnnabelleError, ErrorBody, ToolTimeout, TurnCancelled
from annabelle.core.messages import TurnEvent, now
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.agents.config import ProviderName
from annabelle.hub.agents.launcher import ThinkerLauncher
from annabelle.hub.agents.manager import AgentManager, AgentStatus
from annabelle.hub.agents.runner import AgentRestartBackoff, AgentRunner, RunnerPlan
from annabelle.hub.agents.thinker_calls import TurnFollower
from annabelle.hub.base import HubBase
from annabelle.hub.conversations.turns import ActiveTurns
from annabelle.hub.security.identities import SubagentScope
from annabelle.policy.provenance import trust_after
from annabelle.store import tool_calls
from annabelle.store.database import Database
from annabelle.store.tasks import StoredTask
from annabelle.toolbox.facade import Toolbox

AT_ONCE: Final = 5
MARK: Final = ".sub-"
_NAME_CHARS: Final = 20


def subagent_id(parent_id: str, task_id: str) -> str:
    """Id of a subagent. Ids in agents.json cannot contain a dot."""
    return f"{parent_id[:_NAME_CHARS]}{MARK}{task_id[-12:]}"


def make_profile(parent: AgentProfile, ask: SubagentRequest, task_id: str) -> AgentProfile:
    """The parent's profile, with another model if requested, as `provider:model` or a name."""
    provider, model = parent.provider, parent.model
    if ask.model:
        prefix, colon, rest = ask.model.partition(":")
        known = bool(colon and rest) and prefix in get_args(ProviderName)
        provider, model = (prefix, rest) if known else (provider, ask.model)
    return parent.model_copy(
        update={
            "agent_id": subagent_id(parent.agent_id, task_id),
            "provider": provider,
            "model": model,
            "temporary": True,
            "system_prompt": read_persona(parent.agent_id),
        }
    )


def make_scope(ask: SubagentRequest, task_id: str, message_id: str) -> SubagentScope:
    return SubagentScope(task_id, message_id, ask.allowed_tools, (*ask.denied_tools, *FORBIDDEN_TOOLS))


_log = logging.getLogger(__name__)
_FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class _SubagentRun:
    parent_id: str
    message_id: str
    runner: AgentRunner
    unwanted: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagents:
    base: HubBase
    database: Database
    agents: AgentManager
    launcher: ThinkerLauncher
    turns: ActiveTurns
    toolbox: Toolbox
    _runs: dict[str, _SubagentRun] = field(default_factory=dict[str, _SubagentRun], init=False)

    def __post_init__(self) -> None:
        self.turns.on_cancel(self._cancel)

    async def run(self, task: StoredTask) -> ToolResult:
        """Run one task. After a crash it continues in the same folder and turn."""
        ask = SubagentRequest.model_validate(task.request["ask"])
        context = CallContext.model_validate(task.request["context"])
        assert context.agent_id is not None
        assert context.message_id is not None
        await self.base.lifecycle.wait_ready()
        try:
            self.agents.check_paused(context.agent_id)
            profile = make_profile(
                self.agents.registry.agent(context.agent_id).as_profile(self.base.settings), ask, task.id
            )
        except AnnabelleError as error:
            return _failed_result(task, error.body(context.trace_id))
        errand = make_scope(ask, task.id, context.message_id)
        policy = self.agents.registry.policy(context.agent_id).narrow(errand.allowed, errand.denied)
        runner = AgentRunner(
            RunnerPlan(profile, 0, _FOREVER),
            self.launcher.for_subagent(context.agent_id, errand),
            AgentRestartBackoff(self.base.settings.agent_restart_base_seconds),
        )
        run = self._runs[task.id] = _SubagentRun(context.agent_id, context.message_id, runner)
        if self.turns.cancelled(context.message_id):
            run.unwanted.set()
        brief = make_brief(ask, task.id, context, profile.limits, self.toolbox.tools(policy).version)
        try:
            with self.turns.lend_to_subagent(task.id, context), runner.turn():
                follower = TurnFollower(brief, runner, _DiscardEvents(), lambda: False)
                result = await _follow_with_deadline(
                    follower, run.unwanted, (ask.deadline(task.created_at) - now()).total_seconds()
                )
        except AnnabelleError as error:
            return _failed_result(task, error.body(context.trace_id))
        finally:
            del self._runs[task.id]
            await runner.kill()
        return await self._to_tool_result(task, result)

    def statuses(self) -> list[AgentStatus]:
        config = self.agents.registry.config
        return [self._status(run) for run in self._runs.values() if config.agent(run.parent_id) is not None]

    def tidy(self, unfinished: Iterable[StoredTask]) -> None:
        """Remove folders of subagents whose task is over, including those a killed hub left."""
        kept = {subagent_id(task.agent_id or "", task.id) for task in unfinished if task.kind == "subagent"}
        for folder in self.base.home.agents.glob(f"*{MARK}*"):
            if folder.name not in kept:
                self.remove(folder.name)

    def remove(self, agent_id: str) -> None:
        home = self.base.home
        with contextlib.suppress(OSError):
            shutil.rmtree(home.agent(agent_id), ignore_errors=True)
            for file in home.logs.glob(f"thinker-{agent_id}.log*"):
                file.unlink(missing_ok=True)

    def _cancel(self, message_id: str) -> None:
        for run in self._runs.values():
            if run.message_id == message_id:
                run.unwanted.set()

    async def _to_tool_result(self, task: StoredTask, result: TurnResult) -> ToolResult:
        """The result for the parent. It is untrusted if foreign content was seen (TRU-03)."""
        if not result.success:
            return _failed_result(task, result.error or TurnCancelled("It ended without a word.").body())
        message_id = task.message_id or ""

        def load_untrusted(conn: Connection) -> list[str]:
            return tool_calls.list_untrusted_tools(conn, message_id)

        origins = await self.database.read(load_untrusted)
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

    def _status(self, run: _SubagentRun) -> AgentStatus:
        parent, runner = self.agents.status(run.parent_id), run.runner
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


class _DiscardEvents:
    """Drops events of a subagent. The conversation shows only the call and its result."""

    crowded = False

    def add(self, thread_id: str, user_id: str, event: TurnEvent) -> asyncio.Future[None]:
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heard.set_result(None)
        return heard


async def _follow_with_deadline(follower: TurnFollower, unwanted: asyncio.Event, seconds: float) -> TurnResult:
    """Result of the turn, or an error if it took too long or was cancelled."""
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


def _failed_result(task: StoredTask, error: ErrorBody) -> ToolResult:
    _log.warning("The subagent of %s failed: %s", task.id, error.message)
    return ToolResult.failure(error).model_copy(update={"structured": {"taskId": task.id}, "trust": "trusted"})
