"""What a file system can refuse, in words."""

from __future__ import annotations

import errno
import os

import pytest

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, StorageTrouble
from annabelle.servers.kit.files.walker import explain_os_error


@pytest.mark.req("SRV-FIL")
@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOENT, NotFound, "does not exist"),
        (errno.EEXIST, Conflict, "already exists"),
        (errno.EISDIR, Conflict, "is a folder"),
        (errno.ENOTDIR, Conflict, "not a folder"),
        (errno.ENOTEMPTY, Conflict, "not empty"),
        (errno.ELOOP, NotAllowed, "links are not followed"),
        (errno.EACCES, NotAllowed, "does not permit"),
        (errno.EPERM, NotAllowed, "does not permit"),
        (errno.EROFS, NotAllowed, "only be read"),
        (errno.ENAMETOOLONG, InvalidArguments, "too long"),
        (errno.EINVAL, InvalidArguments, "does not accept"),
        (errno.ENOSPC, StorageTrouble, "disk is full"),
        (errno.EDQUOT, StorageTrouble, "disk is full"),
        (errno.EFBIG, StorageTrouble, "larger"),
        (errno.EIO, StorageTrouble, "could not be used"),
        (None, StorageTrouble, "could not be used"),
    ],
)
def test_each_refusal_is_one_sentence_about_the_path_as_given(
    number: int | None, kind: type[AnnabelleError], words: str
) -> None:
    error = OSError() if number is None else OSError(number, os.strerror(number), "/real/place/behind")
    explained = explain_os_error(error, "Notes/a.txt")
    assert type(explained) is kind
    assert words in explained.message
    assert "Notes/a.txt" in explained.message
    assert "/real/place" not in explained.message
