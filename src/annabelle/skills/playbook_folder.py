"""The playbooks of a home: default files (PLB-01), rereading of changed files, and matching by keyword (PLB-02)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

from annabelle.core.home import write_atomically
from annabelle.core.trace import SHOWN_IN_CHAT
from annabelle.skills.playbook import Playbook, PlaybookMistake, read_playbook
from annabelle.skills.skill_folder import SkillFolder

_log = logging.getLogger(__name__)
MOST_MATCHES: Final = 3
_MOST_FILES = 200
_LOOKED_AT_CHARS = 20_000
"""Part of a message that is searched: a request usually precedes a long pasted text."""
_WORD = re.compile(r"\w+")

_Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _LoadedPlaybook:
    """A file as it was read; without a playbook if it is broken."""

    version: _Version
    playbook: Playbook | None


class PlaybookFolder:
    """Rereads changed files on each call, so that edits apply to the next message. Logs a broken file once.

    Skills with keywords are matched like playbooks and compete with them.
    """

    def __init__(self, folder: Path, skills: SkillFolder | None = None) -> None:
        self._folder, self._skills = folder, skills
        self._files: dict[str, _LoadedPlaybook] = {}
        self._missing = False

    def matching(self, text: str, tools: Collection[str]) -> tuple[Playbook, ...]:
        """Returns usable playbooks with a keyword in the message, as whole words; three at most, by priority."""
        self._refresh()
        words = _space_words(text[:_LOOKED_AT_CHARS])
        known = [kept.playbook for kept in self._files.values() if kept.playbook is not None]
        known += [] if self._skills is None else self._skills.usable(tools)
        found = [
            playbook
            for playbook in known
            if any(_to_phrase(keyword) in words for keyword in playbook.keywords) and playbook.is_usable(tools)
        ]
        return tuple(sorted(found, key=lambda one: (-one.priority, one.name))[:MOST_MATCHES])

    def _refresh(self) -> None:
        now = self._versions()
        for name in self._files.keys() - now.keys():
            del self._files[name]
        for name, version in now.items():
            known = self._files.get(name)
            if known is None or known.version != version:
                self._files[name] = self._read(name, version)

    def _versions(self) -> dict[str, _Version]:
        found: dict[str, _Version] = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".md") and not entry.name.startswith(".") and len(found) < _MOST_FILES:
                        version = _version(entry)
                        if version is not None:
                            found[entry.name] = version
        except OSError as error:
            if not self._missing:
                _log.warning("the playbooks in %s can not be read: %s", self._folder, error.strerror)
            self._missing = True
            return {}
        self._missing = False
        return found

    def _read(self, name: str, version: _Version) -> _LoadedPlaybook:
        try:
            if not (self._folder / name).is_file():
                raise PlaybookMistake("it is no file")  # reading a pipe would block the turn
            playbook = read_playbook(self._folder / name)
        except PlaybookMistake as mistake:
            _log.warning("The playbook %s is passed over: %s", name, mistake, extra=SHOWN_IN_CHAT)
        except OSError as error:
            _log.warning("The playbook %s is passed over: %s", name, error.strerror, extra=SHOWN_IN_CHAT)
        else:
            return _LoadedPlaybook(version, playbook)
        return _LoadedPlaybook(version, None)


def _version(entry: os.DirEntry[str]) -> _Version | None:
    try:
        state = entry.stat()
    except OSError:
        return None  # deleted while the folder was read
    return state.st_mtime_ns, state.st_size, state.st_ino


def _space_words(text: str) -> str:
    """Returns the words separated by single spaces, so that a substring search finds whole words."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


@lru_cache(maxsize=4096)
def _to_phrase(keyword: str) -> str:
    """What a matching message has; a keyword without a word matches none."""
    spaced = _space_words(keyword)
    return spaced if spaced.strip() else "\n"


DEFAULTS: Final = Path(__file__).parent / "defaults"
MANIFEST: Final = ".seeded.json"
SERVERS_WITH_PLAYBOOKS: Final = frozenset({"vercel", "posthog", "github", "neon"})
_NOT_OURS = "not a file of ours"


def default_playbooks(servers: Collection[str], defaults: Path = DEFAULTS) -> list[Path]:
    """Lists the packaged playbooks for these servers; most need none in particular."""
    wanted: list[Path] = []
    for path in sorted(defaults.glob("*.md")):
        needed = read_playbook(path).servers
        if not needed or any(server in servers for server in needed):
            wanted.append(path)
    return wanted


def seed_playbooks(folder: Path, servers: Collection[str], defaults: Path = DEFAULTS) -> list[str]:
    """Writes new and updated defaults, and returns their names. OSError if the folder is not writable."""
    return seed_files(folder, default_playbooks(servers, defaults))


def seed_files(folder: Path, sources: Iterable[Path]) -> list[str]:
    """Writes what is new, and what changed since unless a person changed it; returns the names."""
    folder.mkdir(parents=True, exist_ok=True)
    recorded = _read_manifest(folder / MANIFEST)
    kept, written = dict(recorded), list[str]()
    for source in sources:
        text = source.read_text(encoding="utf-8")
        target, packaged = folder / source.name, _hash(text.encode())
        standing, before = _current_hash(target), recorded.get(source.name)
        if standing is None and before is not None:
            continue  # the user deleted it
        if standing is None or (standing == before and standing != packaged):
            write_atomically(target, text)
            written.append(source.name)
            standing = packaged
        if standing == packaged:
            # Also if a start was killed after writing it and before recording it.
            kept[source.name] = packaged
    if kept != recorded:
        write_atomically(folder / MANIFEST, json.dumps(dict(sorted(kept.items())), indent=2) + "\n")
    return written


def _current_hash(target: Path) -> str | None:
    """Hash of a plain file, a marker for a link or folder, None if nothing is there."""
    if not target.is_symlink() and not target.exists():
        return None
    try:
        return _NOT_OURS if target.is_symlink() or not target.is_file() else _hash(target.read_bytes())
    except OSError:
        return _NOT_OURS


def _read_manifest(manifest: Path) -> dict[str, str]:
    try:
        parsed: object = json.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        _log.warning("%s can not be read; playbooks that are there stay as they are", manifest)
        return {}
    return {str(name): str(value) for name, value in cast("dict[object, object]", parsed).items()}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keep_playbook(folder: Path, playbook: Playbook, *, wanted: bool) -> None:
    """Writes the playbook of a skill with keywords, or removes it once the skill is off."""
    target = folder / f"{playbook.name}.md"
    if not wanted:
        target.unlink(missing_ok=True)
        return
    lists = {"keywords": playbook.keywords, "required_tools": playbook.required_tools}
    lines = [f"description: {_quote(playbook.description)}"]
    lines += [f"{name}: [{', '.join(map(_quote, values))}]" for name, values in lists.items() if values]
    write_atomically(target, "\n".join(["---", *lines, "---", playbook.instructions, ""]))


def _quote(text: str) -> str:
    """In quotes as front matter has them, on one line."""
    line = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{line}"'
