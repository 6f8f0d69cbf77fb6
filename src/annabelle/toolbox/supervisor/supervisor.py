"""All servers of this install: how each is started, and its state."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from annabelle.core.errors import Conflict, NotFound, ServerDown
from annabelle.core.ports import AuditTrail
from annabelle.core.secrets.redactor import Redactor, environment_secrets
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.toolbox.catalogue import ToolCatalogue, ToolOffer
from annabelle.toolbox.config import ToolboxConfig, builtin_environment, external_environment
from annabelle.toolbox.external.entries import ExternalServer, entry_values, find_entry_secrets
from annabelle.toolbox.external.fingerprint import ServerFingerprint
from annabelle.toolbox.external.pins import PinChecker, ServerHold
from annabelle.toolbox.manifest import BuiltinServer
from annabelle.toolbox.mcp.connection import Connect, Connection
from annabelle.toolbox.mcp.http import http_connect
from annabelle.toolbox.mcp.stdio import StdioOptions, stdio_connect
from annabelle.toolbox.process.child_config import ChildConfig
from annabelle.toolbox.process.launcher import LaunchRequest, ProcessLauncher
from annabelle.toolbox.status import ServerState, ServerStatus, ToolboxNotice
from annabelle.toolbox.supervisor.server import Inspect, ManagedServer, ServerListeners, make_status

_PROBE_SHARE = 3


class Supervisor:
    """Starts and stops servers and keeps the catalogue up to date."""

    def __init__(
        self,
        config: ToolboxConfig,
        launcher: ProcessLauncher,
        catalogue: ToolCatalogue,
        pinning: PinChecker,
        notify: Callable[[ToolboxNotice], None],
        redact: Redactor,
        on_state: Callable[[str, ServerState], None] = lambda _name, _state: None,
    ) -> None:
        self._config, self._launcher, self._catalogue = config, launcher, catalogue
        self._pinning, self._notify, self._redact = pinning, notify, redact
        redact.learn(environment_secrets(config.environment))
        self._servers: dict[str, ManagedServer] = {}
        self._idle: dict[str, ServerStatus] = {}
        """Servers that do not run because they are disabled or not accepted."""
        self._listeners = ServerListeners(
            on_tools=self._offer, on_given_up=self._give_up, on_held=self._hold_back, on_state=on_state
        )

    async def start(self, builtins: Iterable[BuiltinServer], externals: Iterable[ExternalServer]) -> None:
        """Start the guardian first, because it scans what the others say, then all others at once."""
        guardians = [server for server in builtins if server.profile.role == "guardian"]
        others = [server for server in builtins if server.profile.role != "guardian"]
        await asyncio.gather(*(self.add_builtin(server) for server in guardians))
        await asyncio.gather(
            *(self.add_builtin(server) for server in others), *(self.add_external(server) for server in externals)
        )

    async def stop(self) -> None:
        servers, self._servers = list(self._servers.values()), {}
        await asyncio.gather(*(server.stop() for server in servers))
        await self._launcher.stop()

    async def add_builtin(self, server: BuiltinServer) -> None:
        config, name = self._config, server.profile.name
        environment = builtin_environment(server.variables, config.environment, config.home, config.log_level)
        child = ChildConfig(environment, folder=str(config.home.root))
        request = LaunchRequest(name, child, config.home.logs / f"{name}.log", module=server.module)
        connect = self._connect_stdio(request)
        await self._add(ManagedServer(server.profile, connect, config.limits, self._listeners, self._result_limit))

    async def add_external(self, server: ExternalServer) -> None:
        config, name = self._config, server.profile.name
        if server.problem is not None:
            self._idle[name] = make_status(server.profile, "disabled", last_error=server.problem)
            return
        # Secrets written into the entry itself are in no variable of the hub.
        self._redact.learn(find_entry_secrets(server))
        self._redact.learn(entry_values(server), spoken=False)
        hold = self._pinning.may_start(server)
        if hold is not None:
            self._idle[name] = make_status(server.profile, hold.state, last_error=hold.sentence)
            self._catalogue.hold(name)
            return
        if server.url is not None:
            connect = http_connect(server.url, dict(server.headers), self._redact)
        else:
            environment = external_environment(dict(server.env), config.environment)
            child = ChildConfig(environment, server.argv, str(config.home.root))
            request = LaunchRequest(name, child, config.home.logs / f"{name}.log")
            connect = _require_command(server.argv[0], environment.get("PATH"), self._connect_stdio(request))
        inspect = self._build_inspection(server)
        await self._add(
            ManagedServer(server.profile, connect, config.limits, self._listeners, self._result_limit, inspect)
        )

    async def remove(self, name: str) -> None:
        self._idle.pop(name, None)
        self._catalogue.withdraw(name)
        server = self._servers.pop(name, None)
        if server is not None:
            await server.stop()

    async def restart(self, name: str) -> ServerStatus:
        server = self._servers.get(name)
        if server is None and name in self._idle:
            raise Conflict(f"{name} can not be started: {self._idle[name].last_error}")
        if server is None:
            raise NotFound(f"There is no running server called {name}.")
        await server.restart()
        return server.status()

    def guardian(self) -> ManagedServer | None:
        """The guardian server, in whatever state; None if there is none."""
        return next((server for server in self._servers.values() if server.profile.role == "guardian"), None)

    async def kill_hung(self, names: Collection[str], seconds: float) -> list[str]:
        servers = [server for name, server in self._servers.items() if name in names]
        ended = await asyncio.gather(*(server.kill_if_hung(seconds) for server in servers))
        return [server.profile.name for server, hung in zip(servers, ended, strict=True) if hung]

    async def find_missing(self, names: Collection[str]) -> list[str]:
        servers = [server for name, server in self._servers.items() if name in names]
        return [one for one in await asyncio.gather(*(server.find_missing() for server in servers)) if one]

    def statuses(self) -> list[ServerStatus]:
        running = [server.status() for server in self._servers.values()]
        return sorted((*running, *self._idle.values()), key=lambda status: status.name)

    @property
    def _result_limit(self) -> int:
        return self._config.result_max_bytes

    def _connect_stdio(self, request: LaunchRequest) -> Connect:
        config = self._config
        options = StdioOptions(config.message_max_bytes, config.limits.start_seconds / _PROBE_SHARE, self._redact)
        return stdio_connect(self._launcher, request, options)

    def _build_inspection(self, server: ExternalServer) -> Inspect:
        async def inspect(connection: Connection, listed: list[JsonObject]) -> ServerHold | None:
            return self._pinning.may_be_offered(
                server, ServerFingerprint.from_introduction(await connection.introduce(), listed)
            )

        return inspect

    async def _add(self, server: ManagedServer) -> None:
        self._servers[server.profile.name] = server
        await server.start()

    def _offer(self, server: ManagedServer, specs: list[ToolSpec]) -> None:
        if self._servers.get(server.profile.name) is server:  # not a removed one
            profile = server.profile
            offers = [
                ToolOffer(
                    spec,
                    server,
                    profile.timeout_seconds,
                    provenance=profile.provenance,
                    takes_secrets=spec.original_name in profile.takes_secrets,
                    scan=profile.scan,
                    vouched=profile.vouched,
                )
                for spec in specs
            ]
            self._catalogue.offer(profile.name, offers, foreign=profile.kind != "builtin")

    def _hold_back(self, server: ManagedServer, _hold: ServerHold) -> None:
        if self._servers.get(server.profile.name) is server:
            self._catalogue.hold(server.profile.name)

    def _give_up(self, server: ManagedServer) -> None:
        status = server.status()
        self._catalogue.withdraw(status.name)
        self._notify(
            ToolboxNotice(
                "flapping",
                f"{status.label} ended {status.restarts + 1} times and stays down now: {status.last_error}. "
                f"Its log is {status.name}.log.",
                status.name,
            )
        )


def _require_command(command: str, path: str | None, connect: Connect) -> Connect:
    """Report a missing command by name instead of by the exit code of a failed start."""

    async def connect_checked(on_tools_changed: Callable[[], None]) -> Connection:
        if shutil.which(command, path=path) is None:
            raise ServerDown(f"the command {command} was not found")
        return await connect(on_tools_changed)

    return connect_checked


@dataclass(frozen=True, slots=True)
class ServerStateAudit:
    """Records every change of a server's state."""

    audit: AuditTrail | None

    def __call__(self, name: str, state: ServerState) -> None:
        if self.audit is not None:
            self.audit.note("server", {"event": state, "server": name})
