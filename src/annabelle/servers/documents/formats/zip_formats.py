"""Formats inside zip archives (OpenDocument, PowerPoint), protection from zip bombs, and archive listings."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from annabelle.core.errors import InvalidArguments, TooLarge
from annabelle.servers.documents.formats.base import (
    DocumentFacts,
    DocumentFormat,
    DocumentPart,
    DocumentTable,
    Row,
    SheetFormat,
    WantedParts,
    cut_cell,
)
from annabelle.servers.documents.questions import ArchiveMember, MembersAnswer

if TYPE_CHECKING:
    from defusedxml.ElementTree import fromstring as _fromstring
else:
    _fromstring = defusedxml.ElementTree.fromstring


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


@contextmanager
def open_checked_zip(data: bytes) -> Generator[zipfile.ZipFile]:
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


def read_xml(archive: zipfile.ZipFile, name: str) -> Element | None:
    """A part as XML, without entities of its own; None when it is not there."""
    try:
        data = archive.read(name)
    except KeyError:
        return None
    try:
        return _fromstring(data, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise InvalidArguments(f"A part of the file ({name[:60]}) is broken or forged.", field="path") from error


def read_core_facts(archive: zipfile.ZipFile) -> DocumentFacts:
    """Title, author and times, where Office programs put them."""
    root = read_xml(archive, "docProps/core.xml")
    if root is None:
        return DocumentFacts()
    found = {name: (root.findtext(tag) or "").strip()[:300] or None for name, tag in _CORE.items()}
    return DocumentFacts.model_validate(found)


_O = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_T = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_META = "{urn:oasis:names:tc:opendocument:xmlns:meta:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_MAX_REPEAT = 1000
_MAX_ROWS = 100_000


class OpenText(DocumentFormat):
    """A text, in the order it is written."""

    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        yield DocumentPart(1, "", "\n".join(_lines(_content(data))))

    def facts(self, data: bytes) -> DocumentFacts:
        return _read_facts(data)

    def tables(self, data: bytes) -> Iterator[DocumentTable]:
        for number, table in enumerate(_content(data).iter(f"{_TABLE}table"), start=1):
            yield DocumentTable(table.get(f"{_TABLE}name") or f"table {number}", _rows(table))


class OpenSheets(SheetFormat, OpenText):
    def facts(self, data: bytes) -> DocumentFacts:
        names = [table.label for table in self.tables(data)]
        return _read_facts(data).model_copy(update={"parts": len(names), "sheets": names[:200]})


class OpenSlides(OpenText):
    """A presentation."""

    part = "slide"

    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        for number, page in enumerate(_content(data).iter(f"{_DRAW}page"), start=1):
            if wanted.has(number):
                yield DocumentPart(number, f"slide {number}", "\n".join(_lines(page)))

    def facts(self, data: bytes) -> DocumentFacts:
        count = sum(1 for _ in _content(data).iter(f"{_DRAW}page"))
        return _read_facts(data).model_copy(update={"parts": count})


def _content(data: bytes) -> Element:
    with open_checked_zip(data) as archive:
        root = read_xml(archive, "content.xml")
    if root is None:
        raise InvalidArguments("The file has no content in it.", field="path")
    return root


def _read_facts(data: bytes) -> DocumentFacts:
    with open_checked_zip(data) as archive:
        root = read_xml(archive, "meta.xml")
    meta = None if root is None else root.find(f"{_O}meta")
    if meta is None:
        return DocumentFacts()

    def find_text(tag: str) -> str | None:
        return (meta.findtext(tag) or "").strip()[:300] or None

    return DocumentFacts(
        title=find_text(f"{_DC}title"),
        author=find_text(f"{_META}initial-creator") or find_text(f"{_DC}creator"),
        subject=find_text(f"{_DC}subject"),
        created=find_text(f"{_META}creation-date"),
        modified=find_text(f"{_DC}date"),
    )


def _lines(root: Element) -> Iterator[str]:
    for element in root.iter():
        if element.tag == f"{_T}h":
            level = element.get(f"{_T}outline-level") or "1"
            yield f"{'#' * (int(level) if level in '123456' else 6)} {_join_text(element)}"
        elif element.tag == f"{_T}p":
            yield _join_text(element)


def _join_text(element: Element) -> str:
    pieces: list[str] = [element.text or ""]
    for inner in element:
        if inner.tag == f"{_T}s":
            pieces.append(" " * _count(inner.get(f"{_T}c")))
        elif inner.tag in (f"{_T}tab", f"{_T}line-break"):
            pieces.append(" ")
        else:
            pieces.append(_join_text(inner))
        pieces.append(inner.tail or "")
    return "".join(pieces)


def _rows(table: Element) -> Iterator[Row]:
    """Repeated rows and cells are written once in the file; a million empty ones are left out."""
    given = 0
    for row in table.iter(f"{_TABLE}table-row"):
        cells: Row = []
        for cell in row:
            if cell.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                continue
            text = cut_cell("\n".join(_join_text(line) for line in cell.iter(f"{_T}p"))) or None
            repeat = _count(cell.get(f"{_TABLE}number-columns-repeated"))
            cells += [text] * (repeat if text is not None or repeat < 50 else 0)
        filled = any(cell is not None for cell in cells)
        for _ in range(_count(row.get(f"{_TABLE}number-rows-repeated")) if filled else 1):
            if given >= _MAX_ROWS:
                return
            given += 1
            yield list(cells)


def _count(text: str | None) -> int:
    return min(int(text), _MAX_REPEAT) if text and text.isascii() and text.isdecimal() and len(text) < 9 else 1


TEXT, SHEETS, SLIDES = OpenText(), OpenSheets(), OpenSlides()


_SLIDE = re.compile(r"ppt/slides/slide(\d{1,6})\.xml")
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


class PowerPointFormat(DocumentFormat):
    part = "slide"

    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        with open_checked_zip(data) as archive:
            for number, name in enumerate(_slides(archive), start=1):
                if wanted.has(number):
                    text = _slide_text(read_xml(archive, name))
                    notes = _slide_text(read_xml(archive, name.replace("slides/slide", "notesSlides/notesSlide")))
                    yield DocumentPart(number, f"slide {number}", f"{text}\n\nNotes: {notes}" if notes else text)

    def facts(self, data: bytes) -> DocumentFacts:
        with open_checked_zip(data) as archive:
            return read_core_facts(archive).model_copy(update={"parts": len(_slides(archive))})


def _slides(archive: zipfile.ZipFile) -> list[str]:
    """By the numbers of their files, which follow the order of the slides unless somebody moved them."""
    found = ((int(match[1]), name) for name in archive.namelist() if (match := _SLIDE.fullmatch(name)))
    return [name for _, name in sorted(found)]


def _slide_text(root: Element | None) -> str:
    if root is None:
        return ""
    lines = ("".join(run.text or "" for run in line.iter(f"{_A}t")) for line in root.iter(f"{_A}p"))
    return "\n".join(line for line in lines if line.strip())


POWERPOINT = PowerPointFormat()


MAX_LISTED = 1000
_MAX_READ = 20_000


def list_archive_contents(data: bytes, kind: str) -> MembersAnswer:
    """The entries of a zip or tar archive, as they are named there."""
    return _list_zip(data, kind) if kind == "zip" else _list_tar(data, kind)


def _list_zip(data: bytes, kind: str) -> MembersAnswer:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    listed = [
        ArchiveMember(
            name=_name(member.filename),
            size=member.file_size,
            kind="folder" if member.is_dir() else "file",
            modified="{:04d}-{:02d}-{:02d} {:02d}:{:02d}".format(*member.date_time),
            warning=_warning(member.filename, locked=bool(member.flag_bits & 0x1)),
        )
        for member in members[:MAX_LISTED]
    ]
    return MembersAnswer(
        kind=kind, members=listed, count=len(members), size=sum(member.file_size for member in members)
    )


def _list_tar(data: bytes, kind: str) -> MembersAnswer:
    listed: list[ArchiveMember] = []
    count = size = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        for member in archive:
            count, size = count + 1, size + member.size
            if len(listed) < MAX_LISTED:
                what = "folder" if member.isdir() else "file" if member.isreg() else "link or device"
                listed.append(
                    ArchiveMember(
                        name=_name(member.name), size=member.size, kind=what,
                        warning=_warning(member.name, locked=False, link=member.islnk() or member.issym()),
                    )
                )  # fmt: skip
            if count >= _MAX_READ:
                return MembersAnswer(kind=kind, members=listed, count=count, size=size, complete=False)
    return MembersAnswer(kind=kind, members=listed, count=count, size=size)


def _name(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:300]


def _warning(name: str, *, locked: bool, link: bool = False) -> str | None:
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or name[1:2] == ":":
        return "leads outside of the archive"
    return "needs a password" if locked else "a link" if link else None
