"""Puts a hub together, runs it until it is told to stop, and takes it apart again.

Everything heavy is imported here and below; `__main__` has started the nursery before it imports this.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass

import uvloop
from dotenv import dotenv_values

from annabelle import __version__
from annabelle.core.errors import Unavailable
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor, environment_secrets
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.durable.engine import Durable
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.embeddings.metering import LEDGER_TOKEN, LEDGER_URL
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.launcher import ThinkerLaunchConfig, ThinkerLauncher
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.stopper import Stopper, StopperDeps
from annabelle.hub.app import make_app
from annabelle.hub.approvals.approval_answer import ApprovalAnswerDeps, ApprovalDecider, ApprovalService
from annabelle.hub.approvals.approval_store import ApprovalStore
from annabelle.hub.approvals.expiry import QuestionExpiry, QuestionWithdrawal
from annabelle.hub.context import HubContext, HubLifecycle
from annabelle.hub.conversations.event_log import EventFanout, EventLog
from annabelle.hub.conversations.message_gate import HomeSecrets, MessageGate, MessageGateDeps
from annabelle.hub.conversations.message_workflow import HANDLE_MESSAGE, MessageWorkflow, MessageWorkflowDeps
from annabelle.hub.conversations.turns import ActiveTurns, MaintenanceGate, ReplyWaiters
from annabelle.hub.costs.ledger import CostAnnouncer, CostLedger
from annabelle.hub.forgetting.databases import DatabaseSnapshots, WorkflowDatabases
from annabelle.hub.forgetting.files import HomeFiles
from annabelle.hub.forgetting.forget_service import ForgetDeps, ForgetService, close_browser
from annabelle.hub.forgetting.memory_client import ForgetMemoryClient
from annabelle.hub.home_setup import ServerPlaybooks, seed_home
from annabelle.hub.instance import hub_address, remove_run_file, write_run_file
from annabelle.hub.memory.service import HubMemory, MemoryDeps
from annabelle.hub.notices import Notices, forward_server_notices
from annabelle.hub.security.audit import LoginAudit, audit_server_changes, audit_user_changes, close_audit, open_audit
from annabelle.hub.security.identities import HomeUsers, Identities, owner_token
from annabelle.hub.security.users_file import UserList
from annabelle.hub.server import HttpServer, StopSignal
from annabelle.hub.tasks.background_calls import BackgroundCallDeps, BackgroundCalls, QueuedCallJudge
from annabelle.hub.tasks.subagents import SubagentDeps, Subagents
from annabelle.hub.tasks.task_runner import TaskDeps, TaskRunner
from annabelle.hub.tools.registry import register_native_tools
from annabelle.hub.trust.call_records import StoredCallJournal
from annabelle.hub.trust.guard import MessageGuard, make_guarding
from annabelle.hub.trust.judge import AddressBook, JudgeDeps, TrustJudge, make_own_addresses_reader
from annabelle.hub.trust.rules import StandingRules, StoredRules
from annabelle.store.database import Database, sqlite_url
from annabelle.toolbox.call_hooks import CallHooks
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.process.forkserver_process import ForkServerProcess

_log = logging.getLogger(__name__)
_CLAIMS_OWNER = "hub"


@dataclass(frozen=True, slots=True)
class HubStart:
    """What `__main__` has prepared before the heavy imports."""

    home: Home
    settings: Settings
    redact: Redactor
    socket: socket.socket
    nursery: ForkServerProcess | None


@dataclass(frozen=True, slots=True)
class RunningHub:
    """A hub and what keeps it running."""

    hub: HubContext
    durable: Durable
    thread_queue: ThreadQueue
    http: HttpServer


def run(start: HubStart) -> None:
    """Run the hub until SIGTERM or SIGINT."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run_until_stopped(start))


async def _run_until_stopped(start: HubStart) -> None:
    with StopSignal() as stop:
        async with AsyncExitStack() as stack:
            machine = await assemble(start, stack)
            if await stop.run_unless_stopped(_start_all(machine)):
                write_run_file(start.home, machine.hub.address, machine.hub.lifecycle.started_at)
                stack.callback(remove_run_file, start.home)
                await stop.wait()
            await _drain_turns(machine.hub, stop)
    _log.info("The hub has stopped")


