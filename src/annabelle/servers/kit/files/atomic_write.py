"""Writes a file to a temporary name and renames it when complete."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import sys
from collections.abc import Generator, Iterable

from annabelle.core.messages import now
from annabelle.servers.kit import StopSign
from annabelle.servers.kit.files.paths import PART_PREFIX, TEMP, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker

_NO_REPLACE = {"linux": ("renameat2", 1), "darwin": ("renameatx_np", 4)}
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def rename_new(source_folder: int, source: str, target_folder: int, target: str) -> None:
    """Rename, or raise FileExistsError. Two at once: exactly one wins."""
    name, flag = _NO_REPLACE.get(sys.platform, ("", 0))
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is not None:
        if function(source_folder, os.fsencode(source), target_folder, os.fsencode(target), flag) == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED:
            raise OSError(number, os.strerror(number), target)
    _rename_by_link(source_folder, source, target_folder, target)


def _rename_by_link(source_folder: int, source: str, target_folder: int, target: str) -> None:
    """For file systems (some network ones) that cannot rename without replacing: link, then unlink."""
    try:
        os.link(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (*_UNSUPPORTED, errno.EPERM, errno.EMLINK):
            raise
        # No links either (FAT): the check and the rename are two steps here, and nothing better exists.
        try:
            os.stat(target, dir_fd=target_folder, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
    os.unlink(source, dir_fd=source_folder)


CHUNK = 1_000_000
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically_at(
    walker: PathWalker, folder: int, name: str, chunks: Iterable[bytes], *, replace: bool = False, mode: int = 0o644
) -> None:
    """Put `chunks` under `name` in `folder`. Without `replace`, a name that is taken raises FileExistsError."""
    with _part_folder(walker, folder) as beside:
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


def cut_chunks(data: bytes, stop: StopSign) -> Generator[bytes]:
    """Bytes in pieces, until the end or until the call is cancelled."""
    for start in range(0, len(data), CHUNK):
        stop.check()
        yield data[start : start + CHUNK]


def iter_chunks(descriptor: int, stop: StopSign) -> Generator[bytes]:
    """What an open file holds, in pieces, until the end or until the call is cancelled."""
    while chunk := os.read(descriptor, CHUNK):
        stop.check()
        yield chunk


def same_content(first: int, second: int, stop: StopSign) -> bool:
    """Whether two open files hold the same bytes, from where each stands."""
    left, right = iter_chunks(first, stop), iter_chunks(second, stop)
    return all(a == b for a, b in zip(left, right, strict=False)) and next(left, b"") == next(right, b"")


def make_stamp() -> str:
    """A name for one backup or one piece of trash: sorts by time, and never comes twice."""
    return f"{now():%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@contextlib.contextmanager
def _part_folder(walker: PathWalker, folder: int) -> Generator[int]:
    """Unfinished files wait in temp/, where they are cleaned up; on another disk they must lie beside the target."""
    with walker.open_folder(ResolvedPath(walker.places.workspace, (TEMP,)), make=True) as temp:
        same_disk = os.fstat(temp).st_dev == os.fstat(folder).st_dev
        yield temp if same_disk else folder


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
