"""Creates the files a new home needs. Never overwrites what exists (HUB-07)."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from annabelle.core.errors import OperatorMistake, explain_os_error
from annabelle.core.home import Home
from annabelle.core.persona import PERSONA_FILE, default_persona
from annabelle.skills.playbook_folder import SERVERS_WITH_PLAYBOOKS, seed_files, seed_playbooks

_log = logging.getLogger(__name__)
_GUIDE = Path(__file__).parent / "seeds" / "README.md"
_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "documentation", _PACKAGE.parents[1] / "docs")
"""The documentation: in an installed package, and in a checkout."""


def seed_home(home: Home) -> None:
    """Create the folders, guide, documentation and playbooks of a new home, and update what nobody has changed."""
    for folder in (home.skills, home.workspace):
        _make_folder(folder)
    _write_new_file(_GUIDE.read_text(encoding="utf-8"), home.root / "README.md")
    with _explain_write_error(home.playbooks):
        seed_playbooks(home.playbooks, ())
    with _explain_write_error(home.documentation):
        seed_files(home.documentation, sorted(page for folder in _PAGES for page in folder.glob("*.md")))


def seed_agent(home: Home, agent_id: str) -> None:
    folder = home.agent(agent_id)
    _make_folder(folder)
    _write_new_file(default_persona(agent_id), folder / PERSONA_FILE)


class ServerPlaybooks:
    """Adds playbooks of a server once that server is present (PLB-01)."""

    def __init__(self, home: Home, servers: Callable[[], Iterable[str]]) -> None:
        self._home, self._servers = home, servers
        self._known: frozenset[str] = frozenset()

    def seed_new_servers(self, _tools_version: str = "") -> None:
        """Add playbooks of new servers. Called whenever the tools change, so it never raises."""
        present = SERVERS_WITH_PLAYBOOKS & frozenset(self._servers())
        if present <= self._known:
            return
        try:
            written = seed_playbooks(self._home.playbooks, present)
        except OSError as error:
            _log.warning("the playbooks for %s can not be written: %s", ", ".join(sorted(present)), error.strerror)
            return
        self._known = present
        if written:
            _log.info("New playbooks: %s", ", ".join(written))


def _make_folder(folder: Path) -> None:
    with explain_os_error(OperatorMistake, f"The folder {folder} can not be made"):
        folder.mkdir(parents=True, exist_ok=True)


def _write_new_file(text: str, target: Path) -> None:
    with _explain_write_error(target):
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
        except OSError:
            # At the next start, a partial file would pass for the person's own.
            with contextlib.suppress(OSError):
                target.unlink()
            raise


def _explain_write_error(target: Path) -> AbstractContextManager[None]:
    hint = "Free space or fix the permissions of the home."
    return explain_os_error(OperatorMistake, f"{target} can not be written", hint=hint)
