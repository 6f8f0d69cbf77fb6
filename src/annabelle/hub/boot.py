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
from annabelle.core.redact import Redactor, environment_secrets
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.durable.durable import Durable
from annabelle.durable.lanes import Lanes
from annabelle.embeddings.books import LEDGER_TOKEN, LEDGER_URL
from annabelle.hub.agents.config_file import AgentsFile
from annabelle.hub.agents.launcher import Launcher, LaunchRules
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.app import make_app
from annabelle.hub.approvals.approvals import Approvals
from annabelle.hub.approvals.deciding import Deciding, DecidingParts
from annabelle.hub.approvals.desk import StoredDesk
from annabelle.hub.approvals.expiring import Expiring
from annabelle.hub.approvals.withdrawing import Withdrawing
from annabelle.hub.audit.changes import note_servers, note_users
from annabelle.hub.audit.logins import Logins
from annabelle.hub.audit.opening import close_audit, open_audit
from annabelle.hub.costs.announcer import Announcer
from annabelle.hub.events.fanout import Fanout
from annabelle.hub.events.log import EventLog
from annabelle.hub.finished import Finished
from annabelle.hub.flows.handle_message import HANDLE_MESSAGE, FlowServices, HandleMessage
from annabelle.hub.forgetting.browser import close_browser
from annabelle.hub.forgetting.engines import Engines
from annabelle.hub.forgetting.forgetting import Forgetting, ForgettingParts
from annabelle.hub.forgetting.memory import MemoryDoor
from annabelle.hub.forgetting.places import Places
from annabelle.hub.forgetting.snapshots import Snapshots
from annabelle.hub.gate import Gate, GateParts
from annabelle.hub.guarding import MessageGuard, guarding
from annabelle.hub.home_secrets import HomeSecrets
from annabelle.hub.journal import StoredJournal
from annabelle.hub.ledger import StoredLedger
from annabelle.hub.listening import address
from annabelle.hub.memory.service import Around, HubMemory
from annabelle.hub.notices import Notices, tell_of_servers
from annabelle.hub.quiet import Quiet
from annabelle.hub.rules.book import StoredRuleBook
from annabelle.hub.rules.rules import Rules
from annabelle.hub.run_file import announce, withdraw
from annabelle.hub.security.identities import Identities
from annabelle.hub.security.people import People
from annabelle.hub.security.token import owner_token
from annabelle.hub.security.users_file import Users
from annabelle.hub.seed import ServerPlaybooks, seed_home
from annabelle.hub.server import HttpServer
from annabelle.hub.services import Hub, Progress
from annabelle.hub.signals import StopSignal
from annabelle.hub.stopping.halts import Halts
from annabelle.hub.stopping.stopper import Stopper, StopperParts
from annabelle.hub.subagents.background import BackgroundCalls, BackgroundParts
from annabelle.hub.subagents.queueing import QueueJudge
from annabelle.hub.subagents.subagents import SubagentParts, Subagents
from annabelle.hub.subagents.tasks import TaskParts, Tasks
from annabelle.hub.tools.offering import offer_native_tools
from annabelle.hub.trust.address_book import AddressBook
from annabelle.hub.trust.judge import JudgeParts, TrustJudge
from annabelle.hub.trust.own_addresses import own_addresses
from annabelle.hub.turns import Turns
from annabelle.store.database import Database, sqlite_url
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.doors import Doors
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.processes.warm import WarmNursery

_log = logging.getLogger(__name__)
_CLAIMS_OWNER = "hub"


@dataclass(frozen=True, slots=True)
class Start:
    """What `__main__` has prepared before the heavy imports."""

    home: Home
    settings: Settings
    redact: Redactor
    socket: socket.socket
    nursery: WarmNursery | None


@dataclass(frozen=True, slots=True)
class Machine:
    """A hub and what keeps it running."""

    hub: Hub
    durable: Durable
    lanes: Lanes
    http: HttpServer


