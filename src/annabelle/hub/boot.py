"""Builds a hub, runs it until it is stopped, and shuts it down.

The heavy imports are here and below; `__main__` starts the fork server before it imports this module.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import uvloop

from annabelle import __version__
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.launcher import ThinkerLauncher
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.app import make_app
from annabelle.hub.approvals.approval_answer import ApprovalAnswerDeps, ApprovalService
from annabelle.hub.approvals.approval_store import ApprovalStore
from annabelle.hub.approvals.expiry import QuestionExpiry, QuestionWithdrawal
from annabelle.hub.base_setup import (
    CLAIMS_OWNER,
    HubStart,
    build_security,
    make_base,
    make_toolbox_config,
    open_storage,
)
from annabelle.hub.channels.accounts import ChannelAccounts
from annabelle.hub.channels.admin_notices import AdminNotices
from annabelle.hub.channels.channel_setup import open_channels
from annabelle.hub.channels.inbox import ChannelInboxDeps
from annabelle.hub.channels.service import HubChannels, make_removers
from annabelle.hub.commands.catalogue import COMMANDS
from annabelle.hub.commands.command import CommandDeps
from annabelle.hub.commands.registry import CommandRegistry
from annabelle.hub.component import Component
from annabelle.hub.context import HubContext, HubConversations
from annabelle.hub.conversations.event_log import EventFanout
from annabelle.hub.conversations.message_gate import HomeSecrets, MessageGate, MessageGateDeps
from annabelle.hub.conversations.message_workflow import HANDLE_MESSAGE, MessageWorkflow
from annabelle.hub.conversations.turn_canceller import TurnCanceller
from annabelle.hub.conversations.turns import ActiveTurns, MaintenanceGate, ReplyWaiters
from annabelle.hub.costs.ledger import CostAnnouncer, CostLedger
from annabelle.hub.diagnosis.diagnosis import Diagnosis
from annabelle.hub.forgetting.databases import DatabaseSnapshots, WorkflowDatabases
from annabelle.hub.forgetting.files import HomeFiles
from annabelle.hub.forgetting.forget_service import BrowserServer, ForgetService, ForgetTargets, RunningWork
from annabelle.hub.forgetting.memory_client import ForgetMemoryClient
from annabelle.hub.goals.goal_setup import make_goals
from annabelle.hub.goals.note_service import NoteService
from annabelle.hub.home_setup import ServerPlaybooks, seed_home
from annabelle.hub.instance import remove_run_file, write_run_file
from annabelle.hub.mcp.lazy_server import LazyMcpServer
from annabelle.hub.memory.service import HubMemory
from annabelle.hub.model_downloads import ModelDownloads
from annabelle.hub.model_servers import ModelServerWatch
from annabelle.hub.notices import forward_server_notices
from annabelle.hub.security.audit import audit_server_changes
from annabelle.hub.security.identities import owner_token
from annabelle.hub.security.request_guard import RateLimit
from annabelle.hub.security.tool_access import ToolAccess
from annabelle.hub.server import HttpServer, StopSignal
from annabelle.hub.services import HubServices, Upkeep
from annabelle.hub.skills.fire_runner import FireRunner, FireTaskDeps
from annabelle.hub.skills.skill_files import SkillFiles
from annabelle.hub.skills.skill_seeder import SkillSeeder
from annabelle.hub.skills.skill_service import SkillService
from annabelle.hub.status import StatusReader
from annabelle.hub.tasks.background_calls import BackgroundCalls, QueuedCallJudge
from annabelle.hub.tasks.subagents import Subagents
from annabelle.hub.tasks.task_runner import TaskRunner
from annabelle.hub.telemetry.span_content import StoredSpanContent
from annabelle.hub.telemetry.trace_exporter import make_exporters
from annabelle.hub.tools.registry import register_native_tools
from annabelle.hub.trust.call_records import StoredCallJournal
from annabelle.hub.trust.guard import MessageGuard, make_guarding
from annabelle.hub.trust.judge import AddressBook, TrustJudge, make_own_addresses_reader
from annabelle.hub.trust.order_questions import OrderQuestions
from annabelle.hub.trust.rules import StandingRules, StoredRules
from annabelle.skills.schedule import find_user_zone
from annabelle.skills.skill_folder import SkillFolder
from annabelle.skills.skill_input import SYSTEM
from annabelle.store.home_backup import back_up_nightly
from annabelle.toolbox.call_hooks import CallHooks
from annabelle.toolbox.facade import Toolbox, ToolServers

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningHub:
    hub: HubContext
    components: tuple[Component, ...]


def run(start: HubStart) -> bool:
    """Returns whether it is to start again."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run_until_stopped(start))


