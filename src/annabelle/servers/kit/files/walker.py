"""Opens files one path component at a time without following links, and explains file system errors."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, StorageTrouble
from annabelle.servers.kit.files.config import Identity
from annabelle.servers.kit.files.paths import PathResolver, ResolvedPath, other_spelling


def explain_os_error(error: OSError, shown: str) -> AnnabelleError:
    """The error for the caller. It names the path as given, never the real one."""
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{shown} does not exist.", hint="filer_list_files shows what is there.")
        case errno.EEXIST:
            return Conflict(f"{shown} already exists.")
        case errno.EISDIR:
            return Conflict(f"{shown} is a folder, not a file.", hint="filer_list_files shows what is in it.")
        case errno.ENOTDIR:
            return Conflict(f"A part of {shown} is a file, not a folder.")
        case errno.ENOTEMPTY:
            return Conflict(f"{shown} is a folder that is not empty.")
        case errno.ELOOP | errno.EMLINK:
            return link_error(shown)
        case errno.EACCES | errno.EPERM:
            return NotAllowed(f"The operating system does not permit this on {shown}.")
        case errno.EROFS:
            return NotAllowed(f"{shown} is on a disk that can only be read.")
        case errno.ENAMETOOLONG:
            return InvalidArguments(f"The name {shown[:80]}… is too long for the disk.", field="path")
        case errno.EINVAL | errno.EILSEQ:
            return InvalidArguments(f"The disk does not accept the name {shown}.", field="path")
        case errno.ENOSPC | errno.EDQUOT:
            return StorageTrouble(
                f"The disk is full; {shown} was not changed.", hint="Free some space, then try again."
            )
        case errno.EFBIG:
            return StorageTrouble(f"{shown} would be larger than the disk or its limits allow; it was not changed.")
        case _:
            return StorageTrouble(f"{shown} could not be used: {error.strerror or 'input/output error'}.")


def link_error(shown: str) -> NotAllowed:
    return NotAllowed(
        f"{shown} is, or leads through, a symbolic link; links are not followed.",
        hint="Use the path of the real file.",
    )


def not_a_file_error(shown: str, mode: int) -> AnnabelleError:
    """Why something that exists cannot be used as a file."""
    if stat.S_ISLNK(mode):
        return link_error(shown)
    if stat.S_ISDIR(mode):
        return Conflict(f"{shown} is a folder, not a file.", hint="filer_list_files shows what is in it.")
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    return Conflict(f"{shown} is {kind}, not a file.")


def hard_link_error(shown: str) -> NotAllowed:
    return NotAllowed(
        f"{shown} has a second name somewhere (a hard link), so it may be a file from outside.",
        hint="Replace it by a copy of its own to work with it.",
    )


# O_PATH needs no read permission on the folders above; systems without it have to read them.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PathWalker:
    """Opens spots. One per operation: it remembers what the forbidden places are for that long."""

    def __init__(self, places: PathResolver) -> None:
        self.places = places
        self._forbidden = places.forbidden.identities()

    @contextlib.contextmanager
    def open_parent(self, spot: ResolvedPath, *, make: bool = False) -> Generator[int]:
        """The folder that holds the spot, as a descriptor. With `make`, missing folders below the root are made."""
        if spot.root.workspace and not spot.names:
            raise not_a_file_error(spot.shown, stat.S_IFDIR)  # what holds the workspace is not the filer's
        with _closing(self._walk(spot, spot.path.parts[1:-1], make)) as held:
            yield held

    @contextlib.contextmanager
    def open_folder(self, spot: ResolvedPath, *, make: bool = False) -> Generator[int]:
        """The folder at the spot itself, as a descriptor."""
        with _closing(self._walk(spot, spot.path.parts[1:], make)) as held:
            yield held

    @contextlib.contextmanager
    def open_readable_folder(self, spot: ResolvedPath) -> Generator[int]:
        """The folder at the spot, open for listing."""
        with self.open_folder(spot) as folder, _closing(os.open(".", _READ_FOLDER, dir_fd=folder)) as held:
            yield held

    @contextlib.contextmanager
    def open_child_folder(self, folder: int, spot: ResolvedPath) -> Generator[int]:
        """A folder found while listing, open for listing; the spot tells where it is."""
        with _closing(os.open(spot.name, _READ_FOLDER, dir_fd=folder)) as held:
            self._refuse_forbidden(spot, os.fstat(held))
            yield held

    def status(self, folder: int, spot: ResolvedPath) -> tuple[str, os.stat_result]:
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

    def child_status(self, folder: int, spot: ResolvedPath) -> os.stat_result:
        """The status of something found while listing; its name was not looked at before."""
        if self.places.forbids(spot):
            raise NotAllowed(f"{spot.shown} is a protected place.", hint="No grant can open it.")
        return self.status(folder, spot)[1]

    def is_absent(self, folder: int, spot: ResolvedPath) -> bool:
        try:
            self.status(folder, spot)
        except FileNotFoundError:
            return True
        return False

    @contextlib.contextmanager
    def open_file(self, folder: int, spot: ResolvedPath) -> Generator[tuple[int, os.stat_result]]:
        """A regular file, open for reading, with what is known of it. Never waits on a pipe, never opens a device."""
        name, status = self.status(folder, spot)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_file_error(spot.shown, status.st_mode)
        with _closing(os.open(name, _READ_FILE, dir_fd=folder)) as held:
            status = os.fstat(held)
            if not stat.S_ISREG(status.st_mode):
                raise not_a_file_error(spot.shown, status.st_mode)
            self._refuse_forbidden(spot, status)
            if status.st_nlink > 1:
                raise hard_link_error(spot.shown)
            yield held, status

    def _walk(self, spot: ResolvedPath, names: tuple[str, ...], make: bool) -> int:
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

    def _step(self, held: int, name: str, spot: ResolvedPath, *, make: bool) -> int:
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
                        raise link_error(spot.shown) from error
            raise

    def _refuse_forbidden(self, spot: ResolvedPath, status: os.stat_result) -> None:
        """By what it is. By name, a spot was looked at when it was found."""
        identity: Identity = (status.st_dev, status.st_ino)
        if identity in self._forbidden:
            raise NotAllowed(f"{spot.shown} is in a protected place.", hint="No grant can open it.")


@contextlib.contextmanager
def _closing(descriptor: int) -> Generator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
