"""Which agents the owner has stopped, in a file that survives restarts and works without a hub."""

from __future__ import annotations

import threading
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import AgentStopped, StorageTrouble, explain_os_error
from annabelle.core.home import write_atomically
from annabelle.core.messages import now
from annabelle.core.models import FrozenModel

ALL: Final = "all"
RESUME: Final = "annabelle resume"


class Halt(FrozenModel):
    at: datetime
    by: str


class _HaltsFile(BaseModel):
    """The file. `owed`: turns that ended while their thinker was dead, and that it must not resume."""

    everything: Halt | None = None
    agents: dict[str, Halt] = Field(default_factory=dict)
    owed: dict[str, list[str]] = Field(default_factory=dict)


class Halts:
    """Stopped agents. A change takes effect at once; `save` makes it survive a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saving = threading.Lock()
        self.damaged = False
        self._state = self._read()

    @property
    def everything(self) -> Halt | None:
        return self._state.everything

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(sorted(self._state.agents))

    def find(self, agent_id: str) -> Halt | None:
        """The halt of an agent, its own or the one for everything."""
        return self._state.everything or self._state.agents.get(agent_id)

    def check(self, agent_id: str) -> None:
        """Raises AgentStopped if the agent is stopped."""
        if self._state.everything is not None:
            raise AgentStopped("Everything was stopped by the owner.", hint=f"Let it go on with: {RESUME}")
        if agent_id in self._state.agents:
            raise AgentStopped(
                f"The agent {agent_id} was stopped by the owner.", hint=f"Let it go on with: {RESUME} {agent_id}"
            )

    def stop(self, target: str, by: str) -> None:
        """Stop an agent or `ALL`. Stopping again keeps the first halt."""
        halt = Halt(at=now(), by=by)
        if target == ALL:
            self._state.everything = self._state.everything or halt
        else:
            self._state.agents.setdefault(target, halt)

    def resume(self, target: str) -> bool:
        """Resume an agent or `ALL`. Returns whether it was stopped."""
        if target != ALL:
            return self._state.agents.pop(target, None) is not None
        was = self._state.everything is not None or bool(self._state.agents)
        self._state.everything = None
        self._state.agents.clear()
        return was

    def add_owed_cancel(self, agent_id: str, message_id: str) -> None:
        known = self._state.owed.setdefault(agent_id, [])
        if message_id not in known:
            known.append(message_id)

    def owed_cancels(self, agent_id: str) -> tuple[str, ...]:
        return tuple(self._state.owed.get(agent_id, ()))

    def remove_owed_cancel(self, agent_id: str, message_id: str) -> None:
        left = [one for one in self._state.owed.get(agent_id, []) if one != message_id]
        if left:
            self._state.owed[agent_id] = left
        else:
            self._state.owed.pop(agent_id, None)

    def save(self) -> None:
        with self._saving:
            with explain_os_error(
                StorageTrouble,
                "What is stopped can not be kept",
                hint="It is stopped now. Free some space: a restart would forget it.",
            ):
                write_atomically(self._path, self._state.model_dump_json() + "\n")
            self.damaged = False

    def _read(self) -> _HaltsFile:
        """Reads the file. A damaged one may hide a stop, so everything is stopped until the owner resumes."""
        try:
            return _HaltsFile.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return _HaltsFile()
        except (OSError, ValidationError):
            self.damaged = True
            return _HaltsFile(everything=Halt(at=now(), by="a damaged file"))
