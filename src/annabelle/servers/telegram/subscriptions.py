"""Which chats an agent listens to and how far it has heard, kept over restarts."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.servers.kit import StopSign, in_thread

_log = logging.getLogger(__name__)

MAX_CHATS = 200


class Listening(BaseModel):
    """One agent's ears. `chats` are those it subscribed to; `heard` is the last message it was told, by chat."""

    chats: dict[int, str] = Field(default_factory=dict[int, str])
    heard: dict[int, int] = Field(default_factory=dict[int, int])


class _Kept(BaseModel):
    agents: dict[str, Listening] = Field(default_factory=dict[str, Listening])


class Subscriptions:
    """The file they are kept in. Whoever changes something holds the lock of the tools around reading and writing."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def read(self, agent: str) -> Listening:
        return (await in_thread(self._read)).agents.get(agent) or Listening()

    async def write(self, agent: str, listening: Listening) -> None:
        def work(stop: StopSign) -> None:
            kept = self._read(stop)
            stop.check()
            kept.agents[agent] = listening
            try:
                write_atomically(self._file, kept.model_dump_json(indent=2))
            except OSError as error:
                raise StorageTrouble(
                    f"The subscriptions could not be written: {error.strerror}.", hint="Free space on the disk."
                ) from error

        await in_thread(work)

    def _read(self, _stop: StopSign) -> _Kept:
        try:
            return _Kept.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _Kept()
        except OSError as error:  # it may be whole: taken as empty, it would be written over
            raise StorageTrouble(
                f"The subscriptions could not be read: {error.strerror}.", hint=f"Look at {self._file.name}."
            ) from error
        except ValidationError:
            _log.warning("%s can not be read; it is taken as empty and written anew.", self._file.name)
            return _Kept()
