"""What the owner has stopped, in a file that survives restarts and works without a hub (CMD-02).

That is one agent, or a part: all agents, the scheduler, a channel, everything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import AgentStopped, StorageTrouble, explain_os_error
from annabelle.core.home import write_atomically
from annabelle.core.messages import CHAT_APPS, now
from annabelle.core.models import FrozenModel

ALL: Final = "all"
THINKER: Final = "thinker"
"""All agents."""
SCHEDULER: Final = "scheduler"
CHANNELS: Final = tuple(sorted(CHAT_APPS))
"""Names of the channels that can be stopped one by one."""
RESUME: Final = "annabelle resume"


class Halt(FrozenModel):
    at: datetime
    by: str


class _HaltsFile(BaseModel):
    """The file. `owed`: turns that ended while their thinker was dead, and that it must not resume."""

    everything: Halt | None = None
    parts: dict[str, Halt] = Field(default_factory=dict)
    agents: dict[str, Halt] = Field(default_factory=dict)
    owed: dict[str, list[str]] = Field(default_factory=dict)


class Halts:
    """What is stopped. A change takes effect at once; `save` makes it survive a restart."""

    def __init__(self, path: Path, channels: tuple[str, ...] = CHANNELS) -> None:
        self._path = path
        self._saving = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.parts = (THINKER, SCHEDULER, *channels)
        """What can be stopped beside single agents and everything."""
        self.damaged = False
        self._state = self._read()

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    @property
    def everything(self) -> Halt | None:
        return self._state.everything

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(sorted(self._state.agents))

    @property
    def stopped(self) -> tuple[str, ...]:
        """Everything that is stopped one by one: parts first, then agents."""
        return (*sorted(self._state.parts), *self.agents)

    def find(self, agent_id: str) -> Halt | None:
        """The halt of an agent, its own or the one for all of them or for everything."""
        return self._state.everything or self._state.parts.get(THINKER) or self._state.agents.get(agent_id)

    def is_halted(self, part: str) -> bool:
        """Whether a part (`SCHEDULER`, the name of a channel) is stopped. A stopped channel still takes commands."""
        return self._state.everything is not None or part in self._state.parts

    def covers(self, target: str) -> bool:
        """Whether this agent or part is stopped, or everything is."""
        return self.is_halted(target) if target in (ALL, *self.parts) else self.find(target) is not None

    def check(self, agent_id: str) -> None:
        """Raises AgentStopped if the agent is stopped."""
        if self._state.everything is not None:
            raise AgentStopped("Everything was stopped by the owner.", hint=f"Let it go on with: {RESUME}")
        if THINKER in self._state.parts:
            raise AgentStopped("All agents were stopped by the owner.", hint=f"Let them go on with: {RESUME} {THINKER}")
        if agent_id in self._state.agents:
            raise AgentStopped(
                f"The agent {agent_id} was stopped by the owner.", hint=f"Let it go on with: {RESUME} {agent_id}"
            )

    def stop(self, target: str, by: str) -> None:
        """Stop an agent, a part or `ALL`. Stopping again keeps the first halt."""
        halt = Halt(at=now(), by=by)
        if target == ALL:
            self._state.everything = self._state.everything or halt
        else:
            (self._state.parts if target in self.parts else self._state.agents).setdefault(target, halt)
        self._notify()

    def resume(self, target: str) -> bool:
        """Resume an agent, a part or `ALL`. Returns whether it was stopped."""
        state = self._state
        if target == ALL:
            was = state.everything is not None or bool(state.agents or state.parts)
            state.everything = None
            state.parts.clear()
            state.agents.clear()
        elif target == THINKER:
            was = state.parts.pop(THINKER, None) is not None or bool(state.agents)
            state.agents.clear()
        else:
            was = (state.parts if target in self.parts else state.agents).pop(target, None) is not None
        self._notify()
        return was

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()

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
