"""Starts thinker processes, from the warm spare if there is one, and chooses their environment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from annabelle.core.contract import AgentProfile, ThinkerBoot
from annabelle.core.errors import AnnabelleError, Unavailable, explain_os_error
from annabelle.core.home import HOME_VARIABLE, Home
from annabelle.core.settings import Settings
from annabelle.hub.agents.client import ThinkerClient
from annabelle.hub.agents.process import ThinkerProcess
from annabelle.hub.base import HubBase
from annabelle.hub.security.identities import Identities, SubagentScope
from annabelle.toolbox.process.child_config import ChildConfig
from annabelle.toolbox.process.fork_launcher import choose_launcher
from annabelle.toolbox.process.launcher import LaunchRequest

_PLAIN = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
# A provider may only be reachable through the machine's proxy and its certificates.
_NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_OWNERS_ALONE = frozenset({"ANNABELLE_TOKEN"})
_SETTINGS = (
    "thinker_", "llm_", "groq_", "anthropic_", "openai_", "openrouter_", "ollama_", "lmstudio_", "compatible_",
    "embedded_", "model_", "retry_", "user_", "embedding_", "tool_selector_", "history_", "agent_session_",
    "agent_history_", "log_level", "database_url", "sqlite_synchronous",
)  # fmt: skip


def bare_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment a process starts with. It holds no secrets, so a warm spare can wait with it."""
    return {name: environment[name] for name in _PLAIN if name in environment}


def thinker_environment(environment: Mapping[str, str], home: Home) -> dict[str, str]:
    """Environment of a thinker that has an agent."""
    wanted = {name.upper() for name in Settings.model_fields if name.startswith(_SETTINGS)} | set(_NETWORK)
    chosen = {
        name: value
        for name, value in environment.items()
        if (name in wanted or name.upper() in wanted or name.startswith("ANNABELLE_")) and name not in _OWNERS_ALONE
    }
    return {**bare_environment(environment), **chosen, HOME_VARIABLE: str(home.root)}


_log = logging.getLogger(__name__)
_IDLE_SECONDS = 2.0
_LOOK_SECONDS = 0.5


class WarmSpare:
    """Keeps one spare process. It starts only while the hub is idle: its imports would slow a turn down."""

    def __init__(self, spawn: Callable[[], Awaitable[ThinkerProcess]], idle: Callable[[], bool], enabled: bool) -> None:
        self._spawn, self._idle, self._enabled = spawn, idle, enabled
        self._process: ThinkerProcess | None = None
        self._preparing: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Start a spare soon if there is none."""
        if self._enabled and (self._preparing is None or self._preparing.done()) and not self.ready:
            self._preparing = asyncio.create_task(self._prepare())

    @property
    def ready(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.alive else None

    def claim(self) -> ThinkerProcess | None:
        """The spare if there is one; a new one is prepared."""
        process, self._process = self._process, None
        if process is not None:
            self.prepare()
        return process if process is not None and process.alive else None

    async def _prepare(self) -> None:
        idle_for = 0.0
        while idle_for < _IDLE_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            idle_for = idle_for + _LOOK_SECONDS if self._idle() else 0.0
        try:
            self._process = await self._spawn()
        except AnnabelleError as error:
            _log.warning("No spare agent process: %s", error.message)

    async def stop(self) -> None:
        self._enabled = False
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing], timeout=5)
        if self._process is not None:
            await self._process.kill()
            self._process = None


_PROGRAM: Final = "annabelle.thinker.boot"
_STOP_SECONDS: Final = 3.0


class ThinkerLauncher:
    def __init__(self, base: HubBase, identities: Identities, is_idle: Callable[[], bool]) -> None:
        """`is_idle`: whether the hub is idle, so that a spare may be started."""
        settings = base.settings
        self._base, self._identities = base, identities
        self._start_seconds = settings.agent_start_timeout_seconds
        self._processes = choose_launcher(settings.nursery_enabled, (_PROGRAM,), (), base.home.logs / "nursery.log")
        enabled = settings.thinker_warm_spare and settings.thinker_enabled
        self.spare = WarmSpare(self._spawn_spare, is_idle, enabled)

    @property
    def stop_grace_seconds(self) -> float:
        return _STOP_SECONDS

    def admit(self, agent_id: str) -> str:
        return self._identities.admit(agent_id)

    def for_subagent(self, agent_id: str, errand: SubagentScope) -> SubagentLauncher:
        return SubagentLauncher(self, self._identities, agent_id, errand)

    def dismiss(self, secret: str) -> None:
        self._identities.revoke(secret)

    async def launch(
        self, profile: AgentProfile, port: int, secret: str, log: str | None = None
    ) -> tuple[ThinkerProcess, ThinkerClient]:
        """A thinker that is ready for messages. Raises Unavailable if it does not start."""
        with explain_os_error(Unavailable, f"The folder of {profile.agent_id} can not be made"):
            self._base.home.agent(profile.agent_id).mkdir(parents=True, exist_ok=True)
        process = self.spare.claim() or await self._spawn(log or profile.agent_id)
        boot = ThinkerBoot(
            agent=profile,
            hub_url=self._base.address,
            secret=secret,
            port=port,
            environment=thinker_environment(self._base.environment, self._base.home),
        )
        client: ThinkerClient | None = None
        try:
            client = ThinkerClient(await process.assign_agent(boot, self._start_seconds), secret)
            # A thinker listens before it opens its memory, which may fail.
            await process.run_unless_exited(profile.agent_id, client.wait_ready(self._start_seconds))
        except BaseException as error:
            if client is not None:
                client.close()
            await process.kill()
            if isinstance(error, TimeoutError):
                raise Unavailable(
                    f"The agent {profile.agent_id} was not ready after {self._start_seconds:g} s."
                ) from error
            raise
        return process, client

    async def stop(self) -> None:
        """Stop the fork server and every remaining process."""
        await self._processes.stop()

    async def _spawn_spare(self) -> ThinkerProcess:
        return await self._spawn("spare")

    async def _spawn(self, name: str) -> ThinkerProcess:
        parcel = ChildConfig(bare_environment(self._base.environment))
        log = self._base.home.logs / f"thinker-{name}.log"
        order = LaunchRequest(name, parcel, log, module=_PROGRAM, kind="thinker")
        return await ThinkerProcess.spawn(self._processes, order, self._base.redact)


class SubagentLauncher:
    """Starts processes of one subagent, with the identity of its parent agent limited to the given scope."""

    def __init__(self, launcher: ThinkerLauncher, identities: Identities, agent_id: str, errand: SubagentScope) -> None:
        self._launcher, self._identities = launcher, identities
        self._agent_id, self._errand = agent_id, errand

    @property
    def stop_grace_seconds(self) -> float:
        return self._launcher.stop_grace_seconds

    def admit(self, agent_id: str) -> str:
        return self._identities.admit(self._agent_id, self._errand)

    def dismiss(self, secret: str) -> None:
        self._identities.revoke(secret)

    async def launch(self, profile: AgentProfile, port: int, secret: str) -> tuple[ThinkerProcess, ThinkerClient]:
        return await self._launcher.launch(profile, port, secret, log="subagents")
