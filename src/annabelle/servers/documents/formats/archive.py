"""What is in an archive, without taking anything out of it."""

from __future__ import annotations

import io
import tarfile
import zipfile

from pydantic import BaseModel

MAX_LISTED = 1000
_MAX_READ = 20_000


class Member(BaseModel):
    """One entry of an archive."""

    name: str
    size: int
    kind: str
    modified: str | None = None
    warning: str | None = None


class Contents(BaseModel):
    """What an archive says it has in it."""

    members: list[Member]
    count: int
    size: int
    complete: bool = True


def contents(data: bytes, kind: str) -> Contents:
    """The entries of a zip or tar archive, as they are named there."""
    return _zip(data) if kind == "zip" else _tar(data)


def _zip(data: bytes) -> Contents:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    listed = [
        Member(
            name=_name(member.filename),
            size=member.file_size,
            kind="folder" if member.is_dir() else "file",
            modified="{:04d}-{:02d}-{:02d} {:02d}:{:02d}".format(*member.date_time),
            warning=_warning(member.filename, locked=bool(member.flag_bits & 0x1)),
        )
        for member in members[:MAX_LISTED]
    ]
    return Contents(members=listed, count=len(members), size=sum(member.file_size for member in members))


def _tar(data: bytes) -> Contents:
    listed: list[Member] = []
    count = size = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        for member in archive:
            count, size = count + 1, size + member.size
            if len(listed) < MAX_LISTED:
                kind = "folder" if member.isdir() else "file" if member.isreg() else "link or device"
                listed.append(
                    Member(
                        name=_name(member.name), size=member.size, kind=kind,
                        warning=_warning(member.name, locked=False, link=member.islnk() or member.issym()),
                    )
                )  # fmt: skip
            if count >= _MAX_READ:
                return Contents(members=listed, count=count, size=size, complete=False)
    return Contents(members=listed, count=count, size=size)


def _name(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:300]


def _warning(name: str, *, locked: bool, link: bool = False) -> str | None:
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
        return "leads outside of the archive"
    return "needs a password" if locked else "a link" if link else None
