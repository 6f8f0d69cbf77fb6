"""The folders the user has opened to the filer. Only a person edits the file; the filer never writes it."""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.servers.kit.files.forbidden import Forbidden

_log = logging.getLogger(__name__)

Permission = Literal["read", "read-write"]
_MAX_BYTES = 1_000_000


class GrantEntry(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    permission: Permission
    reason: str | None = None


class GrantsFile(BaseModel):
    """The file: `{"grants": [{"path": "/home/me/Documents", "permission": "read"}]}`."""

    model_config = ConfigDict(extra="forbid")

    grants: list[GrantEntry] = Field(default_factory=list[GrantEntry])


@dataclass(frozen=True, slots=True)
class Grant:
    """An opened folder or file: as written, and where it really is."""

    path: Path
    real: Path
    permission: Permission
    reason: str | None = None


class Grants:
    """The grants in force. The file is read again when it changes; a bad one leaves the last good grants in force."""

    def __init__(self, file: Path, forbidden: Forbidden) -> None:
        self.file = file
        self._forbidden = forbidden
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._grants: tuple[Grant, ...] = ()
        self._notices: tuple[str, ...] = ()

    def current(self) -> tuple[Grant, ...]:
        """Longest path first, so that the closest grant decides."""
        self._refresh()
        return self._grants

    def notices(self) -> tuple[str, ...]:
        """What is wrong with the file, in sentences for the user; empty when nothing is."""
        self._refresh()
        return self._notices

    def _refresh(self) -> None:
        with self._lock:
            try:
                status = os.stat(self.file)
                seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            except FileNotFoundError:
                self._seen, self._grants, self._notices = None, (), ()
                return
            except OSError as error:
                self._keep(f"{self.file.name} can not be read ({error.strerror}); the last good grants stay in force.")
                return
            if seen != self._seen:
                self._seen = seen
                self._load(status.st_size)

    def _load(self, size: int) -> None:
        try:
            if size > _MAX_BYTES:
                raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
            parsed = GrantsFile.model_validate(json.loads(self.file.read_text(encoding="utf-8")))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            self._keep(f"{self.file.name} is not valid ({where}: {first['msg']}); the last good grants stay in force.")
        except (OSError, ValueError, RecursionError) as error:
            self._keep(f"{self.file.name} can not be used ({error}); the last good grants stay in force.")
        else:
            self._accept(parsed)

    def _accept(self, parsed: GrantsFile) -> None:
        grants: list[Grant] = []
        notices: list[str] = []
        for entry in parsed.grants:
            path = Path(os.path.normpath(Path(entry.path).expanduser()))
            real = Path(os.path.realpath(path))
            if not path.is_absolute():
                notices.append(f"The grant {entry.path} is ignored: its path is not absolute.")
            elif self._forbidden.covers(path) or self._forbidden.covers(real):
                notices.append(f"The grant {entry.path} is ignored: it is a protected place.")
            else:
                grants.append(Grant(path, real, entry.permission, entry.reason))
        self._grants = tuple(sorted(grants, key=lambda grant: len(grant.path.parts), reverse=True))
        self._notices = tuple(notices)
        for notice in notices:
            _log.warning("%s", notice)

    def _keep(self, notice: str) -> None:
        if self._notices != (notice,):
            _log.warning("%s", notice)
        self._notices = (notice,)
