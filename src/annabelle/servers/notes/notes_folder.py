"""The workspace's Notes/ folder. Files are replaced whole, backed up and trashed, under a lock across processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from annabelle.core.errors import Conflict, NotAllowed, StorageTrouble, TooLarge, Unavailable
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.kit.files.atomic_write import iter_chunks, make_stamp, rename_new, write_atomically_at
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.paths import BACKUPS, TRASH, PathResolver, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker
from annabelle.servers.kit.files.workspace import clean_name, work_on_files, write_numbered

T = TypeVar("T")

NOTES = ("Notes",)
LISTS = ("Notes", "Lists")
MAX_FILE_BYTES = 2_000_000
MAX_FILES = 5000
_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    path: str
    name: str
    text: str
    modified: datetime
    mode: int = 0o644


class LockedNotes:
    """Operations that are allowed while the lock is held."""

    def __init__(self, walker: PathWalker, stop: StopSign) -> None:
        self._walker, self._stop, self._workspace = walker, stop, walker.places.workspace

    def read_files(self, folder: tuple[str, ...]) -> list[MarkdownFile]:
        """The Markdown files of a folder, newest first. Unreadable files are left out."""
        target = ResolvedPath(self._workspace, folder)
        found: list[MarkdownFile] = []
        try:
            with self._walker.open_readable_folder(target) as held:
                for name in sorted(os.listdir(held))[:MAX_FILES]:
                    self._stop.check()
                    if name.endswith(".md") and not name.startswith("."):
                        with contextlib.suppress(OSError, NotAllowed, Conflict, TooLarge):
                            found.append(self._read(held, target.child(name)))
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda paper: paper.modified, reverse=True)

    def add(self, folder: tuple[str, ...], title: str, text: str) -> str:
        """Create a file named after its title, numbered if taken; returns the path."""
        target = ResolvedPath(self._workspace, folder)
        name = clean_name(re.sub(r"[/\\]+", "-", title) + ".md").removesuffix(".md") + ".md"
        spot = write_numbered(self._walker, target, name, _encode(target.child(name), text), self._stop)
        if spot is None:
            raise TooLarge(f"There are too many files called {name.removesuffix('.md')}.")
        return spot.shown

    def replace(self, paper: MarkdownFile, text: str) -> str:
        """Replace the text and keep the old one for some days; returns the backup's path."""
        spot = self._spot(paper)
        backup = ResolvedPath(self._workspace, (*BACKUPS.split("/"), make_stamp(), spot.name))
        with self._walker.open_parent(backup, make=True) as held:
            self._write(held, backup, paper.text, replace=False, mode=paper.mode)
        with self._walker.open_parent(spot) as held:
            self._write(held, spot, text, replace=True, mode=paper.mode)
        return backup.shown

    def discard(self, paper: MarkdownFile) -> str:
        """Move a file to the trash for some days; returns its path there."""
        spot = self._spot(paper)
        trash = ResolvedPath(self._workspace, (*TRASH.split("/"), make_stamp(), spot.name))
        with self._walker.open_parent(spot) as held, self._walker.open_parent(trash, make=True) as bin_folder:
            rename_new(held, spot.name, bin_folder, trash.name)
        return trash.shown

    def _spot(self, paper: MarkdownFile) -> ResolvedPath:
        return ResolvedPath(self._workspace, tuple(paper.path.split("/")))

    def _read(self, held: int, spot: ResolvedPath) -> MarkdownFile:
        with self._walker.open_file(held, spot) as (descriptor, status):
            if status.st_size > MAX_FILE_BYTES:
                raise TooLarge(f"{spot.shown} is too large for a note.")
            data = b"".join(iter_chunks(descriptor, self._stop))
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")  # an old file; Latin-1 loses nothing
        text = text.replace("\r\n", "\n")
        modified = datetime.fromtimestamp(status.st_mtime, UTC).replace(microsecond=0)
        return MarkdownFile(spot.shown, spot.name, text, modified, stat.S_IMODE(status.st_mode) & 0o777)

    def _write(self, held: int, spot: ResolvedPath, text: str, *, replace: bool, mode: int) -> None:
        write_atomically_at(self._walker, held, spot.name, [_encode(spot, text)], replace=replace, mode=mode)


def _encode(spot: ResolvedPath, text: str) -> bytes:
    data = text.encode(errors="replace")
    if len(data) > MAX_FILE_BYTES:
        raise TooLarge(f"{spot.shown} would have {len(data)} bytes; at most {MAX_FILE_BYTES} are kept in one file.")
    return data


class NotesFolder:
    """Runs one operation at a time on the notes."""

    def __init__(self, config: FilesConfig) -> None:
        self._places = PathResolver(config)
        self._lock_file = config.home.run / "notes.lock"
        self._lock = threading.Lock()

    async def run_locked(self, about: str, operation: Callable[[LockedNotes], T]) -> T:
        """Run an operation under the lock. `about` is what the caller named, for error messages."""

        def run_under_lock(walker: PathWalker, stop: StopSign) -> T:
            with self._hold_lock(stop):
                return operation(LockedNotes(walker, stop))

        return await in_thread(lambda stop: work_on_files(self._places, about, run_under_lock, stop))

    @contextlib.contextmanager
    def _hold_lock(self, stop: StopSign) -> Generator[None]:
        ends = time.monotonic() + _WAIT_SECONDS
        while not self._lock.acquire(timeout=_POLL_SECONDS):
            _check_deadline(ends, stop)
        try:
            try:
                self._lock_file.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise StorageTrouble(f"The notes can not be locked: {error.strerror}.") from error
            try:
                while not _try_lock(descriptor):
                    _check_deadline(ends, stop)
                    time.sleep(_POLL_SECONDS)
                yield
            finally:
                os.close(descriptor)
        finally:
            self._lock.release()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_deadline(ends: float, stop: StopSign) -> None:
    stop.check()
    if time.monotonic() > ends:
        raise Unavailable("The notes are busy with another change.", hint="Try again in a moment.")
