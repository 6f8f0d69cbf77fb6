"""The SKILL.md files of a home: found, reread after a change, and pinned once installed (SKL-06, BEY-04)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from annabelle.core.home import Home, write_atomically
from annabelle.core.tools import JsonObject
from annabelle.core.trace import SHOWN_IN_CHAT
from annabelle.skills.playbook import Playbook
from annabelle.skills.skill_file import FILE_NAME, SkillFile, SkillMistake, list_files, read_skill, read_text

_log = logging.getLogger(__name__)
MOST_FOLDER_BYTES: Final = 32 * 1024 * 1024
_MOST_SKILLS: Final = 500
_MOST_ENTRIES: Final = 5_000

_FileState = tuple[str, int, int, int]
"""Path, time of change, size and inode. Nobody can set the time of change back, unlike that of the content."""


class SkillPins:
    """What the person said yes to: each installed skill, the hash of its files and where it came from (I-11)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, JsonObject]:
        try:
            parsed: object = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            parsed = None
        entries = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else None
        if entries is None or not all(isinstance(entry, dict) for entry in entries.values()):
            raise SkillMistake("changed", f"{self._path.name} is damaged, so nobody knows what you installed")
        return cast("dict[str, JsonObject]", entries)

    def add(self, name: str, content_hash: str, source: str) -> None:
        pins = {**self.read(), name: {"hash": content_hash, "source": source}}
        write_atomically(self._path, json.dumps(dict(sorted(pins.items())), indent=2) + "\n")


