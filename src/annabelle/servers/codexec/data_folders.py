"""The server's own folders for runs, sessions and packages, and their cleanup after a crash."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import StorageTrouble


class ServerLock:
    """Random prefix of this server's folders, with a file lock held while the process lives."""

    def __init__(self, locks: Path) -> None:
        self._locks = locks
        self._held: int | None = None
        self.prefix = secrets.token_hex(4)

    def acquire(self) -> None:
        self._locks.mkdir(parents=True, exist_ok=True)
        while self._held is None:
            held = os.open(self._locks / self.prefix, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.fstat(held).st_nlink:
                self._held = held
            else:  # another server removed it as stale before it was locked
                os.close(held)

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            (self._locks / self.prefix).unlink(missing_ok=True)
            os.close(held)

    def forget_ended(self) -> set[str]:
        """Return the prefixes of running servers, and remove the lock files of the others."""
        running: set[str] = set()
        for file in self._locks.iterdir():
            if file.name == self.prefix or not _is_free(file):
                running.add(file.name)
            else:
                file.unlink(missing_ok=True)
        return running


def _is_free(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


_UNFIT = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Private folder of a run, with subfolders for code, work and packages."""

    root: Path

    @property
    def code_folder(self) -> Path:
        return self.root / "code"

    @property
    def work_folder(self) -> Path:
        return self.root / "work"

    @property
    def packages(self) -> Path:
        return self.root / "packages"

    def write_code(self, name: str, text: str) -> None:
        """Write a code file that is readable but not writable inside the sandbox."""
        file = self.code_folder / name
        file.write_bytes(text.encode())
        file.chmod(0o644)

    def remove(self) -> None:
        """Best effort: the next sweep removes the rest."""
        shutil.rmtree(self.root, ignore_errors=True)
        if self.root.exists():  # code may leave folders without permissions
            for place, _, _ in os.walk(self.root):
                with contextlib.suppress(OSError):
                    for name in os.listdir(place):
                        inner = Path(place, name)
                        if inner.is_dir() and not inner.is_symlink():
                            inner.chmod(0o700)
            shutil.rmtree(self.root, ignore_errors=True)


class CodeFolders:
    """Everything below `data/codexec`. All methods block; call them in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._server_lock = ServerLock(root / "servers")
        self._swept = False

    def new_run(self) -> RunFolder:
        """Create a private folder. The first call also removes what a crash has left."""
        try:
            self._sweep()
            folder = RunFolder(self._root / "runs" / f"{self._server_lock.prefix}-{secrets.token_hex(8)}")
            for place in (folder.code_folder, folder.work_folder, folder.packages / "python", folder.packages / "node"):
                place.mkdir(parents=True)
                place.chmod(0o755)
            folder.packages.chmod(0o755)
        except OSError as error:
            raise StorageTrouble(
                f"No folder for the code could be made: {error.strerror}.", hint="Free some space on the disk."
            ) from error
        return folder

    def environments(self) -> list[Path]:
        """All folders with packages: of agents, scripts and running sessions."""
        self._sweep()
        sessions = (run / "packages" for run in list_folder(self._root / "runs"))
        return [*list_folder(self._root / "packages"), *sessions]

    def is_lasting(self, environment: Path) -> bool:
        """Whether it stays until it is deleted. A session's environment is removed with the session."""
        return environment.parent == self._root / "packages"

    def agent_packages(self, agent: str) -> Path:
        return self._make_environment(self._root / "packages" / f"agent-{_file_name(agent)}")

    def script_packages(self, name: str, language: str, packages: list[str]) -> Path:
        """Packages of a script. Each list of packages has its own folder."""
        listed = hashlib.sha256("\n".join([language, *sorted(packages)]).encode()).hexdigest()[:12]
        return self._make_environment(self._root / "packages" / f"script-{_file_name(name)}-{listed}")

    def forget_script(self, name: str, but: Path | None = None) -> None:
        """Remove the packages of a script, except the folder `but`."""
        for folder in (self._root / "packages").glob(f"script-{_file_name(name)}-*"):
            if folder != but:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Release the lock, so that the next server may remove what is left."""
        self._server_lock.release()

    def _make_environment(self, folder: Path) -> Path:
        """Make it readable for every user, whatever this process's umask is."""
        for language in ("python", "node"):
            place = folder / language
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o755)
        folder.chmod(0o755)
        return folder

    def _sweep(self) -> None:
        """Once: remove the folders of servers that have ended without closing their sessions."""
        if self._swept:
            return
        self._server_lock.acquire()
        self._swept = True
        running = self._server_lock.forget_ended()
        for place in list_folder(self._root / "runs"):
            if place.name.partition("-")[0] not in running:
                RunFolder(place).remove()


def list_folder(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _file_name(name: str) -> str:
    """A readable prefix with a hash that makes it unique."""
    return f"{_UNFIT.sub('-', name.lower())[:30]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
