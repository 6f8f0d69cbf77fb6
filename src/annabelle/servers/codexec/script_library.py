"""Saved scripts on disk, one file each, and search in them."""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from annabelle.core.errors import InvalidArguments, NotFound, StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.servers.codexec.languages import Language

_NAME = re.compile(r"\w[\w .-]*", re.UNICODE)
_MAX_NAME_BYTES = 150


class Script(BaseModel):
    """Content of a script file. Unknown fields are ignored: a newer version may have added them."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    language: Language
    code: str
    tags: list[str] = []
    packages: list[str] = []
    created: datetime
    updated: datetime
    runs: int = 0
    last_run: datetime | None = None
    last_exit_code: int | None = None

    def same_content(self, other: Script) -> bool:
        own = (self.description, self.language, self.code, self.tags, self.packages)
        return own == (other.description, other.language, other.code, other.tags, other.packages)


def check_script_name(name: str) -> str:
    """Normalize and check a name, which must be a valid file name everywhere."""
    wanted = unicodedata.normalize("NFC", name).strip()
    if _NAME.fullmatch(wanted) is None or wanted.endswith(".") or len(wanted.encode()) > _MAX_NAME_BYTES:
        raise InvalidArguments(
            f"{wanted[:100]!r} can not be the name of a script.",
            hint="Use letters, digits, spaces, dots, - and _; begin with a letter or digit.",
            field="name",
        )
    return wanted


_log = logging.getLogger(__name__)
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class ScriptListing:
    """All readable scripts by name, and the names of damaged files."""

    scripts: tuple[Script, ...]
    damaged: tuple[str, ...]


class ScriptLibrary:
    """The folder of scripts. Names are case-insensitive, as on some disks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def get(self, name: str) -> Script:
        script = self._read(self._file(name))
        if script is None:
            raise NotFound(f"There is no script called {name!r}.", hint="list_scripts shows all of them.", field="name")
        return script

    def get_or_none(self, name: str) -> Script | None:
        """The script, or None if it is missing or damaged."""
        try:
            return self._read(self._file(name))
        except StorageTrouble:
            return None

    def read_bytes(self, name: str) -> bytes | None:
        """Content of its file, damaged or not; None if there is none."""
        try:
            return self._file(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageTrouble(f"The script {name!r} can not be read: {error.strerror}.") from error

    def load_all(self) -> ScriptListing:
        scripts: list[Script] = []
        damaged: list[str] = []
        for file in sorted(self._folder.glob(f"*{_SUFFIX}")) if self._folder.is_dir() else ():
            try:
                script = self._read(file)
            except StorageTrouble:
                damaged.append(file.name.removesuffix(_SUFFIX))
                continue
            if script is not None:
                scripts.append(script)
        return ScriptListing(tuple(scripts), tuple(damaged))

    def save(self, script: Script) -> None:
        with self._lock:
            self._write(script)

    def update(self, name: str, change: Callable[[Script], Script]) -> None:
        """Rewrite a script if it still exists. The lock keeps concurrent changes from being lost."""
        with self._lock:
            script = self._read(self._file(name))
            if script is not None:
                self._write(change(script))

    def remove(self, name: str) -> None:
        """Remove a script, damaged or not. A missing one is fine."""
        with self._lock:
            try:
                self._file(name).unlink(missing_ok=True)
            except OSError as error:
                raise StorageTrouble(f"The script {name!r} could not be removed: {error.strerror}.") from error

    def _write(self, script: Script) -> None:
        try:
            write_atomically(self._file(script.name), script.model_dump_json(indent=1))
        except OSError as error:
            raise StorageTrouble(
                f"The script {script.name!r} could not be kept: {error.strerror}.", hint="Free some space on the disk."
            ) from error

    def _read(self, file: Path) -> Script | None:
        try:
            return Script.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            _log.warning("the script %s can not be read: %s", file.name, type(error).__name__)
            raise StorageTrouble(
                f"The script {file.name.removesuffix(_SUFFIX)!r} is damaged and can not be read.",
                hint="Save it again with save_script, or remove it with delete_script.",
            ) from error

    def _file(self, name: str) -> Path:
        return self._folder / f"{name.casefold()}{_SUFFIX}"


_WORD = re.compile(r"\w+")
_WEIGHTS = (8, 5, 3, 1)
"""Weights of a word in the name, a tag, the description and the code."""


def search_scripts(scripts: Iterable[Script], query: str) -> list[Script]:
    """Scripts that contain every word of the query, best first."""
    words = [word.casefold() for word in _WORD.findall(query)] or [query.strip().casefold()]
    scored = [(_score_script(script, words), script) for script in scripts]
    best_first = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].name.casefold()))
    return [script for _, script in best_first]


def _score_script(script: Script, words: list[str]) -> int:
    places = [script.name, " ".join(script.tags), script.description, script.code]
    folded = [place.casefold() for place in places]
    total = 0
    for word in words:
        score = sum(weight for weight, place in zip(_WEIGHTS, folded, strict=True) if word in place)
        if not score:
            return 0
        total += score
    return total
