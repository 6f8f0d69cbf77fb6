"""The servers of this install with their tools, and the toolbox as the hub uses it: list, call, cancel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from annabelle.core.contract import ToolList
from annabelle.core.ports import ApprovalPort, Judge
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.policy.tool_traits import ToolTraits
from annabelle.toolbox.call_hooks import CallHooks, CallJournal, GuardConfig, GuardRules
from annabelle.toolbox.catalogue import NATIVE, AgentPolicy, Caller, NativeTool, ToolCatalogue, ToolOffer
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.external.entries import ExternalServer
from annabelle.toolbox.external.pins import PinChecker, PinsFile
from annabelle.toolbox.external.servers import (
    ExternalServers,
    FileWatcher,
    HoldNotifier,
    KnownServers,
    ServerActions,
    ServerAdmission,
)
from annabelle.toolbox.guard import ContentGuard, GuardianClient
from annabelle.toolbox.manifest import ServerProfile, find_builtins, find_disabled
from annabelle.toolbox.process.fork_launcher import choose_launcher
from annabelle.toolbox.process.forkserver_process import ForkServerProcess
from annabelle.toolbox.router import HubCalls, ToolRouter
from annabelle.toolbox.status import ChangeListener, NoticeListener, ServerStatus, ToolboxNotice
from annabelle.toolbox.supervisor.supervisor import ServerStateAudit, Supervisor

_log = logging.getLogger(__name__)


class ToolServers:
    """Every server, their catalogue, and the hub's own calls to them. The judge of agents' calls stands on this."""

    def __init__(
        self,
        config: ToolboxConfig,
        journal: CallJournal,
        forkserver: ForkServerProcess | None = None,
        hooks: CallHooks | None = None,
    ) -> None:
        """`forkserver` is one the hub started early, before its own imports (process/forkserver_process.py)."""
        self._config = config
        self._notice_listeners: list[NoticeListener] = []
        self._pending_notices: list[ToolboxNotice] = []
        self._natives: dict[str, NativeTool] = {}
        self.catalogue = ToolCatalogue()
        self.catalogue.on_hidden(self._on_hidden_tool)
        self.hooks = hooks = hooks or CallHooks()
        launcher = choose_launcher(
            config.use_forkserver, config.preload, config.python_path, config.home.logs / "nursery.log", forkserver
        )
        pins, on_hold = PinsFile(config.home.pins_file), HoldNotifier(self._notify, hooks.audit)
        pinning = PinChecker(pins, need_yes=config.external_need_approval, on_hold=on_hold, redact=hooks.redact)
        self.supervisor = Supervisor(
            config, launcher, self.catalogue, pinning, self._notify, hooks.redact, ServerStateAudit(hooks.audit)
        )
        guarding = self._guard_config = hooks.guard_config or GuardConfig(lambda _agent_id: GuardRules(enabled=False))
        self._guardian = GuardianClient(self.supervisor.guardian, guarding.seconds)
        self.guard = ContentGuard(self._guardian, guarding.rules, hooks.audit, hooks.traces)
        self.router = ToolRouter(self.catalogue, journal, hooks, self.guard)
        self.hub_calls = HubCalls(self.router)
        self._apply = ServerActions(add=self._add_external, remove=self.supervisor.remove)
        self._external = ExternalServers(
            config.external_file, config.environment, config.limits.call_seconds, self._notify
        )
        self.admission = ServerAdmission(pinning, self._external, self._apply, hooks.audit)
        self._known = KnownServers(config.home.known_servers_file)
        self._watcher = FileWatcher(config.external_file, config.limits.reload_quiet_ms, self._reload)
        self._builtin_names: frozenset[str] = frozenset()
        self._starting: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start in the background, while the hub starts other parts."""
        self._starting = asyncio.create_task(self.start())

    async def wait_started(self) -> None:
        if self._starting is not None:
            await self._starting

    async def start(self) -> None:
        """Start every server, the guardian first, and return when each has listed its tools or failed to."""
        config = self._config
        builtins = find_builtins(config.manifest_folders, config.environment, config.limits.call_seconds)
        if not self._guard_config.enabled:
            builtins = [server for server in builtins if server.profile.role != "guardian"]
        self.catalogue.set_switched_off(find_disabled(config.manifest_folders, config.environment))
        self._builtin_names = frozenset(server.profile.name for server in builtins) | {NATIVE}
        externals = self._external.load(self._builtin_names)
        await self.supervisor.start(builtins, externals.values())
        names = self.names()
        diff = self._known.compare(names)
        if diff:
            self._notify(ToolboxNotice("startup_diff", diff.sentence()))
        self._remember_tools()
        self._watcher.start()

    async def stop(self) -> None:
        """Stop every server and leave no process behind. May be called twice, and after a failed start."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting], timeout=self._config.limits.stop_grace_seconds)
        await self._watcher.stop()
        await self.router.recorder.drain(self._config.limits.stop_grace_seconds)
        await self._guardian.close()
        await self.supervisor.stop()

    def names(self) -> list[str]:
        return [status.name for status in self.supervisor.statuses()]

    def find_channel(self) -> ServerProfile | None:
        """The server that people can also be talked to through (`role = "channel"`), if it is not switched off."""
        config = self._config
        found = find_builtins(config.manifest_folders, config.environment, config.limits.call_seconds)
        return next((server.profile for server in found if server.profile.channel is not None), None)

    def add_native(self, tools: Iterable[NativeTool]) -> None:
        """Offer tools that the hub serves itself."""
        self._natives |= {tool.name: tool for tool in tools}
        default = self._config.limits.call_seconds
        offers = [
            ToolOffer(tool.spec(), tool, tool.timeout_seconds or default, scan=tool.scan)
            for tool in self._natives.values()
        ]
        self.catalogue.offer(NATIVE, offers)

    def on_notice(self, listener: NoticeListener) -> None:
        """Be told what a person should know; what happened before the first listener came is told to it at once."""
        self._notice_listeners.append(listener)
        unheard, self._pending_notices = self._pending_notices, []
        for notice in unheard:
            listener(notice)

    async def _reload(self) -> None:
        await self._external.reload(self._builtin_names, self._apply)
        self._remember_tools()

    async def _add_external(self, server: ExternalServer) -> None:
        await self.supervisor.add_external(server)
        self._remember_tools()

    def _remember_tools(self) -> None:
        self._known.remember(
            {status.name: status.tools if status.available else None for status in self.supervisor.statuses()}
        )

    def _on_hidden_tool(self, spec: ToolSpec) -> None:
        text = f"The tool {spec.original_name} of {spec.server} is hidden: another tool is called {spec.name} already."
        self._notify(ToolboxNotice("tool_hidden", text, spec.server))

    def _notify(self, notice: ToolboxNotice) -> None:
        _log.info("%s: %s", notice.kind, notice.text)
        if not self._notice_listeners:
            self._pending_notices.append(notice)
        for listener in self._notice_listeners:
            listener(notice)


ResultListener = Callable[[str, JsonObject, CallContext], None]


class Toolbox:
    """Every tool of this install. There is no other way to call one.

    `call` raises UnknownTool, NotAllowed, InvalidArguments, ServerDown, ToolTimeout, OutcomeUnknown, Conflict or
    TurnCancelled; a tool that ran and failed comes back as a result with `is_error`.
    """

    def __init__(self, servers: ToolServers, judge: Judge | None = None, approvals: ApprovalPort | None = None) -> None:
        self._servers, self._catalogue = servers, servers.catalogue
        self._router = servers.router.with_hooks(replace(servers.hooks, judge=judge, approvals=approvals))
        self.guard, self.admission, self.calls = servers.guard, servers.admission, servers.router.recorder
        self._result_listeners: list[ResultListener] = []

    async def start(self) -> None:
        await self._servers.start()

    async def stop(self) -> None:
        await self._servers.stop()

    def tools(self, policy: AgentPolicy | None = None, caller: Caller | None = None) -> ToolList:
        """The tools a caller may use. A policy is an agent's; without one it is a person who asks, unless said."""
        return self._catalogue.list_tools(policy, caller or ("api" if policy is None else "agent"))

    def wants_provenance(self, name: str) -> bool:
        """Whether a call of this tool has to say where its content may come from (`CallContext.provenance`)."""
        return self._catalogue.wants_provenance(name)

    def reviewed_traits(self, spec: ToolSpec) -> ToolTraits | None:
        """What people wrote down about a tool that came with us; None for those of servers the user added."""
        return self._catalogue.reviewed_traits(spec)

    async def call(
        self, name: str, arguments: JsonObject, context: CallContext, policy: AgentPolicy | None = None
    ) -> ToolResult:
        """Call one tool. An agent must come with its policy; only people and the hub itself may come without one."""
        result = await self._router.call(name, arguments, context, policy)
        if not result.is_error and not result.replayed:
            for listener in self._result_listeners:
                listener(name, arguments, context)
        return result

    def on_result(self, listener: ResultListener) -> None:
        """Be told of every call that succeeded. The listener must not block or raise."""
        self._result_listeners.append(listener)

    def check(self, name: str, arguments: JsonObject, policy: AgentPolicy | None = None) -> None:
        """Raise UnknownTool, NotAllowed or InvalidArguments as a call would, without making it."""
        self._router.check(name, arguments, policy)

    async def kill_hung(self, servers: Collection[str], seconds: float) -> list[str]:
        """Kill those of these servers that do not answer within so long; they are started again. Which those were."""
        return await self._servers.supervisor.kill_hung(servers, seconds)

    def servers(self) -> list[ServerStatus]:
        """How each server is doing, by name."""
        return self._servers.supervisor.statuses()

    async def find_missing(self, servers: Collection[str]) -> list[str]:
        """What these servers lack now, each in a sentence with the command that provides it."""
        return await self._servers.supervisor.find_missing(servers)

    async def restart(self, name: str) -> ServerStatus:
        """Start a server again now, also one that was given up; NotFound for an unknown name."""
        return await self._servers.supervisor.restart(name)

    def add_native(self, tools: Iterable[NativeTool]) -> None:
        """Offer tools that the hub serves itself."""
        self._servers.add_native(tools)

    def on_change(self, listener: ChangeListener) -> None:
        """Be told the new version whenever the list of tools changes."""
        self._catalogue.on_change(listener)

    def on_notice(self, listener: NoticeListener) -> None:
        """Be told what a person should know; what happened before the first listener came is told to it at once."""
        self._servers.on_notice(listener)
