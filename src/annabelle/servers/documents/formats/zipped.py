"""Guards what unpacks: a small file that claims to be huge, or has too much in it, is not opened."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from annabelle.core.errors import InvalidArguments, TooLarge
from annabelle.servers.documents.formats.base import Facts

MAX_UNPACKED = 200_000_000
MAX_MEMBER = 100_000_000
MAX_MEMBERS = 10_000
_MAX_RATIO = 300
_SMALL = 5_000_000

_CORE = {
    "title": "{http://purl.org/dc/elements/1.1/}title",
    "author": "{http://purl.org/dc/elements/1.1/}creator",
    "subject": "{http://purl.org/dc/elements/1.1/}subject",
    "created": "{http://purl.org/dc/terms/}created",
    "modified": "{http://purl.org/dc/terms/}modified",
}

if TYPE_CHECKING:
    from defusedxml.ElementTree import fromstring as _fromstring
else:
    _fromstring = defusedxml.ElementTree.fromstring


@contextmanager
def opened(data: bytes) -> Generator[zipfile.ZipFile]:
    """The archive, once its sizes were looked at. Nothing in it can be larger than it says there."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if len(members) > MAX_MEMBERS or total > MAX_UNPACKED:
            raise TooLarge(
                f"The file unpacks to {total} bytes in {len(members)} parts, which is too much.", field="path"
            )
        for member in members:
            swollen = member.file_size > _SMALL and member.file_size > _MAX_RATIO * max(1, member.compress_size)
            if member.file_size > MAX_MEMBER or swollen:
                raise TooLarge("The file unpacks to far more than it is, like a zip bomb.", field="path")
            if member.flag_bits & 0x1:
                raise InvalidArguments(
                    "The file is protected by a password.", hint="Ask for a copy without one.", field="path"
                )
        yield archive


def xml_of(archive: zipfile.ZipFile, name: str) -> Element | None:
    """A part as XML, without entities of its own; None when it is not there."""
    try:
        data = archive.read(name)
    except KeyError:
        return None
    try:
        return _fromstring(data, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise InvalidArguments(f"A part of the file ({name[:60]}) is broken or forged.", field="path") from error


def core_facts(archive: zipfile.ZipFile) -> Facts:
    """Title, author and times, where Office programs put them."""
    root = xml_of(archive, "docProps/core.xml")
    if root is None:
        return Facts()
    found = {name: (root.findtext(tag) or "").strip()[:300] or None for name, tag in _CORE.items()}
    return Facts.model_validate(found)