async def _run_until_stopped(start: HubStart) -> bool:
    with StopSignal() as stop:
        async with AsyncExitStack() as stack:
            machine = await assemble(start, stack)
            base = machine.hub.base
            if await stop.run_unless_stopped(_start_all(machine.components)):
                write_run_file(base.home, base.address, base.lifecycle.started_at)
                stack.callback(remove_run_file, base.home)
                await stop.wait()
            await _drain_turns(machine.hub, stop)
    _log.info("The hub has stopped")
    return base.lifecycle.starts_again


async def assemble(start: HubStart, stack: AsyncExitStack) -> RunningHub:
    """Build every component from earlier ones, and define the order in which they start and stop.

    A component gets its dependencies at construction and may subscribe to them; nothing changes it later. Only the
    database and the audit are opened here.
    """
    base = make_base(start)
    settings, home, notices = base.settings, base.home, base.notices
    token = owner_token(home, settings, notices)
    base.redact.learn([token])
    seed_home(home)
    secrets, fanout = HomeSecrets(home, base.redact, base.database_url), EventFanout()
    storage = await open_storage(base, fanout, stack)
    database, events = storage.database, storage.events
    turns, reply_waiters, maintenance = ActiveTurns(database), ReplyWaiters(), MaintenanceGate()

    def end_streams(token_hash: str) -> None:
        fanout.close_for_token(token_hash)
        reply_waiters.notify_all()  # the request guard ends those of the token, the others ask again

    security = build_security(base, end_streams, stack, token=token)
    audit = security.audit

    registry = AgentRegistry(AgentsFile(home, settings, notices))
    expiry = QuestionExpiry(database, events, audit=audit)
    withdrawal = QuestionWithdrawal(database, events, audit)
    approvals = ApprovalStore(database, base.redact, hours=settings.approval_hours, audit=audit, on_asked=expiry.wake)
    guarding = make_guarding(settings=settings, environment=base.environment, find_agent=registry.find, notices=notices)
    servers = ToolServers(
        make_toolbox_config(base, security.identities),
        StoredCallJournal(database),
        forkserver=start.forkserver,
        hooks=CallHooks(audit=audit, guard_config=guarding, redact=base.redact, traces=storage.traces),
    )
    halts = Halts(home.halts_file)
    launcher = ThinkerLauncher(base, security.identities, turns.is_idle)
    agents = AgentManager(
        settings=settings,
        registry=registry,
        halts=halts,
        launcher=launcher,
        database=database,
        notices=notices,
        audit=audit,
    )
    judge = TrustJudge(
        database=database,
        rules=StoredRules(database),
        reviewed=servers.catalogue.reviewed_traits,
        own_addresses=make_own_addresses_reader(home),
        address_book=AddressBook(servers.hub_calls.call),
        read_order=OrderQuestions(settings, ThinkerQuestions(agents)) if settings.llm_reader_model else None,
        traces=storage.traces,
    )
    toolbox = Toolbox(servers, QueuedCallJudge(judge, servers, registry), approvals)
    turns.on_cancel(toolbox.calls.cancel_for_message)

    ledger = CostLedger(
        settings=settings,
        database=database,
        agents=agents,
        announcer=CostAnnouncer(events, settings),
        notices=notices,
    )
    access = ToolAccess(registry=registry, users=security.users, turns=turns, toolbox=toolbox)
    calls = BackgroundCalls(database=database, toolbox=toolbox, agents=agents, access=access, lifecycle=base.lifecycle)
    subagents = Subagents(base=base, database=database, agents=agents, launcher=launcher, turns=turns, toolbox=toolbox)
    tasks = TaskRunner(
        storage=storage, agents=agents, lifecycle=base.lifecycle, subagents=subagents, call_tool=calls.run
    )
    skills = SkillService(
        database=database,
        clock=base.lifecycle.clock,
        time_zone=find_user_zone(settings.user_timezone),
        toolbox=toolbox,
        playbooks=home.playbooks,
        webhook_rate=RateLimit(settings.webhook_rate_per_minute),
        token_budget=settings.skill_token_budget,
    )
    workflow = MessageWorkflow(
        base=base,
        storage=storage,
        agents=agents,
        turns=turns,
        reply_waiters=reply_waiters,
        toolbox=toolbox,
        guard=MessageGuard(toolbox.guard, database),
    )
    thread_queue = ThreadQueue(
        db=database,
        durable=storage.durable,
        clock=base.lifecycle.clock,
        owner=CLAIMS_OWNER,
        max_running=settings.max_concurrent_turns,
        start=workflow.begin,
        background=settings.max_concurrent_skills,
    )
    diagnosis, downloads = Diagnosis(base=base, storage=storage, agents=agents, toolbox=toolbox), ModelDownloads()

    async def back_up(_fire_id: str, at: datetime) -> str:
        return await asyncio.to_thread(partial(back_up_nightly, home, settings), at)

    storage.durable.workflow(HANDLE_MESSAGE)(workflow.make_workflow(thread_queue.finish_message))
    rules = StandingRules(database, events, audit)
    stopper = Stopper(
        agents=agents,
        turns=turns,
        toolbox=toolbox,
        reply_waiters=reply_waiters,
        withdrawal=withdrawal,
        notices=notices,
        audit=audit,
    )
    notes = NoteService(
        base=base, storage=storage, access=access, agents=agents, ledger=ledger, maintenance=maintenance
    )
    goals, health = make_goals(
        storage=storage,
        skills=skills,
        notes=notes,
        thread_queue=thread_queue,
        canceller=TurnCanceller(events, stopper),
        rules=rules,
        agents=agents,
    )
    fires = FireRunner(
        base=base,
        storage=storage,
        service=skills,
        deps=FireTaskDeps(
            database=database,
            access=access,
            agents=agents,
            maintenance=maintenance,
            thread_queue=thread_queue,
            system_work={
                f"{SYSTEM}backup": back_up,
                f"{SYSTEM}health": diagnosis.report_changes,
                f"{SYSTEM}agents": health.report,
            },
        ),
    )
    approval_service = ApprovalService(
        ApprovalAnswerDeps(
            storage=storage, thread_queue=thread_queue, agents=agents, toolbox=toolbox, expiry=expiry, tasks=tasks
        ),
        base.redact,
        audit,
    )
    forgetting = ForgetService(
        ForgetTargets(
            home=home,
            files=HomeFiles(home, settings.memory_export_path, settings.workspace_path),
            database=database,
            engines=WorkflowDatabases(home, storage.durable, base.database_url),
            snapshots=DatabaseSnapshots(base.database_url),
            memory=ForgetMemoryClient(toolbox),
        ),
        RunningWork(
            thread_queue=thread_queue,
            turns=turns,
            maintenance=maintenance,
            agents=agents,
            browser=BrowserServer(home, toolbox),
        ),
        notices,
        audit=audit,
    )
    memory = HubMemory(
        base=base, storage=storage, toolbox=toolbox, agents=agents, maintenance=maintenance, forgetting=forgetting
    )
    services = HubServices(
        approvals=approval_service,
        rules=rules,
        skills=skills,
        goals=goals,
        tasks=tasks,
        memory=memory,
        upkeep=Upkeep(ledger, diagnosis, health=health, downloads=downloads),
    )
    accounts = ChannelAccounts(database, base.lifecycle.clock, audit, users=security.users)
    menu = [(one.info.name, one.info.summary) for one in COMMANDS]
    opened_channels = open_channels(base=base, accounts=accounts, servers=servers, menu=menu)
    commands = CommandRegistry(
        COMMANDS,
        CommandDeps(
            storage=storage,
            users=security.users,
            status=StatusReader(base=base, toolbox=toolbox, agents=agents, turns=turns, subagents=subagents),
            stopper=stopper,
            services=services,
            removers=make_removers(opened_channels, database),
        ),
    )
    gate = MessageGate(
        settings,
        MessageGateDeps(
            storage=storage,
            agents=agents,
            thread_queue=thread_queue,
            stopper=stopper,
            rules=rules,
            secrets=secrets,
            commands=commands,
        ),
    )
    channels = HubChannels(
        ChannelInboxDeps(
            base=base,
            storage=storage,
            accounts=accounts,
            gate=gate,
            halted=halts.is_halted,
            registry=registry,
        ),
        opened_channels,
    )
    halts.on_change(channels.wake)
    admin_notices = AdminNotices(base, storage)
    offered = SkillSeeder(
        service=skills, folder=home.skills, settings=settings, agent_id=registry.config.default.agent_id
    )
    skill_files = SkillFiles(folder=SkillFolder.open_home(home), toolbox=toolbox, notices=notices, offered=offered)
    hub = HubContext(
        base=base,
        storage=storage,
        security=security,
        conversations=HubConversations(
            gate=gate,
            thread_queue=thread_queue,
            turns=turns,
            reply_waiters=reply_waiters,
            fanout=fanout,
            stopper=stopper,
            channels=channels,
        ),
        agents=agents,
        toolbox=toolbox,
        services=services,
    )
    register_native_tools(hub, calls)
    toolbox.on_result(fires.on_result)
    forward_server_notices(toolbox, notices)
    audit_server_changes(toolbox, audit)
    toolbox.on_change(ServerPlaybooks(home, servers.names).seed_new_servers)
    mcp, model_servers = LazyMcpServer(hub), ModelServerWatch(base, agents.registry)
    exporters = make_exporters(
        settings, home.traces_file, redact=base.redact, content=StoredSpanContent(database, base.redact)
    )
    http = HttpServer(make_app(hub, mcp), start.socket)

    async def finish_forgetting() -> None:
        if forgetting.has_pending:
            # Before anything can copy the text that was to be forgotten.
            await servers.wait_started()
            await forgetting.resume()

    components = (
        *(Component(start=one.start, stop=one.stop) for one in exporters),
        Component(stop=events.close),
        # Answers once everything was started, and stops late: servers and thinkers use it until they are gone.
        Component(resume=http.start, stop=http.stop),
        Component(start=servers.begin, resume=servers.wait_started, stop=servers.stop),
        Component(resume=partial(_mark_ready, hub)),
        Component(stop=launcher.stop),
        Component(start=security.users.start, stop=security.users.stop),
        Component(resume=expiry.start, stop=expiry.stop),
        Component(resume=thread_queue.recover),
        # Stopped after the agents, so that no agent sees a task it waits for fail.
        Component(start=tasks.tidy, resume=tasks.resume, stop=tasks.stop),
        Component(start=agents.start, resume=agents.prepare_spare, stop=agents.stop),
        Component(start=ledger.start, stop=ledger.stop),
        Component(stop=stopper.close),
        Component(start=finish_forgetting),
        Component(start=storage.durable.launch, stop=storage.durable.close),
        Component(resume=memory.start, stop=memory.stop),
        Component(start=skill_files.start, stop=skill_files.stop),
        Component(resume=offered.start),
        Component(resume=notes.start, stop=notes.stop),
        Component(resume=channels.start, stop=channels.stop),
        Component(resume=admin_notices.start, stop=admin_notices.stop),
        Component(resume=diagnosis.start, stop=diagnosis.stop),
        Component(resume=model_servers.start, stop=model_servers.stop),
        Component(stop=downloads.stop),
        # Stopped first: its streams would hold the HTTP server up.
        Component(stop=mcp.stop),
        Component(resume=fires.start, stop=fires.stop),
    )
    for component in components:
        stack.push_async_callback(component.stop)
    return RunningHub(hub, components)


async def _start_all(components: Sequence[Component]) -> None:
    for component in components:
        await component.start()
    for component in components:
        await component.resume()


async def _mark_ready(hub: HubContext) -> None:
    base = hub.base
    base.lifecycle.mark_ready()
    status = hub.status()
    _log.info("The hub is ready at %s", base.address)
    hub.conversations.stopper.update_notice()
    base.notices.startup(__version__, status.tool_count, len(status.servers))
    # These objects stay, so the collector can skip them.
    gc.freeze()
    gc.enable()


async def _drain_turns(hub: HubContext, stop: StopSignal) -> None:
    """Refuse new messages and wait for running turns. Unfinished ones continue at the next start."""
    hub.base.lifecycle.mark_stopping()
    conversations = hub.conversations
    conversations.gate.close()
    grace = hub.base.settings.annabelle_shutdown_grace_seconds
    if conversations.turns.running:
        _log.info("Waiting up to %g s for %d turns", grace, conversations.turns.running)
        await stop.run_unless_hurried(conversations.turns.wait_all_over(grace))
    conversations.reply_waiters.notify_all()
    conversations.fanout.close()
