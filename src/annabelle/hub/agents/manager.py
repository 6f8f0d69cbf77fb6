"""Starts, pauses, restarts and stops the processes of all agents."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import datetime

from pydantic import Field

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AgentPaused, AgentStopped, AnnabelleError
from annabelle.core.messages import now
from annabelle.core.models import CamelModel
from annabelle.core.ports import AuditTrail
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.hub.agents.client import ThinkerClient
from annabelle.hub.agents.config import Agent
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.launcher import ThinkerLauncher
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.agents.runner import (
    AgentRestartBackoff,
    AgentRunner,
    RunnerHooks,
    RunnerPlan,
    RunnerState,
    cancel_owed_turns,
)
from annabelle.hub.costs.monitor import CostMonitor, CostWindow, background_account
from annabelle.hub.home_setup import seed_agent
from annabelle.hub.notices import Notices
from annabelle.policy.costs import count_worst_case_calls
from annabelle.store import cost_control
from annabelle.store.cost_control import AgentState
from annabelle.store.database import Database

_log = logging.getLogger(__name__)
_RELOAD_SECONDS = 1.0


class AgentStatus(CamelModel):
    """One agent at this moment. A stopped one is available: its next message starts it."""

    agent_id: str = Field(examples=["annabelle"])
    enabled: bool
    available: bool
    stopped: bool = Field(default=False, description="Its owner stopped it; only resuming ends that")
    state: RunnerState
    paused: bool
    pause_reason: str | None
    paused_at: datetime | None
    port: int | None
    pid: int | None
    turns: int = Field(description="Turns it is working on now")
    restart_count: int
    flapping: bool = Field(description="More than three restarts within ten minutes")
    last_activity_at: datetime | None
    llm_provider: str | None
    model: str | None
    costs: CostWindow
    worst_case_model_calls: int = Field(
        description="The most model calls one message can cause: steps, tries and fallbacks. A subagent it sends has"
        " the same bound over twenty steps of its own, and a token budget beside it"
    )
    parent_agent_id: str | None = Field(default=None, description="The agent a subagent works for")
    is_subagent: bool = False


class AgentManager:
    """One runner per configured agent. A process starts with the agent's first message."""

    def __init__(
        self,
        settings: Settings,
        registry: AgentRegistry,
        halts: Halts,
        launcher: ThinkerLauncher,
        database: Database,
        notices: Notices,
        audit: AuditTrail | None = None,
    ) -> None:
        self.registry, self.halts = registry, halts
        self._settings, self._launcher = settings, launcher
        self._database, self._notices, self._audit = database, notices, audit
        self._runners: dict[str, AgentRunner] = {}
        self._paused: dict[str, AgentState] = {}
        self._listeners: list[Callable[[], None]] = []
        # Keeps the database and `_paused` in step.
        self._pausing = asyncio.Lock()
        self._watching = BackgroundTasks()
        self.costs = CostMonitor(registry.cost_controls)

    @property
    def spare_ready(self) -> bool:
        return self._launcher.spare.ready

    async def prepare_spare(self) -> None:
        self._launcher.spare.prepare()

    async def start(self) -> None:
        """Create the runners, then watch for idle agents and changes of agents.json."""
        self._apply()
        states = await self._database.read(cost_control.list_agent_states)
        self._paused = {agent_id: state for agent_id, state in states.items() if state.paused}
        await self._restore_windows(states)
        self._watching.start(self._repeat(self._settings.agent_idle_scan_seconds, self._stop_idle))
        self._watching.start(self._repeat(_RELOAD_SECONDS, self._reload))

    def paused_accounts(self) -> list[AgentState]:
        """The agents that are paused, and those that are only in the background."""
        return [*self._paused.values()]

    def is_paused(self, agent_id: str) -> bool:
        return agent_id in self._paused

    def is_held(self, agent_id: str) -> bool:
        """Whether the agent does nothing in the background now: it is paused or stopped. A removed one never will."""
        if self.registry.find(agent_id) is None:
            return False
        try:
            self.check_paused(agent_id, background=True)
        except AgentPaused:
            return True
        return False

    def find_pause(self, agent_id: str) -> AgentPaused | None:
        """Why the agent's work in the background waits until it is resumed or enabled. A stopped agent's is refused."""
        agent = self.registry.find(agent_id)
        if agent is None:
            return None
        try:
            self._check_enabled(agent)
            self.check_paused(agent_id, background=True)
        except AgentStopped:
            return None
        except AgentPaused as paused:
            return paused
        return None

    def on_resume(self, listener: Callable[[], None]) -> None:
        """Be told when an agent that was paused goes on."""
        self._listeners.append(listener)

    def check_paused(self, agent_id: str, *, background: bool = False) -> None:
        """Raises AgentPaused or AgentStopped if the agent may not work (AGT-05, TRU-06).

        What it does in the background may be paused while it answers people.
        """
        self.halts.check(agent_id)
        state = self._paused.get(agent_id)
        if state is None and background:
            state = self._paused.get(background_account(agent_id))
        if state is not None:
            what = "The agent" if state.agent_id == agent_id else "Background work of"
            raise AgentPaused(
                f"{what} {agent_id} is paused: {state.reason or 'no reason was given'}.",
                hint=f"Let it go on with: annabelle costs resume {agent_id}",
            )

    @contextlib.asynccontextmanager
    async def turn(self, agent_id: str) -> AsyncGenerator[AgentRunner]:
        """The runner of an agent that may work now. While inside, it is not stopped for idleness."""
        self._check_enabled(self.registry.agent(agent_id))
        self.check_paused(agent_id)
        runner = self._runners[agent_id]
        with runner.turn():
            yield runner

    def _check_enabled(self, agent: Agent) -> None:
        if not agent.enabled:
            raise AgentPaused(f"The agent {agent.agent_id} is disabled.", hint="Enable it in agents.json.")

    async def pause(self, agent_id: str, reason: str) -> AgentStatus:
        self.registry.agent(agent_id)
        await self.pause_account(agent_id, reason)
        return self.status(agent_id)

    async def pause_account(self, account: str, reason: str) -> AgentState:
        """Pause an agent, or only what it does in the background."""
        async with self._pausing:
            state = await self._database.write(lambda conn: cost_control.pause_agent(conn, account, reason))
            self._paused[account] = state
        self._audit_event("stop", {"event": "paused", "agent_id": account})
        self._notices.add(
            f"agent_paused:{account}", f"{account} is paused: {state.reason}.", level="warning", tell_owner=False
        )
        return state

    async def resume(self, agent_id: str, reset_window: bool) -> AgentStatus:
        self.registry.agent(agent_id)
        async with self._pausing:
            for account in (agent_id, background_account(agent_id)):
                await self._database.write(
                    lambda conn, who=account: cost_control.resume_agent(conn, who, reset_window=reset_window)
                )
                self._paused.pop(account, None)
                if reset_window:
                    self.costs.forget(account)
                self._notices.clear(f"agent_paused:{account}")
        for listener in self._listeners:
            listener()
        self._audit_event("stop", {"event": "unpaused", "agent_id": agent_id})
        client = self.running_client(agent_id)
        if client is not None:
            await client.resume_costs(reset_window)
        return self.status(agent_id)

    def running_client(self, agent_id: str) -> ThinkerClient | None:
        runner = self._runners.get(agent_id)
        return runner.running_client() if runner is not None else None

    async def restart(self, agent_id: str) -> AgentStatus:
        """Restart the agent's process. One that is not running stays stopped until its next message."""
        self.registry.agent(agent_id)
        await self._runners[agent_id].restart()
        return self.status(agent_id)

    async def end_process(self, agent_id: str) -> None:
        """Kill the agent's process and its children. Remaining turns continue in a new process."""
        runner = self._runners.get(agent_id)
        if runner is not None:
            await runner.end_now()

    @contextlib.asynccontextmanager
    async def all_stopped(self) -> AsyncGenerator[None]:
        """While inside, no agent has a process. The next message starts one again."""
        async with contextlib.AsyncExitStack() as stack:
            for runner in list(self._runners.values()):
                await stack.enter_async_context(runner.stopped())
            yield

    def status(self, agent_id: str) -> AgentStatus:
        agent, runner, paused = self.registry.agent(agent_id), self._runners[agent_id], self._paused.get(agent_id)
        profile = runner.plan.profile
        stopped = self.halts.find(agent_id) is not None
        return AgentStatus(
            agent_id=agent_id,
            enabled=agent.enabled,
            available=agent.enabled and paused is None and not stopped,
            stopped=stopped,
            state=runner.state,
            paused=paused is not None,
            pause_reason=paused.reason if paused is not None else None,
            paused_at=paused.paused_at if paused is not None else None,
            port=runner.port,
            pid=runner.pid,
            turns=runner.turns,
            restart_count=runner.restarts.count,
            flapping=runner.restarts.flapping,
            last_activity_at=runner.last_activity,
            llm_provider=profile.provider,
            model=profile.model,
            costs=self.costs.status(agent_id),
            worst_case_model_calls=count_worst_case_calls(profile, self._settings),
        )

    def statuses(self) -> list[AgentStatus]:
        return [self.status(agent.agent_id) for agent in self.registry.config.agents]

    async def stop(self) -> None:
        await self._watching.stop()
        await asyncio.gather(self._launcher.spare.stop(), *(runner.close() for runner in self._runners.values()))

    async def _restore_windows(self, states: dict[str, AgentState]) -> None:
        agents = [agent.agent_id for agent in self.registry.config.agents]
        for account in (*agents, *map(background_account, agents)):
            forgotten = states[account].window_from if account in states else None
            calls = await self._database.read(
                lambda conn, who=account, until=forgotten: cost_control.list_last_hour(conn, who, now(), until)
            )
            self.costs.restore(account, calls)

    def _apply(self) -> None:
        agents = self.registry.config.agents
        for agent in agents:
            plan = RunnerPlan(agent.as_profile(self._settings), agent.port, agent.idle_timeout_minutes * 60)
            runner = self._runners.get(agent.agent_id)
            if runner is None:
                self._runners[agent.agent_id] = self._make_runner(plan)
            else:
                runner.replace_plan(plan)
        # Last, because it may fail: an agent without a folder is better than one without a runner.
        for agent in agents:
            seed_agent(self.registry.home, agent.agent_id)

    def _make_runner(self, plan: RunnerPlan) -> AgentRunner:
        agent_id = plan.profile.agent_id

        def report_flapping() -> None:
            self._notices.add(
                f"agent_flapping:{agent_id}", f"The agent {agent_id} keeps dying; see its log.", level="error"
            )

        def check_stopped() -> None:
            self.halts.check(agent_id)

        async def cancel_owed(client: ThinkerClient) -> None:
            await cancel_owed_turns(self.halts, agent_id, client)

        async def owe_cancel(message_id: str) -> None:
            self.halts.add_owed_cancel(agent_id, message_id)
            await asyncio.to_thread(self.halts.save)

        return AgentRunner(
            plan,
            self._launcher,
            AgentRestartBackoff(self._settings.agent_restart_base_seconds),
            RunnerHooks(check_stopped, on_started=cancel_owed, on_given_up=owe_cancel, on_flapping=report_flapping),
        )

    async def _reload(self) -> None:
        if self.registry.reload_if_changed():
            self._apply()
            ids = [agent.agent_id for agent in self.registry.config.agents]
            self._audit_event("config", {"event": "changed", "what": "agents", "agents": ids})
            self._notices.add("agents_reloaded", "agents.json has changed and is in force.")
        for agent_id, runner in list(self._runners.items()):
            agent = self.registry.find(agent_id)
            if agent is None or not agent.enabled:
                if runner.turns == 0:
                    await runner.stop()
            elif runner.outdated and runner.turns == 0:
                await runner.restart()

    def _audit_event(self, kind: AuditKind, facts: JsonObject) -> None:
        if self._audit is not None:
            self._audit.note(kind, facts)

    async def _stop_idle(self) -> None:
        for runner in self._runners.values():
            await runner.stop_if_idle()

    async def _repeat(self, seconds: float, check: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await check()
            except (AnnabelleError, OSError) as error:
                _log.warning("Looking after the agents failed: %s", error)
