"""`annabelle stop`: stops agents through the hub, or kills a hub that does not answer; the next one starts stopped."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from annabelle.cli.hub_client import ask_hub, read_hub_file
from annabelle.cli.hub_process import POLL_SECONDS, answers, is_alive, is_hub
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome
from annabelle.core.errors import AlreadyRunning, HubUnreachable, NotFound, StorageTrouble
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.halts import ALL, RESUME, Halts
from annabelle.hub.notices import Notices
from annabelle.store.audit.chain import AuditChain, AuditLimits, AuditNote, timestamp_now
from annabelle.store.audit.records import AuditPaths
from annabelle.toolbox.process.kernel import kill_tree

ANSWER_SECONDS = 1.0
STOPPING_SECONDS = 6.0
GONE_SECONDS = 5.0
_BY = "owner, at the terminal"

How = Literal["asked", "killed", "written"]


@dataclass(frozen=True, slots=True)
class HaltOutcome:
    """The result of a stop or resume: the hub was asked, killed, or will read the file at its start."""

    message: str
    how: How
    turns: int = 0


@dataclass(frozen=True, slots=True)
class _RunningHub:
    pid: int
    url: str | None


@dataclass(frozen=True, slots=True)
class HaltControl:
    home: Home

    def stop(self, target: str) -> HaltOutcome:
        hub = self._find_hub()
        if hub is not None and hub.url is not None and answers(hub.url, ANSWER_SECONDS):
            with contextlib.suppress(HubUnreachable):
                return self._ask_hub("/stop", target)
        trouble = self._store_halt(target)
        if hub is not None:
            _kill_hub(hub.pid)
            if not Halts(self.home.halts_file).covers(target):
                # The disk was full, or the hub wrote its own state as it ended.
                trouble = self._store_halt(target)
        self._audit("stopped", target, killed=hub is not None)
        if trouble is not None:
            raise trouble
        resume = RESUME if target == ALL else f"{RESUME} {target}"
        what = "Everything" if target == ALL else target
        if hub is None:
            return HaltOutcome(
                f"Annabelle does not run. {what} stays stopped when it starts, until: {resume}", "written"
            )
        message = (
            f"Annabelle did not answer, so it was ended. {what} stays stopped when it starts again, until: {resume}"
        )
        return HaltOutcome(message, "killed")

    def resume(self, target: str) -> HaltOutcome:
        hub = self._find_hub()
        if hub is not None and hub.url is not None:
            return self._ask_hub("/resume", target)
        was = self._write(target, stop=False)
        self._audit("resumed", target, killed=False)
        what = "Everything goes on" if target == ALL else f"{target} goes on"
        return HaltOutcome(f"{what} when Annabelle starts." if was else "Nothing was stopped.", "written")

    def _find_hub(self) -> _RunningHub | None:
        """The hub of this home, including one that is starting: it holds the lock but has no URL yet."""
        note = read_hub_file(self.home)
        pid = note.pid if note is not None else _read_lock_pid(self.home)
        if pid is None or not is_hub(pid):
            return None
        return _RunningHub(pid, note.url if note is not None else None)

    def _ask_hub(self, path: str, target: str) -> HaltOutcome:
        answer = ask_hub(lambda client: client.post(path, {"target": target}, STOPPING_SECONDS), self.home)
        return HaltOutcome(str(answer["message"]), "asked", int(str(answer.get("turns") or 0)))

    def _store_halt(self, target: str) -> StorageTrouble | None:
        """Make the next hub start stopped. A failed write is returned, so that the hub is killed anyway."""
        try:
            self._write(target, stop=True)
        except StorageTrouble as trouble:
            return trouble
        return None

    def _write(self, target: str, *, stop: bool) -> bool:
        """Change the halt file and return whether anything changed."""
        halts, changed = Halts(self.home.halts_file), True
        if target not in (ALL, *halts.parts):
            config = AgentsFile(self.home, load_settings(self.home), Notices()).load()
            if config.agent(target) is None:
                names = ", ".join(agent.agent_id for agent in config.agents)
                raise NotFound(f"There is no agent {target}.", hint=f"There are: {names}.")
        self.home.prepare()
        if stop:
            halts.stop(target, _BY)
        else:
            changed = halts.resume(target)
        halts.save()
        return changed

    def _audit(self, event: str, target: str, *, killed: bool) -> None:
        """Write to the audit log directly, since no hub runs. A failure does not prevent the stop."""
        chain = AuditChain(AuditPaths.from_home(self.home), AuditLimits(), Redactor.from_environment())
        with contextlib.suppress(StorageTrouble, OSError):
            _open_chain(chain)
            try:
                facts: JsonObject = {"event": event, "target": target, "by": _BY, "hub_killed": killed}
                chain.append([AuditNote("stop", facts, timestamp_now())])
            finally:
                chain.close()


def _kill_hub(pid: int) -> None:
    """Kill a hub with its children and wait until it is gone and its locks are free."""
    kill_tree(pid)
    deadline = time.monotonic() + GONE_SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _open_chain(chain: AuditChain) -> None:
    """Open the log; the lock of a killed hub is released a moment after its end."""
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


def _read_lock_pid(home: Home) -> int | None:
    try:
        return int(home.hub_file.with_name(f"{home.hub_file.name}.lock").read_bytes())
    except (OSError, ValueError):
        return None


Target = Annotated[
    str,
    typer.Argument(help="One agent by its id, or thinker (all agents), scheduler, a channel, all."),
]

app = command_app()


@app.command()
def stop(agent: Target = ALL, json: Json = False) -> None:
    """Stop an agent, or all of them: what runs ends at once, and nothing begins until annabelle resume.

    An Annabelle that does not answer within a second is ended itself; it starts stopped. annabelle down ends
    Annabelle in good order instead."""
    told = HaltControl(Home.from_environment()).stop(agent)
    data = {"target": agent, "message": told.message, "how": told.how, "turns": told.turns}
    print_outcome(data, told.message, json=json)
