"""The playbooks of a home: read once, looked at again when a file changed, found by the words of a message (PLB-02)."""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from annabelle.skills.playbook import Playbook
from annabelle.skills.reading import PlaybookMistake, read_playbook

_log = logging.getLogger(__name__)
MOST_MATCHES: Final = 3
_MOST_FILES = 200
_LOOKED_AT_CHARS = 20_000
"""Of a message: who pastes a book says at its beginning what is to be done with it."""
_WORD = re.compile(r"\w+")

_Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A file as it was read; without a playbook when it is broken."""

    version: _Version
    playbook: Playbook | None
    phrases: tuple[str, ...] = ()


class PlaybookFolder:
    """Each call looks whether a file came, went or changed, which takes a tenth of a millisecond; only those are read.

    So an edit holds from the next message on. A broken file is named in the log once, and the others work.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _Kept] = {}
        self._missing = False

    def matching(self, text: str) -> tuple[Playbook, ...]:
        """Those with a keyword in the message, as whole words in any case; by priority, then by name, at most three."""
        self._refresh()
        words = _spaced(text[:_LOOKED_AT_CHARS])
        found = [
            kept.playbook
            for kept in self._files.values()
            if kept.playbook is not None and any(phrase in words for phrase in kept.phrases)
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

    def _read(self, name: str, version: _Version) -> _Kept:
        try:
            if not (self._folder / name).is_file():
                raise PlaybookMistake("it is no file")  # a pipe would be waited for, and the turn with it
            playbook = read_playbook(self._folder / name)
        except PlaybookMistake as mistake:
            _log.warning("the playbook %s is passed over: %s", name, mistake)
        except OSError as error:
            _log.warning("the playbook %s is passed over: %s", name, error.strerror)
        else:
            phrases = (_spaced(keyword) for keyword in playbook.keywords)
            return _Kept(version, playbook, tuple(phrase for phrase in phrases if phrase.strip()))
        return _Kept(version, None)


def _version(entry: os.DirEntry[str]) -> _Version | None:
    try:
        state = entry.stat()
    except OSError:
        return None  # it went while the folder was read
    return state.st_mtime_ns, state.st_size, state.st_ino


def _spaced(text: str) -> str:
    """The words alone, each between blanks: a phrase is then found as whole words by a plain search."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
