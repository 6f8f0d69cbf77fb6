"""The server's own folders: one for each run and session, packages for each agent, and their end."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import StorageTrouble

_RUN = re.compile(r"(\d+)-[0-9a-f]+")
_UNFIT = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A private place: the code goes into one folder, what it makes into another."""

    root: Path

    @property
    def code(self) -> Path:
        return self.root / "code"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def packages(self) -> Path:
        return self.root / "packages"

    def put(self, name: str, text: str) -> None:
        """A file of the code, readable by whoever runs it and writable by nobody inside."""
        file = self.code / name
        file.write_bytes(text.encode())
        file.chmod(0o644)

    def remove(self) -> None:
        """Best effort: what can not be removed now is removed by the next sweep."""
        shutil.rmtree(self.root, ignore_errors=True)
        if self.root.exists():  # code may leave folders nobody can enter
            for place, _, _ in os.walk(self.root):
                with contextlib.suppress(OSError):
                    for name in os.listdir(place):
                        inner = Path(place, name)
                        if inner.is_dir() and not inner.is_symlink():
                            inner.chmod(0o700)
            shutil.rmtree(self.root, ignore_errors=True)


class Folders:
    """Everything below `data/codexec`. All methods block; call them in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept = False

    def new_run(self) -> RunFolder:
        """A fresh private folder; the first one also clears away what a crash has left."""
        if not self._swept:
            self._swept = True
            self._sweep()
        folder = RunFolder(self._root / "runs" / f"{os.getpid()}-{secrets.token_hex(8)}")
        try:
            for place in (folder.code, folder.work, folder.packages / "python", folder.packages / "node"):
                place.mkdir(parents=True)
                place.chmod(0o755)
            folder.packages.chmod(0o755)
        except OSError as error:
            raise StorageTrouble(
                f"No folder for the code could be made: {error.strerror}.", hint="Free some space on the disk."
            ) from error
        return folder

    def of_agent(self, agent: str) -> Path:
        return self._made(self._root / "packages" / f"agent-{_file_name(agent)}")

    def of_script(self, name: str, packages: list[str]) -> Path:
        """Packages of a script; another list of packages is another folder."""
        listed = hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()[:12]
        return self._made(self._root / "packages" / f"script-{_file_name(name)}-{listed}")

    def forget_script(self, name: str) -> None:
        for folder in (self._root / "packages").glob(f"script-{_file_name(name)}-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _made(self, folder: Path) -> Path:
        """Open to whoever runs code, also where this process keeps its own files to itself."""
        for language in ("python", "node"):
            place = folder / language
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o755)
        folder.chmod(0o755)
        return folder

    def _sweep(self) -> None:
        runs = self._root / "runs"
        if not runs.is_dir():
            return
        for place in runs.iterdir():
            match = _RUN.fullmatch(place.name)
            if match is None or not _alive(int(match[1])):
                RunFolder(place).remove()


def _file_name(name: str) -> str:
    """A readable beginning, and enough of a hash that no two names meet."""
    return f"{_UNFIT.sub('-', name.lower())[:30]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True
