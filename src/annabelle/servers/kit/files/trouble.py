"""One clear sentence for everything a file system can refuse."""

from __future__ import annotations

import errno
import stat

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, StorageTrouble


def explain(error: OSError, shown: str) -> AnnabelleError:
    """The error for whoever asked. Speaks of the path as they gave it, never of paths behind it."""
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
            return is_link(shown)
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


def is_link(shown: str) -> NotAllowed:
    return NotAllowed(
        f"{shown} is, or leads through, a symbolic link; links are not followed.",
        hint="Use the path of the real file.",
    )


def not_a_file(shown: str, mode: int) -> AnnabelleError:
    """Why something that is there can not be used as a file."""
    if stat.S_ISLNK(mode):
        return is_link(shown)
    if stat.S_ISDIR(mode):
        return Conflict(f"{shown} is a folder, not a file.", hint="filer_list_files shows what is in it.")
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    return Conflict(f"{shown} is {kind}, not a file.")


def has_other_names(shown: str) -> NotAllowed:
    return NotAllowed(
        f"{shown} has a second name somewhere (a hard link), so it may be a file from outside.",
        hint="Replace it by a copy of its own to work with it.",
    )
