"""The folder Notes/ of the workspace: files are read, replaced whole, kept as backups and put into the trash.

Each piece of work holds a lock from its first look to its last write, across threads and processes, so that of two
calls at once none undoes the other. What a person wrote in between is read anew every time.
"""

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
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.layout import BACKUPS, TRASH
from annabelle.servers.kit.files.parts import chunks_of, stamp, write_whole
from annabelle.servers.kit.files.places import Places, Spot
from annabelle.servers.kit.files.rename import rename_new
from annabelle.servers.kit.files.trouble import explain
from annabelle.servers.kit.files.workspace import clean_name, make_workspace

T = TypeVar("T")

NOTES = ("Notes",)
LISTS = ("Notes", "Lists")
MAX_FILE_BYTES = 2_000_000
MAX_FILES = 5000
_WAIT_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Paper:
    """A file and the text in it, as of now."""

    path: str
    name: str
    text: str
    modified: datetime
    mode: int = 0o644


class Hand:
    """What may be done while the shelf is held."""

    def __init__(self, places: Places, walker: Walker, stop: StopSign) -> None:
        self._places, self._walker, self._stop = places, walker, stop

    def papers(self, folder: tuple[str, ...]) -> list[Paper]:
        """Every Markdown file of a folder, the newest first. What can not be read is left out: it is not ours."""
        home = Spot(self._places.workspace, folder)
        found: list[Paper] = []
        try:
            with self._walker.readable_folder(home) as held:
                for name in sorted(os.listdir(held))[:MAX_FILES]:
                    self._stop.check()
                    if name.endswith(".md") and not name.startswith("."):
                        with contextlib.suppress(OSError, NotAllowed, Conflict, TooLarge):
                            found.append(self._read(held, home.child(name)))
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda paper: paper.modified, reverse=True)

    def add(self, folder: tuple[str, ...], title: str, text: str) -> str:
        """A new file named after its title; a name that is taken gets a number. The path."""
        home = Spot(self._places.workspace, folder)
        stem = clean_name(re.sub(r"[/\\]+", "-", title) + ".md").removesuffix(".md")
        with self._walker.folder(home, make=True) as held:
            for number in range(1, MAX_FILES):
                spot = home.child(f"{stem}.md" if number == 1 else f"{stem} ({number}).md")
                if self._walker.absent(held, spot):
                    with contextlib.suppress(FileExistsError):
                        self._write(held, spot, text, replace=False)
                        return spot.shown
        raise TooLarge(f"There are too many files called {stem}.")

    def replace(self, paper: Paper, text: str) -> str:
        """Put a new text in place of the old one, which is kept for some days. The path of the backup."""
        spot = self._spot(paper)
        backup = Spot(self._places.workspace, (*BACKUPS.split("/"), stamp(), spot.name))
        with self._walker.folder_of(backup, make=True) as held:
            self._write(held, backup, paper.text, replace=False, mode=paper.mode)
        with self._walker.folder_of(spot) as held:
            self._write(held, spot, text, replace=True, mode=paper.mode)
        return backup.shown

    def discard(self, paper: Paper) -> str:
        """Move a file into the trash, where it stays for some days. Its path there."""
        spot = self._spot(paper)
        trash = Spot(self._places.workspace, (*TRASH.split("/"), stamp(), spot.name))
        with self._walker.folder_of(spot) as held, self._walker.folder_of(trash, make=True) as bin_folder:
            rename_new(held, spot.name, bin_folder, trash.name)
        return trash.shown

    def _spot(self, paper: Paper) -> Spot:
        return Spot(self._places.workspace, tuple(paper.path.split("/")))

    def _read(self, held: int, spot: Spot) -> Paper:
        with self._walker.file(held, spot) as (descriptor, status):
            if status.st_size > MAX_FILE_BYTES:
                raise TooLarge(f"{spot.shown} is too large for a note.")
            data = b"".join(chunks_of(descriptor, self._stop))
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")  # an old file of a person's own: nothing of it is lost
        text = text.replace("\r\n", "\n")
        modified = datetime.fromtimestamp(status.st_mtime, UTC).replace(microsecond=0)
        return Paper(spot.shown, spot.name, text, modified, stat.S_IMODE(status.st_mode) & 0o777)

    def _write(self, held: int, spot: Spot, text: str, *, replace: bool, mode: int = 0o644) -> None:
        data = text.encode(errors="replace")
        if len(data) > MAX_FILE_BYTES:
            raise TooLarge(f"{spot.shown} would have {len(data)} bytes; at most {MAX_FILE_BYTES} are kept in one file.")
        write_whole(self._walker, self._places.workspace, held, spot.name, [data], replace=replace, mode=mode)


class Shelf:
    """Gives the hand to one piece of work at a time."""

    def __init__(self, config: FilesConfig) -> None:
        self._places = Places(config)
        self._lock_file = config.home.run / "notes.lock"
        self._lock = threading.Lock()

    async def perform(self, about: str, work: Callable[[Hand], T]) -> T:
        """Do a piece of work on the files. `about` is what the caller named, for the sentence of an error."""

        def inside(stop: StopSign) -> T:
            try:
                make_workspace(self._places.workspace.path)
                with self._held(stop):
                    return work(Hand(self._places, Walker(self._places), stop))
            except OSError as error:
                raise explain(error, about) from error

        return await in_thread(inside)

    @contextlib.contextmanager
    def _held(self, stop: StopSign) -> Generator[None]:
        ends = time.monotonic() + _WAIT_SECONDS
        while not self._lock.acquire(timeout=_LOOK_AGAIN_SECONDS):
            _patience(ends, stop)
        try:
            try:
                self._lock_file.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise StorageTrouble(f"The notes can not be locked: {error.strerror}.") from error
            try:
                while not _locked(descriptor):
                    _patience(ends, stop)
                    time.sleep(_LOOK_AGAIN_SECONDS)
                yield
            finally:
                os.close(descriptor)
        finally:
            self._lock.release()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _patience(ends: float, stop: StopSign) -> None:
    stop.check()
    if time.monotonic() > ends:
        raise Unavailable("The notes are busy with another change.", hint="Try again in a moment.")
