"""Gives a file its name only if nothing has that name yet, in one step of the file system."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

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
    """For file systems (some network ones) that can not rename without replacing: a second name, then one less."""
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
