"""Stops and resumes through the hub, or past it: one that hangs is killed, and the file it reads at its start says why.

`kill -9` loses nothing here: what is stored stays stored, and thinkers and servers end with their hub.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import Literal

import httpx2 as httpx

from annabelle.cli.hub_client import HubClient, read_hub_file
from annabelle.cli.hub_process import POLL_SECONDS, alive, is_hub
from annabelle.core.errors import AlreadyRunning, HubUnreachable, NotFound, StorageTrouble
from annabelle.core.home import Home
from annabelle.core.redact import Redactor
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject
from annabelle.hub.agents.config_file import AgentsFile
from annabelle.hub.notices import Notices
from annabelle.hub.stopping.halts import ALL, RESUME, Halts
from annabelle.store.audit.chain import Chain, Limits, Note, moment
from annabelle.store.audit.places import AuditPlaces
from annabelle.toolbox.processes.tree import kill_tree

ANSWER_SECONDS = 1.0
STOPPING_SECONDS = 6.0
GONE_SECONDS = 5.0
_BY = "owner, at the terminal"

How = Literal["asked", "killed", "written"]


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it, and how: the hub was asked, was killed, or does not run and will read it."""

    message: str
    how: How
    turns: int = 0


@dataclass(frozen=True, slots=True)
class _Hub:
    pid: int
    url: str | None


@dataclass(frozen=True, slots=True)
class Halting:
    """What is stopped in one home."""

    home: Home

    def stop(self, target: str) -> Told:
        hub = self._hub()
        if hub is not None and _answers(hub):
            with contextlib.suppress(HubUnreachable):
                return self._asked("/stop", target)
        trouble = self._kept(target)
        if hub is not None:
            _kill(hub.pid)
            if Halts(self.home.halts_file).of(target) is None:
                # A disk that was full, or a hub that wrote what it knew in its last moment.
                trouble = self._kept(target)
        self._note("stopped", target, killed=hub is not None)
        if trouble is not None:
            raise trouble
        resume = RESUME if target == ALL else f"{RESUME} {target}"
        what = "Everything" if target == ALL else target
        if hub is None:
            return Told(f"Annabelle does not run. {what} stays stopped when it starts, until: {resume}", "written")
        message = (
            f"Annabelle did not answer, so it was ended. {what} stays stopped when it starts again, until: {resume}"
        )
        return Told(message, "killed")

    def resume(self, target: str) -> Told:
        hub = self._hub()
        if hub is not None and hub.url is not None:
            return self._asked("/resume", target)
        was = self._write(target, stop=False)
        self._note("resumed", target, killed=False)
        what = "Everything goes on" if target == ALL else f"{target} goes on"
        return Told(f"{what} when Annabelle starts." if was else "Nothing was stopped.", "written")

    def _hub(self) -> _Hub | None:
        """The hub of this home, also one that is starting: it holds the lock and has not said yet where it is."""
        note = read_hub_file(self.home)
        pid = note.pid if note is not None else _holder(self.home)
        if pid is None or not is_hub(pid):
            return None
        return _Hub(pid, note.url if note is not None else None)

    def _asked(self, path: str, target: str) -> Told:
        async def ask() -> JsonObject:
            async with HubClient.of(self.home) as client:
                return await client.post(path, {"target": target}, timeout=STOPPING_SECONDS)

        answer = asyncio.run(ask())
        return Told(str(answer["message"]), "asked", int(str(answer.get("turns") or 0)))

    def _kept(self, target: str) -> StorageTrouble | None:
        """Have the next hub start stopped. That this can not be written down keeps nobody from ending the one there."""
        try:
            self._write(target, stop=True)
        except StorageTrouble as trouble:
            return trouble
        return None

    def _write(self, target: str, *, stop: bool) -> bool:
        """Change the file that the hub reads when it starts; whether anything changed."""
        if target != ALL:
            config = AgentsFile(self.home, load_settings(self.home), Notices()).load()
            if config.agent(target) is None:
                names = ", ".join(agent.agent_id for agent in config.agents)
                raise NotFound(f"There is no agent {target}.", hint=f"There are: {names}.")
        self.home.prepare()
        halts, changed = Halts(self.home.halts_file), True
        if stop:
            halts.stop(target, _BY)
        else:
            changed = halts.resume(target)
        halts.save()
        return changed

    def _note(self, event: str, target: str, *, killed: bool) -> None:
        """The audit is nobody's when no hub runs; one that can not be had does not keep us from stopping."""
        chain = Chain(AuditPlaces.of(self.home), Limits(), Redactor.from_environment())
        with contextlib.suppress(StorageTrouble, OSError):
            _open(chain)
            try:
                facts: JsonObject = {"event": event, "target": target, "by": _BY, "hub_killed": killed}
                chain.append([Note("stop", facts, moment())])
            finally:
                chain.close()


def _kill(pid: int) -> None:
    """Kill a hub with all below it, and wait until it is gone: what it held is free then."""
    kill_tree(pid)
    deadline = time.monotonic() + GONE_SECONDS
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _open(chain: Chain) -> None:
    """The lock of a hub that was killed is free when the last of its threads is gone, a moment after its end."""
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        try:
            chain.open()
        except AlreadyRunning:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def _holder(home: Home) -> int | None:
    try:
        return int(home.hub_file.with_name(f"{home.hub_file.name}.lock").read_bytes())
    except (OSError, ValueError):
        return None


def _answers(hub: _Hub) -> bool:
    if hub.url is None:
        return False
    try:
        return httpx.get(f"{hub.url}/health", timeout=ANSWER_SECONDS, trust_env=False).is_success
    except httpx.HTTPError:
        return False
