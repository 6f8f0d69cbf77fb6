"""Walks to a spot one name at a time, holding each folder open, so that no link is ever followed.

A path checked as text and opened later can be swapped for a link in between. Here every step opens a name inside the
folder already held, with O_NOFOLLOW, and each folder is compared with the forbidden ones by what it is, not by name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator

from annabelle.core.errors import NotAllowed
from annabelle.servers.kit.files.forbidden import Identity
from annabelle.servers.kit.files.places import Places, Spot
from annabelle.servers.kit.files.spelling import other_spelling
from annabelle.servers.kit.files.trouble import has_other_names, is_link, not_a_file

# O_PATH needs no read permission on the folders above; systems without it have to read them.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Walker:
    """Opens spots. One per operation: it remembers what the forbidden places are for that long."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._forbidden = places.forbidden.identities()

    @contextlib.contextmanager
    def folder_of(self, spot: Spot, *, make: bool = False) -> Generator[int]:
        """The folder that holds the spot, as a descriptor. With `make`, missing folders below the root are made."""
        if spot.root.workspace and not spot.names:
            raise not_a_file(spot.shown, stat.S_IFDIR)  # what holds the workspace is not the filer's
        with contextlib.closing(_Held(self._walk(spot, spot.path.parts[1:-1], make))) as held:
            yield held.descriptor

    @contextlib.contextmanager
    def folder(self, spot: Spot, *, make: bool = False) -> Generator[int]:
        """The folder at the spot itself, as a descriptor."""
        with contextlib.closing(_Held(self._walk(spot, spot.path.parts[1:], make))) as held:
            yield held.descriptor

    @contextlib.contextmanager
    def readable_folder(self, spot: Spot) -> Generator[int]:
        """The folder at the spot, open for listing."""
        with (
            self.folder(spot) as folder,
            contextlib.closing(_Held(os.open(".", _READ_FOLDER, dir_fd=folder))) as held,
        ):
            yield held.descriptor

    @contextlib.contextmanager
    def child_folder(self, folder: int, spot: Spot) -> Generator[int]:
        """A folder found while listing, open for listing; the spot tells where it is."""
        with contextlib.closing(_Held(os.open(spot.name, _READ_FOLDER, dir_fd=folder))) as held:
            self._refuse_forbidden(spot, os.fstat(held.descriptor))
            yield held.descriptor

    def status(self, folder: int, spot: Spot) -> tuple[str, os.stat_result]:
        """What the spot is, and under which spelling it is stored; FileNotFoundError when it is not there."""
        try:
            name, status = spot.name, os.stat(spot.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            other = other_spelling(spot.name)
            if other is None:
                raise
            name, status = other, os.stat(other, dir_fd=folder, follow_symlinks=False)
        self._refuse_forbidden(spot, status)
        return name, status

    def child(self, folder: int, spot: Spot) -> os.stat_result:
        """The status of something found while listing; its name was not looked at before."""
        if self._places.forbids(spot):
            raise NotAllowed(f"{spot.shown} is a protected place.", hint="No grant can open it.")
        return self.status(folder, spot)[1]

    def absent(self, folder: int, spot: Spot) -> bool:
        try:
            self.status(folder, spot)
        except FileNotFoundError:
            return True
        return False

    @contextlib.contextmanager
    def file(self, folder: int, spot: Spot) -> Generator[tuple[int, os.stat_result]]:
        """A regular file, open for reading, with what is known of it. Never waits on a pipe, never opens a device."""
        name, status = self.status(folder, spot)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_file(spot.shown, status.st_mode)
        with contextlib.closing(_Held(os.open(name, _READ_FILE, dir_fd=folder))) as held:
            status = os.fstat(held.descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise not_a_file(spot.shown, status.st_mode)
            self._refuse_forbidden(spot, status)
            if status.st_nlink > 1:
                raise has_other_names(spot.shown)
            yield held.descriptor, status

    def _walk(self, spot: Spot, names: tuple[str, ...], make: bool) -> int:
        above = len(spot.root.path.parts) - 1
        held = os.open("/", _STEP)
        try:
            for depth, name in enumerate(names, start=1):
                deeper = self._step(held, name, spot, make=make and depth > above)
                os.close(held)
                held = deeper
                if depth > above or not spot.root.workspace:
                    self._refuse_forbidden(spot, os.fstat(held))
        except BaseException:
            os.close(held)
            raise
        return held

    def _step(self, held: int, name: str, spot: Spot, *, make: bool) -> int:
        try:
            return os.open(name, _STEP, dir_fd=held)
        except FileNotFoundError:
            other = other_spelling(name)
            if other is not None:
                with contextlib.suppress(FileNotFoundError):
                    return os.open(other, _STEP, dir_fd=held)
            if not make:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=held)
            return os.open(name, _STEP, dir_fd=held)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
                with contextlib.suppress(FileNotFoundError):
                    if stat.S_ISLNK(os.stat(name, dir_fd=held, follow_symlinks=False).st_mode):
                        raise is_link(spot.shown) from error
            raise

    def _refuse_forbidden(self, spot: Spot, status: os.stat_result) -> None:
        """By what it is. By name, a spot was looked at when it was found."""
        identity: Identity = (status.st_dev, status.st_ino)
        if identity in self._forbidden:
            raise NotAllowed(f"{spot.shown} is in a protected place.", hint="No grant can open it.")


class _Held:
    """A descriptor that is closed at the end of a `with`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        os.close(self.descriptor)
