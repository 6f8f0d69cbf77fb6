"""Writes a file aside and gives it its name when it is whole: a reader, or a crash, sees the old or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator, Iterable

from annabelle.core.messages import now
from annabelle.servers.kit import StopSign
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.layout import PART_PREFIX, TEMP
from annabelle.servers.kit.files.places import Root, Spot
from annabelle.servers.kit.files.rename import rename_new

CHUNK = 1_000_000
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(
    walker: Walker, workspace: Root, folder: int, name: str, chunks: Iterable[bytes], *, replace: bool, mode: int
) -> None:
    """Put `chunks` under `name` in `folder`. Without `replace`, a name that is taken raises FileExistsError."""
    with _part_folder(walker, workspace, folder) as beside:
        part = f"{PART_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
        descriptor = os.open(part, _NEW_FILE, 0o600, dir_fd=beside)
        try:
            try:
                for chunk in chunks:
                    _write_all(descriptor, chunk)
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if replace:
                os.replace(part, name, src_dir_fd=beside, dst_dir_fd=folder)
            else:
                rename_new(beside, part, folder, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=beside)
            raise


def chunks_of(descriptor: int, stop: StopSign) -> Generator[bytes]:
    """What an open file holds, in pieces, until the end or until the call is cancelled."""
    while chunk := os.read(descriptor, CHUNK):
        stop.check()
        yield chunk


def same_content(first: int, second: int, stop: StopSign) -> bool:
    """Whether two open files hold the same bytes, from where each stands."""
    left, right = chunks_of(first, stop), chunks_of(second, stop)
    return all(a == b for a, b in zip(left, right, strict=False)) and next(left, b"") == next(right, b"")


def stamp() -> str:
    """A name for one backup or one piece of trash: sorts by time, and never comes twice."""
    return f"{now():%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@contextlib.contextmanager
def _part_folder(walker: Walker, workspace: Root, folder: int) -> Generator[int]:
    """Unfinished files wait in temp/, where they are cleaned up; on another disk they must lie beside the target."""
    with walker.folder(Spot(workspace, (TEMP,)), make=True) as temp:
        same_disk = os.fstat(temp).st_dev == os.fstat(folder).st_dev
        yield temp if same_disk else folder


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