async def assemble(start: HubStart, stack: AsyncExitStack) -> RunningHub:
    """Make every part and decide the order in which they stop. Only the database is opened here."""
    home, settings = start.home, start.settings
    environment = _environment(home)
    start.redact.learn(environment_secrets(environment))
    token = owner_token(home, settings)
    start.redact.learn([token])
    identities = Identities(token)
    seed_home(home)
    url = settings.database_url.get_secret_value() if settings.database_url is not None else None
    secrets = HomeSecrets(home, start.redact, url)
    database = await Database.open(
        url or sqlite_url(home.database_file), synchronous=settings.sqlite_synchronous, backups=home.backups
    )
    stack.push_async_callback(database.close)

    notices, fanout, finished, progress = Notices(), EventFanout(), ReplyWaiters(), HubLifecycle()
    quiet = MaintenanceGate()
    audit = open_audit(home, settings, start.redact, notices)
    stack.push_async_callback(asyncio.to_thread, close_audit, audit)
    logins = LoginAudit(audit)
    stack.callback(logins.flush_refused)
    identities.on_admitted = logins.admitted

    def accept_users(users: UserList) -> None:
        identities.set_users(users)
        audit_user_changes(users, audit)

    people = HomeUsers(home.users_file, notices, accept_users)
    identities.on_unknown_token = people.reload_if_changed
    identities.on_revoked = fanout.close_for_user
    traces = TraceFile(home.traces_file, "hub", start.redact)
    events, turns = EventLog(database, fanout), ActiveTurns(database)
    durable = Durable(
        name="annabelle",
        executor_id=_CLAIMS_OWNER,
        database_url=url or sqlite_url(home.flows_file),
        schema="flows",
        synchronous=settings.sqlite_synchronous,
    )
    # A server gets these only if its manifest names them.
    booking = {LEDGER_URL: hub_address(start.socket), LEDGER_TOKEN: identities.admit_servers()}
    start.redact.learn([booking[LEDGER_TOKEN]])
    shown = ToolboxConfig.from_settings(settings, home, environment | booking)
    watch = make_guarding(settings, environment, lambda agent_id: agents.config.agent(agent_id), notices)
    expiring = QuestionExpiry(database, events, lambda: memory.outbox.wake(), audit=audit)
    desk = ApprovalStore(database, start.redact, settings.approval_hours, audit, expiring.wake)
    judge = TrustJudge(
        JudgeDeps(
            database, StoredRules(database), lambda tool: toolbox.reviewed_traits(tool),
            make_own_addresses_reader(home),
            AddressBook(lambda name, arguments, context: toolbox.call(name, arguments, context)),
        )
    )  # fmt: skip
    asking = QueuedCallJudge(
        judge, lambda context: toolbox.tools(agents.policy_of(context)).tools,
        lambda name, arguments, context: toolbox.check(name, arguments, agents.policy_of(context)),
    )  # fmt: skip
    doors = CallHooks(asking, desk, audit, watch, start.redact)
    toolbox = Toolbox(shown, StoredCallJournal(database), start.nursery, doors)
    turns.on_cancel(toolbox.cancel_message_calls)
    rules = ThinkerLaunchConfig(
        home=home,
        environment=environment,
        hub_url=hub_address(start.socket),
        start_seconds=settings.agent_start_timeout_seconds,
        redact=start.redact,
        fork=settings.nursery_enabled,
        warm_spare=settings.thinker_warm_spare and settings.thinker_enabled,
    )
    halts = Halts(home.halts_file)
    launcher = ThinkerLauncher(rules, identities, idle=lambda: turns.running == 0)
    agents = AgentManager(settings, AgentsFile(home, settings, notices), launcher, database, notices, audit, halts)
    memory = HubMemory(MemoryDeps(settings, database, durable, toolbox, agents, traces, progress.wait_ready, quiet))
    services = MessageWorkflowDeps(
        database, durable, agents, events, turns, finished, traces, progress.wait_ready,
        tools_version=lambda agent_id: toolbox.tools(agents.policy(agent_id)).version,
        rest_seconds=memory.rest_seconds, on_delivered=memory.on_delivered, guard=MessageGuard(toolbox.guard, database),
    )  # fmt: skip
    subagents = Subagents(
        SubagentDeps(
            home, settings, database, agents, launcher, turns,
            tools_version=lambda policy: toolbox.tools(policy).version, ready=progress.wait_ready,
        )
    )  # fmt: skip
    calls = BackgroundCalls(BackgroundCallDeps(database, toolbox, agents, people, progress.wait_ready))
    task_parts = TaskDeps(database, durable, events, agents, traces, closing=lambda: progress.phase == "stopping")
    tasks = TaskRunner(task_parts, subagents, calls.run)
    flow = MessageWorkflow(services)
    lanes = _make_thread_queue(settings, database, durable, progress, flow)
    standing = StandingRules(database, events, audit)
    questions = QuestionWithdrawal(database, events, audit)
    stopper = Stopper(StopperDeps(agents, turns, toolbox, finished, questions, halts, notices, audit))
    agents.on_thinker = stopper.cancel_owed_turns
    gate = MessageGate(
        settings, MessageGateDeps(agents, events, lanes, stopper, finished, traces, questions, standing, secrets)
    )
    deciding = ApprovalDecider(
        ApprovalAnswerDeps(database, events, lanes, agents, toolbox, expiring, audit, start.redact, tasks.continue_task)
    )
    forgetting = ForgetService(
        ForgetDeps(
            home, HomeFiles(home, settings.memory_export_path, settings.workspace_path), database,
            WorkflowDatabases(home, durable, url), DatabaseSnapshots(url), ForgetMemoryClient(toolbox), agents,
            lanes, turns, quiet, notices,
            close_browser=lambda: close_browser(home, toolbox), audit=audit,
        )
    )  # fmt: skip
    ledger = CostLedger(settings, database, agents, CostAnnouncer(events, settings), notices)
    hub = HubContext(
        home, settings, hub_address(start.socket), progress, notices, identities, traces, database, toolbox, agents,
        fanout, events, turns, finished, ledger, gate, memory, people, forgetting, audit, logins, stopper, tasks,
        ApprovalService(database, deciding, expiring, questions), standing,
    )  # fmt: skip
    register_native_tools(hub, calls)
    forward_server_notices(toolbox, notices)
    audit_server_changes(toolbox, audit)
    server_playbooks = ServerPlaybooks(home, lambda: [server.name for server in toolbox.servers()])
    toolbox.on_change(lambda _: server_playbooks.seed_new_servers())
    http = HttpServer(make_app(hub), start.socket)
    # Stopped from the last to the first: flows, agents and what they are forked from, servers, and only then the HTTP
    # that they talk over.
    for closing in (
        events.close,
        http.stop,
        toolbox.stop,
        launcher.stop,
        tasks.stop,
        agents.close,
        stopper.close,
        durable.close,
        memory.stop,
        people.stop,
        ledger.stop,
        expiring.stop,
    ):
        stack.push_async_callback(closing)
    return RunningHub(hub, durable, lanes, http)


