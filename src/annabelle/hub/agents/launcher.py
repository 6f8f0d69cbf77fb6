"""Starts thinker processes: the warm spare when there is one, else a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from annabelle.core.contract import AgentProfile, ThinkerBoot
from annabelle.core.errors import Unavailable
from annabelle.core.home import Home
from annabelle.core.redact import Redactor
from annabelle.hub.agents.client import ThinkerClient
from annabelle.hub.agents.environment import bare_environment, thinker_environment
from annabelle.hub.agents.process import ThinkerProcess
from annabelle.hub.agents.spare import WarmSpare
from annabelle.hub.security.identities import Errand, Identities
from annabelle.toolbox.nursery.parcel import Parcel
from annabelle.toolbox.processes.choice import choose_launcher
from annabelle.toolbox.processes.launch import Launch

_PROGRAM: Final = "annabelle.thinker.boot"


@dataclass(frozen=True, slots=True)
class LaunchRules:
    """Where thinkers live and how long they may take."""

    home: Home
    environment: Mapping[str, str] = field(repr=False)
    hub_url: str
    start_seconds: float
    redact: Redactor
    stop_seconds: float = 3.0
    warm_spare: bool = True
    fork: bool = True


class Launcher:
    """Makes a listening thinker out of a profile."""

    def __init__(self, rules: LaunchRules, identities: Identities, idle: Callable[[], bool]) -> None:
        self._rules, self._identities = rules, identities
        self._processes = choose_launcher(rules.fork, (_PROGRAM,), (), rules.home.logs / "nursery.log")
        self.spare = WarmSpare(lambda: self._spawn("spare"), idle, rules.warm_spare)

    @property
    def stop_grace_seconds(self) -> float:
        return self._rules.stop_seconds

    def admit(self, agent_id: str) -> str:
        return self._identities.admit(agent_id)

    def for_errand(self, agent_id: str, errand: Errand) -> ErrandLauncher:
        """Launches a subagent of this agent."""
        return ErrandLauncher(self, self._identities, agent_id, errand)

    def dismiss(self, secret: str) -> None:
        self._identities.dismiss(secret)

    async def launch(
        self, profile: AgentProfile, port: int, secret: str, log: str | None = None
    ) -> tuple[ThinkerProcess, ThinkerClient]:
        """A thinker that is ready for messages, or the reason why there is none."""
        try:
            self._rules.home.agent(profile.agent_id).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"The folder of {profile.agent_id} can not be made: {error.strerror}.") from error
        process = self.spare.take() or await self._spawn(log or profile.agent_id)
        boot = ThinkerBoot(
            agent=profile,
            hub_url=self._rules.hub_url,
            secret=secret,
            port=port,
            environment=thinker_environment(self._rules.environment, self._rules.home),
        )
        client: ThinkerClient | None = None
        try:
            client = ThinkerClient(await process.adopt(boot, self._rules.start_seconds), secret)
            # A thinker listens before it opens its memory, and may end over that.
            await process.unless_it_ends(profile.agent_id, client.ready(self._rules.start_seconds))
        except BaseException as error:
            if client is not None:
                client.close()
            await process.kill()
            if isinstance(error, TimeoutError):
                raise Unavailable(
                    f"The agent {profile.agent_id} was not ready after {self._rules.start_seconds:g} s."
                ) from error
            raise
        return process, client

    async def stop(self) -> None:
        """End what new processes would be made from, and every process that is left."""
        await self._processes.stop()

    async def _spawn(self, name: str) -> ThinkerProcess:
        parcel = Parcel(bare_environment(self._rules.environment))
        log = self._rules.home.logs / f"thinker-{name}.log"
        order = Launch(name, parcel, log, module=_PROGRAM, kind="thinker")
        return await ThinkerProcess.spawn(self._processes, order, self._rules.redact)


class ErrandLauncher:
    """Starts the processes of one subagent: they speak for the agent it works for, and for no more than its errand."""

    def __init__(self, launcher: Launcher, identities: Identities, agent_id: str, errand: Errand) -> None:
        self._launcher, self._identities = launcher, identities
        self._agent_id, self._errand = agent_id, errand

    @property
    def stop_grace_seconds(self) -> float:
        return self._launcher.stop_grace_seconds

    def admit(self, agent_id: str) -> str:
        return self._identities.admit(self._agent_id, self._errand)

    def dismiss(self, secret: str) -> None:
        self._identities.dismiss(secret)

    async def launch(self, profile: AgentProfile, port: int, secret: str) -> tuple[ThinkerProcess, ThinkerClient]:
        return await self._launcher.launch(profile, port, secret, log="subagents")