def hash_skill(folder: Path) -> str:
    """The hash of the names and contents of all files of a skill; SkillMistake if one of them is no plain file."""
    digest, total = hashlib.sha256(), 0
    for path in list_files(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            raise SkillMistake("link", f"{name} is a link, or no file")
        total += path.stat().st_size
        if total > MOST_FOLDER_BYTES:
            raise SkillMistake("too big", f"its files are larger than {MOST_FOLDER_BYTES // 1024 // 1024} MB")
        with path.open("rb") as file:
            digest.update(
                f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode(errors="surrogateescape")
            )
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class RefusedSkill:
    """A folder whose SKILL.md is not used, and why."""

    folder: Path
    reason: SkillMistake


@dataclass(frozen=True, slots=True)
class _LoadedSkill:
    version: tuple[object, ...]
    skill: SkillFile | None
    reason: SkillMistake | None = None


class SkillFolder:
    """Rereads what changed on each call, so that an edit applies to the next message. Logs a refused file once.

    Skills lie in the folder itself or one level below, where it holds checkouts of collections.
    """

    def __init__(self, folder: Path, pins: SkillPins) -> None:
        self.folder, self.pins = folder, pins
        self._loaded: dict[Path, _LoadedSkill] = {}

    @classmethod
    def open_home(cls, home: Home) -> SkillFolder:
        return cls(home.skills, SkillPins(home.skill_pins_file))

    def skills(self) -> list[SkillFile]:
        """All skills in use, by name."""
        self._refresh()
        found = (loaded.skill for loaded in self._loaded.values() if loaded.skill is not None)
        return sorted(found, key=lambda skill: skill.name)

    def refused(self) -> list[RefusedSkill]:
        self._refresh()
        broken = ((folder, loaded.reason) for folder, loaded in self._loaded.items())
        return [RefusedSkill(folder, reason) for folder, reason in broken if reason is not None]

    def usable(self, tools: Collection[str]) -> list[Playbook]:
        """The skills as playbooks, without those whose tools are missing."""
        found = map(_to_playbook, self.skills())
        return [playbook for playbook in found if playbook.is_usable(tools)]

    def read(self, name: str, file: str | None = None) -> str:
        """The instructions of a skill in use, or the text of one of its files; SkillMistake if there is none."""
        skill = self.find(name)
        if file is None or file == FILE_NAME:
            return skill.body
        if file not in self.resources(skill):
            raise SkillMistake("unreadable", f"The skill {name} has no file {file}")
        return read_text(skill.folder / file, skill.folder, self.folder)

    def find(self, name: str) -> SkillFile:
        skill = next((skill for skill in self.skills() if skill.name == name), None)
        if skill is None:
            raise SkillMistake("unreadable", f"There is no skill {name}")
        return skill

    def resources(self, skill: SkillFile) -> list[str]:
        """The other files of a skill, by their paths below its folder."""
        try:
            paths = [path.relative_to(skill.folder).as_posix() for path in list_files(skill.folder)]
        except SkillMistake:
            return []
        return [path for path in paths if path != FILE_NAME]

    def _refresh(self) -> None:
        folders = self._find_folders()
        for gone in self._loaded.keys() - set(folders):
            del self._loaded[gone]
        if not folders:
            return
        try:
            pins, damage = self.pins.read(), None
        except SkillMistake as mistake:
            pins, damage = dict[str, JsonObject](), mistake
        first: dict[str, Path] = {}
        for folder in folders:
            pin = pins.get(folder.name) if folder.parent == self.folder else None
            other = first.setdefault(folder.name, folder)
            expected = None if pin is None else str(pin.get("hash"))
            version = (*_file_states(folder, whole=pin is not None), expected, other, damage and str(damage))
            known = self._loaded.get(folder)
            if known is None or known.version != version:
                self._loaded[folder] = self._read(folder, version, expected, damage)

    def _read(
        self, folder: Path, version: tuple[object, ...], expected: str | None, damage: SkillMistake | None
    ) -> _LoadedSkill:
        try:
            if damage is not None:
                raise damage
            if (other := version[-2]) != folder:
                raise SkillMistake("name taken", f"{other} has the same name")
            if expected is not None and hash_skill(folder) != expected:
                raise SkillMistake(
                    "changed", f"its files are not those you installed; see annabelle skills accept {folder.name}"
                )
            return _LoadedSkill(version, read_skill(folder, self.folder))
        except SkillMistake as mistake:
            reason = mistake
        except OSError as error:
            reason = SkillMistake("unreadable", f"it cannot be read: {error.strerror}")
        _log.warning("The skill %s is not used: %s", folder.name, reason, extra=SHOWN_IN_CHAT)
        return _LoadedSkill(version, None, reason)

    def _find_folders(self) -> list[Path]:
        """The folders with a SKILL.md: first those in the folder itself, then those in its collections."""
        found, nested = list[Path](), list[Path]()
        for entry in _list_folders(self.folder):
            if os.path.lexists(entry / FILE_NAME):
                found.append(entry)
            elif not entry.is_symlink():
                nested += [inner for inner in _list_folders(entry) if os.path.lexists(inner / FILE_NAME)]
        return [*found, *nested][:_MOST_SKILLS]


def _list_folders(folder: Path) -> list[Path]:
    """The folders in a folder, without hidden ones such as that of git; none where it is missing."""
    try:
        with os.scandir(folder) as entries:
            first = [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
        return sorted(folder / entry.name for entry in first if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []


def _file_states(folder: Path, *, whole: bool) -> Iterator[_FileState]:
    """Of the SKILL.md; of a pinned skill of all files, because a change of any of them switches it off."""
    try:
        paths = list(list_files(folder)) if whole else [folder / FILE_NAME]
    except SkillMistake:
        paths = [folder / FILE_NAME]
    for path in paths:
        try:
            # That of a link's target: it is what is read.
            state = path.stat()
        except OSError:
            yield str(path), 0, 0, 0
        else:
            yield str(path), state.st_ctime_ns, state.st_size, state.st_ino


def _to_playbook(skill: SkillFile) -> Playbook:
    return Playbook(
        name=skill.name,
        instructions=skill.body,
        keywords=skill.keywords,
        required_tools=skill.tools,
        priority=skill.priority,
        description=skill.description,
        from_skill=True,
    )