def _make_thread_queue(
    settings: Settings, database: Database, durable: Durable, progress: HubLifecycle, flow: MessageWorkflow
) -> ThreadQueue:
    async def begin_message(message_id: str) -> None:
        if progress.phase == "stopping":
            raise Unavailable("Annabelle is shutting down; the message is taken up at the next start.")
        await durable.start(HANDLE_MESSAGE, message_id, {"message_id": message_id})

    lanes = ThreadQueue(database, durable, _CLAIMS_OWNER, settings.max_concurrent_turns, begin_message)
    durable.workflow(HANDLE_MESSAGE)(flow.make_workflow(lanes.finish_message))
    return lanes


async def _start_all(machine: RunningHub) -> None:
    """Start the parts: servers beside the engine, HTTP as soon as it can answer."""
    hub = machine.hub
    await hub.agents.start()
    await hub.ledger.start()
    hub.people.start()
    servers = asyncio.create_task(hub.toolbox.start())
    try:
        if hub.forgetting.has_pending:
            # Before anything can carry on what was to be forgotten.
            await servers
            await hub.forgetting.resume()
        await hub.tasks.tidy()
        await machine.durable.launch()
        await machine.http.start()
        await servers
    finally:
        servers.cancel()
    hub.lifecycle.mark_ready()
    status = hub.status()
    _log.info("The hub is ready at %s", hub.address)
    hub.stopper.start()
    hub.notices.startup(__version__, status.tool_count, len(status.servers))
    # What is there now stays: the collector need not walk over it with every turn.
    gc.freeze()
    gc.enable()
    await hub.approvals.expiry.start()
    await machine.thread_queue.recover()
    await hub.tasks.resume()
    await hub.memory.start()
    hub.agents.prepare_spare()


async def _drain_turns(hub: HubContext, stop: StopSignal) -> None:
    """Let no message in and let turns in flight end; what does not end in time goes on at the next start."""
    hub.lifecycle.phase = "stopping"
    hub.gate.close()
    grace = hub.settings.annabelle_shutdown_grace_seconds
    if hub.turns.running:
        _log.info("Waiting up to %g s for %d turns", grace, hub.turns.running)
        await stop.run_unless_hurried(hub.turns.wait_all_over(grace))
    hub.reply_waiters.notify_all()
    hub.fanout.close()


def _environment(home: Home) -> dict[str, str]:
    """The hub's environment with what settings.env adds to it."""
    kept = dotenv_values(home.settings_file) if home.settings_file.exists() else {}
    return {name: value for name, value in kept.items() if value is not None} | dict(os.environ)