def run(start: Start) -> None:
    """Run the hub until SIGTERM or SIGINT."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_live(start))


async def _live(start: Start) -> None:
    with StopSignal() as stop:
        async with AsyncExitStack() as stack:
            machine = await assemble(start, stack)
            if await stop.unless(_bring_up(machine)):
                announce(start.home, machine.hub.address, machine.hub.progress.started_at)
                stack.callback(withdraw, start.home)
                await stop.wait()
            await _wind_down(machine.hub, stop)
    _log.info("The hub has stopped")


async def assemble(start: Start, stack: AsyncExitStack) -> Machine:
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

    notices, fanout, finished, progress = Notices(), Fanout(), Finished(), Progress()
    quiet = Quiet()
    audit = open_audit(home, settings, start.redact, notices)
    stack.push_async_callback(asyncio.to_thread, close_audit, audit)
    logins = Logins(audit)
    stack.callback(logins.tell_unsaid)
    identities.on_admitted = logins.admitted

    def know(users: Users) -> None:
        identities.know(users)
        note_users(users, audit)

    people = People(home.users_file, notices, know)
    identities.on_stranger = people.look
    identities.on_revoked = fanout.dismiss
    traces = TraceFile(home.traces_file, "hub", start.redact)
    events, turns = EventLog(database, fanout), Turns(database)
    durable = Durable(
        name="annabelle",
        executor_id=_CLAIMS_OWNER,
        database_url=url or sqlite_url(home.flows_file),
        schema="flows",
        synchronous=settings.sqlite_synchronous,
    )
    # A server gets these only if its manifest names them.
    booking = {LEDGER_URL: address(start.socket), LEDGER_TOKEN: identities.admit_servers()}
    start.redact.learn([booking[LEDGER_TOKEN]])
    shown = ToolboxConfig.from_settings(settings, home, environment | booking)
    watch = guarding(settings, environment, lambda agent_id: agents.config.agent(agent_id), notices)
    expiring = Expiring(database, events, lambda: memory.keeper.wake(), audit=audit)
    desk = StoredDesk(database, start.redact, settings.approval_hours, audit, expiring.asked)
    judge = TrustJudge(
        JudgeParts(
            database, StoredRuleBook(database), lambda tool: toolbox.reviewed(tool),
            own_addresses(home),
            AddressBook(lambda name, arguments, context: toolbox.call(name, arguments, context)),
        )
    )  # fmt: skip
    asking = QueueJudge(
        judge, lambda context: toolbox.tools(agents.policy_of(context)).tools,
        lambda name, arguments, context: toolbox.check(name, arguments, agents.policy_of(context)),
    )  # fmt: skip
    doors = Doors(asking, desk, audit, watch, start.redact)
    toolbox = Toolbox(shown, StoredJournal(database), start.nursery, doors)
    turns.on_cancel(toolbox.give_up)
    rules = LaunchRules(
        home=home,
        environment=environment,
        hub_url=address(start.socket),
        start_seconds=settings.agent_start_timeout_seconds,
        redact=start.redact,
        fork=settings.nursery_enabled,
        warm_spare=settings.thinker_warm_spare and settings.thinker_enabled,
    )
    halts = Halts(home.halts_file)
    launcher = Launcher(rules, identities, idle=lambda: turns.running == 0)
    agents = AgentManager(settings, AgentsFile(home, settings, notices), launcher, database, notices, audit, halts)
    memory = HubMemory(Around(settings, database, durable, toolbox, agents, traces, progress.wait_ready, quiet))
    services = FlowServices(
        database, durable, agents, events, turns, finished, traces, progress.wait_ready,
        tools_version=lambda agent_id: toolbox.tools(agents.policy(agent_id)).version,
        rest_seconds=memory.rest_seconds, on_delivered=memory.delivered, guard=MessageGuard(toolbox.guard, database),
    )  # fmt: skip
    subagents = Subagents(
        SubagentParts(
            home, settings, database, agents, launcher, turns,
            tools_version=lambda policy: toolbox.tools(policy).version, ready=progress.wait_ready,
        )
    )  # fmt: skip
    calls = BackgroundCalls(BackgroundParts(database, toolbox, agents, people, progress.wait_ready))
    task_parts = TaskParts(database, durable, events, agents, traces, closing=lambda: progress.phase == "stopping")
    tasks = Tasks(task_parts, subagents, calls.run)
    flow = HandleMessage(services)
    lanes = _lanes(settings, database, durable, progress, flow)
    standing = Rules(database, events, audit)
    questions = Withdrawing(database, events, audit)
    stopper = Stopper(StopperParts(agents, turns, toolbox, finished, questions, halts, notices, audit))
    agents.on_thinker = stopper.settle
    gate = Gate(settings, GateParts(agents, events, lanes, stopper, finished, traces, questions, standing, secrets))
    deciding = Deciding(
        DecidingParts(database, events, lanes, agents, toolbox, expiring, audit, start.redact, tasks.go_on)
    )
    forgetting = Forgetting(
        ForgettingParts(
            home, Places(home, settings.memory_export_path, settings.workspace_path), database,
            Engines(home, durable, url), Snapshots(url), MemoryDoor(toolbox), agents, lanes, turns, quiet, notices,
            close_browser=lambda: close_browser(home, toolbox), audit=audit,
        )
    )  # fmt: skip
    ledger = StoredLedger(settings, database, agents, Announcer(events, settings), notices)
    hub = Hub(
        home, settings, address(start.socket), progress, notices, identities, traces, database, toolbox, agents,
        fanout, events, turns, finished, ledger, gate, memory, people, forgetting, audit, logins, stopper, tasks,
        Approvals(database, deciding, expiring, questions), standing,
    )  # fmt: skip
    offer_native_tools(hub, calls)
    tell_of_servers(toolbox, notices)
    note_servers(toolbox, audit)
    server_playbooks = ServerPlaybooks(home, lambda: [server.name for server in toolbox.servers()])
    toolbox.on_change(lambda _: server_playbooks.look())
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
    return Machine(hub, durable, lanes, http)


def _lanes(settings: Settings, database: Database, durable: Durable, progress: Progress, flow: HandleMessage) -> Lanes:
    async def begin(message_id: str) -> None:
        if progress.phase == "stopping":
            raise Unavailable("Annabelle is shutting down; the message is taken up at the next start.")
        await durable.start(HANDLE_MESSAGE, message_id, {"message_id": message_id})

    lanes = Lanes(database, durable, _CLAIMS_OWNER, settings.max_concurrent_turns, begin)
    durable.workflow(HANDLE_MESSAGE)(flow.then(lanes.finished))
    return lanes


async def _bring_up(machine: Machine) -> None:
    """Start the parts: servers beside the engine, HTTP as soon as it can answer."""
    hub = machine.hub
    await hub.agents.start()
    await hub.ledger.start()
    hub.people.start()
    servers = asyncio.create_task(hub.toolbox.start())
    try:
        if hub.forgetting.begun:
            # Before anything can carry on what was to be forgotten.
            await servers
            await hub.forgetting.resume()
        await hub.tasks.tidy()
        await machine.durable.launch()
        await machine.http.start()
        await servers
    finally:
        servers.cancel()
    hub.progress.ready()
    status = hub.status()
    _log.info("The hub is ready at %s", hub.address)
    hub.stopper.start()
    hub.notices.startup(__version__, status.tool_count, len(status.servers))
    # What is there now stays: the collector need not walk over it with every turn.
    gc.freeze()
    gc.enable()
    await hub.approvals.expiring.start()
    await machine.lanes.resume()
    await hub.tasks.resume()
    await hub.memory.start()
    hub.agents.prepare_spare()


async def _wind_down(hub: Hub, stop: StopSignal) -> None:
    """Let no message in and let turns in flight end; what does not end in time goes on at the next start."""
    hub.progress.phase = "stopping"
    hub.gate.close()
    grace = hub.settings.annabelle_shutdown_grace_seconds
    if hub.turns.running:
        _log.info("Waiting up to %g s for %d turns", grace, hub.turns.running)
        await stop.hurried(hub.turns.all_over(grace))
    hub.finished.tell_all()
    hub.fanout.close()


def _environment(home: Home) -> dict[str, str]:
    """The hub's environment with what settings.env adds to it."""
    kept = dotenv_values(home.settings_file) if home.settings_file.exists() else {}
    return {name: value for name, value in kept.items() if value is not None} | dict(os.environ)
