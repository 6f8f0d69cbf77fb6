"""How far new mail was looked at, for each agent and account."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically


class _File(BaseModel):
    cursors: dict[str, str] = Field(default_factory=dict[str, str])


class Seen:
    """Cursors in one small file. One that can not be read counts as none: mail is then shown again, never lost."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, agent: str, account: str) -> str | None:
        return self._load().cursors.get(_key(agent, account))

    def write(self, agent: str, account: str, cursor: str) -> None:
        whole = self._load()
        whole.cursors[_key(agent, account)] = cursor
        try:
            write_atomically(self._file, whole.model_dump_json(indent=2))
        except OSError as error:
            raise StorageTrouble("What was seen of the mail can not be kept: the disk refuses it.") from error

    def _load(self) -> _File:
        try:
            return _File.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return _File()


def _key(agent: str, account: str) -> str:
    return f"{agent} {account}"
