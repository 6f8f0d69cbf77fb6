"""The scripts on disk: one file each, written whole or not at all. All methods block; call them in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from annabelle.core.errors import NotFound, StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.servers.codexec.scripts.script import Script

_log = logging.getLogger(__name__)
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Shelf:
    """All scripts that can be read, by name, and the names of files that can not."""

    scripts: tuple[Script, ...]
    damaged: tuple[str, ...]


class Library:
    """The folder of scripts. Names that differ in case only are the same script: not every disk tells them apart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def get(self, name: str) -> Script:
        script = self._read(self._file(name))
        if script is None:
            raise NotFound(f"There is no script called {name!r}.", hint="list_scripts shows all of them.", field="name")
        return script

    def whole(self, name: str) -> Script | None:
        """The script if it is there and can be read."""
        try:
            return self._read(self._file(name))
        except StorageTrouble:
            return None

    def raw(self, name: str) -> bytes | None:
        """What its file holds, damaged or not; None when there is none."""
        try:
            return self._file(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageTrouble(f"The script {name!r} can not be read: {error.strerror}.") from error

    def all(self) -> Shelf:
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
        return Shelf(tuple(scripts), tuple(damaged))

    def put(self, script: Script) -> None:
        with self._lock:
            self._write(script)

    def change(self, name: str, change: Callable[[Script], Script]) -> None:
        """Rewrite a script if it is still there; two changes at once both count."""
        with self._lock:
            script = self._read(self._file(name))
            if script is not None:
                self._write(change(script))

    def remove(self, name: str) -> None:
        """Take a script away, damaged or not; that it is gone already is no mistake."""
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
