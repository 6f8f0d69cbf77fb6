"""Answers questions about a file's bytes without disk or network access. Runs in a worker process."""

from __future__ import annotations

import codecs
import importlib
import io
import itertools
import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Literal, assert_never, cast

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotFound, TooLarge
from annabelle.servers.documents import questions
from annabelle.servers.documents.formats.base import DocumentFormat, DocumentTable, Row, WantedParts

Kind = Literal[
    "pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "rtf", "html", "eml", "csv", "markdown", "text", "image", "zip",
    "tar", "old_office", "binary",
]  # fmt: skip

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\x00", b"MM\x00*")
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_INSIDE: tuple[tuple[str, Kind], ...] = (
    ("word/document.xml", "docx"),
    ("xl/workbook.xml", "xlsx"),
    ("ppt/presentation.xml", "pptx"),
)
_OPEN_DOCUMENT: dict[str, Kind] = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}
_ENDINGS: dict[str, Kind] = {
    ".csv": "csv", ".tsv": "csv", ".html": "html", ".htm": "html", ".xhtml": "html", ".eml": "eml", ".md": "markdown",
    ".markdown": "markdown",
}  # fmt: skip
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PROBE = 8192


def kind_of(data: bytes, name: str) -> Kind:
    """The kind of file to read it as."""
    start = data[:_PROBE]
    if b"%PDF-" in start[:1024]:
        return "pdf"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_zip(data)
    if start.startswith(_OLD_OFFICE):
        return "old_office"
    if start.startswith(_IMAGES) or (start[:4] == b"RIFF" and start[8:12] == b"WEBP"):
        return "image"
    if start.startswith(_PACKED) or data[257:262] == b"ustar":
        return "tar"
    if start.startswith(b"{\\rtf"):
        return "rtf"
    if not _is_text(start):
        return "binary"
    by_name = _ENDINGS.get(PurePosixPath(name).suffix.lower())
    return by_name or ("html" if _HTML.match(start) else "text")


def _kind_of_zip(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if "mimetype" in names and _is_small(archive.getinfo("mimetype")):
                said = archive.read("mimetype").decode("ascii", errors="replace")
                return _OPEN_DOCUMENT.get(said.strip().removeprefix("application/vnd.oasis.opendocument."), "zip")
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        return "zip"
    for inside, kind in _INSIDE:
        if inside in names:
            return kind
    return "zip"


def _is_small(member: zipfile.ZipInfo) -> bool:
    """What it claims binds only these two ways of packing; the others unpack all they hold before anybody looks."""
    return member.file_size < 200 and member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _is_text(start: bytes) -> bool:
    if start.startswith(_MARKS):
        return True
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\b\x1b" for byte in start)
    return b"\0" not in start and controls <= len(start) * 0.05


_MAX_COLUMNS = 100
_MAX_CHARS = 300_000
"""Limit for all cells of one answer together."""


def answer_rows(question: questions.ReadRows, reader: DocumentFormat, data: bytes, kind: Kind) -> questions.RowsAnswer:
    """Cells of one sheet."""
    if kind not in ("xlsx", "ods", "csv"):
        raise InvalidArguments(
            f"The file is no spreadsheet but {kind}.", hint="read_document or extract_tables read it.", field="path"
        )
    block = questions.parse_cell_range(question.range)
    wanted = WantedParts(sheet=question.sheet) if question.sheet else WantedParts((1,))
    found: questions.RowsAnswer | None = None
    names: list[str] = []
    for number, table in enumerate(reader.tables(data), start=1):
        names.append(table.label)
        if found is None and (kind == "csv" or wanted.has(number, table.label)):
            most = question.max_rows if block.last_row is None else block.last_row - block.first_row + 1
            rows, more = _take_rows(
                itertools.islice(table.rows, block.first_row - 1, None),
                min(most, question.max_rows),
                lambda row: row[block.first_column - 1 : block.last_column],
            )
            cut = more and (block.last_row is None or len(rows) < most)
            found = questions.RowsAnswer(
                kind=kind, sheet=table.label, sheets=[], first_row=block.first_row, first_column=block.first_column,
                rows=rows, more=cut,
            )  # fmt: skip
    if found is None:
        known = ", ".join(names[:20])
        raise NotFound(f"There is no sheet {question.sheet!r}.", hint=f"There are {known}.", field="sheet")
    return found.model_copy(update={"sheets": names[:200]})


def answer_tables(
    question: questions.ReadTables, reader: DocumentFormat, data: bytes, kind: Kind
) -> questions.TablesAnswer:
    """Every table of a document."""
    found: list[questions.TableRows] = []
    for table in reader.tables(data):
        if len(found) == question.limit:
            return questions.TablesAnswer(kind=kind, tables=found, more=True)
        found.append(_to_table_rows(table, question.max_rows))
    return questions.TablesAnswer(kind=kind, tables=found)


def _to_table_rows(table: DocumentTable, most: int) -> questions.TableRows:
    rows, more = _take_rows(table.rows, most, lambda row: row)
    return questions.TableRows(label=table.label, rows=rows, more=more)


def _take_rows(rows: Iterable[Row], most: int, choose: Callable[[Row], Row]) -> tuple[list[Row], bool]:
    """The first rows that fit into an answer, and whether there are more. Empty rows at the end do not count."""
    taken: list[Row] = []
    chars = 0
    for row in rows:
        chosen = choose(row)[:_MAX_COLUMNS]
        chars += sum(len(cell) if isinstance(cell, str) else 8 for cell in chosen)
        if len(taken) == most or chars > _MAX_CHARS:
            return taken, True
        taken.append(chosen)
    while taken and all(cell is None for cell in taken[-1]):
        taken.pop()
    return taken, False


_FORMATS = "annabelle.servers.documents.formats"
_READ_BY: dict[Kind, tuple[str, str]] = {
    "pdf": ("pdf", "FORMAT"),
    "docx": ("word", "FORMAT"),
    "xlsx": ("excel", "FORMAT"),
    "pptx": ("zip_formats", "POWERPOINT"),
    "odt": ("zip_formats", "TEXT"),
    "ods": ("zip_formats", "SHEETS"),
    "odp": ("zip_formats", "SLIDES"),
    "rtf": ("text_formats", "RTF"),
    "html": ("text_formats", "HTML"),
    "eml": ("text_formats", "MAIL"),
    "csv": ("text_formats", "CSV"),
    "markdown": ("text_formats", "TEXT"),
    "text": ("text_formats", "TEXT"),
}
_EXCERPT = 200


def answer_question(question: questions.AnyDocumentQuestion, data: bytes) -> questions.DocumentAnswer:
    """The answer, or one clear sentence: a hostile file makes its library raise anything, and that stays in here."""
    kind = kind_of(data, question.name)
    try:
        return _dispatch(question, data, kind)
    except AnnabelleError:
        raise
    except (MemoryError, RecursionError) as error:
        raise TooLarge(
            "The file is built so that it takes too much memory to read.", hint="It may be damaged or hostile."
        ) from error
    except Exception as error:
        raise InvalidArguments(
            f"The file is broken, or not really a {kind} file ({type(error).__name__}).",
            hint="Open it in its own program and save it again.",
            field="path",
        ) from error


def _dispatch(question: questions.AnyDocumentQuestion, data: bytes, kind: Kind) -> questions.DocumentAnswer:
    match question:
        case questions.ReadText():
            return _read_text(question, data, kind)
        case questions.FindText():
            return _find_text(question, data, kind)
        case questions.TellFacts():
            return _read_facts(question, data, kind)
        case questions.ReadRows():
            return answer_rows(question, _load_format(kind), data, kind)
        case questions.ReadTables():
            return answer_tables(question, _load_format(kind), data, kind)
        case questions.TellPicture():
            return importlib.import_module(f"{_FORMATS}.picture").picture_facts(data)
        case questions.ListMembers():
            return _list_members(data, kind)
    assert_never(question)


def _load_format(kind: Kind) -> DocumentFormat:
    """Load a format, and with it its library."""
    if kind == "old_office":
        raise InvalidArguments(
            "The file is an old Office file (.doc, .xls, .ppt), or protected by a password.",
            hint="Save it as .docx, .xlsx or .pptx without a password.",
            field="path",
        )
    if kind in ("zip", "tar"):
        raise InvalidArguments("The file is an archive.", hint="list_archive shows what is in it.", field="path")
    if kind == "image":
        raise InvalidArguments("The file is a picture.", hint="get_image_info tells its facts.", field="path")
    if kind not in _READ_BY:
        raise InvalidArguments(
            "The file is not a document that can be read.",
            hint="PDF, Word, Excel, PowerPoint, OpenDocument, RTF, HTML, EML, CSV, Markdown and text are.",
            field="path",
        )
    module, name = _READ_BY[kind]
    return cast("DocumentFormat", getattr(importlib.import_module(f"{_FORMATS}.{module}"), name))


def _read_text(question: questions.ReadText, data: bytes, kind: Kind) -> questions.TextAnswer:
    reader = _load_format(kind)
    wanted = WantedParts(questions.parse_page_numbers(question.pages), question.sheet)
    if (wanted.numbers or wanted.sheet) and not reader.part:
        field = "pages" if wanted.numbers else "sheet"
        raise InvalidArguments(f"A {kind} file has no {field}.", hint="Use offset to read on.", field=field)
    # One character more than is shown tells whether there is more; the parts after that are not read.
    end = question.offset + question.max_chars
    pieces: list[str] = []
    covered: list[int] = []
    length = 0
    for part in reader.parts(data, wanted):
        head = f"[{part.label}]\n" if reader.part else ""
        piece = f"{head}{part.text.strip()}\n\n" if reader.part else part.text
        if length + len(piece) > question.offset:
            covered.append(part.number)
        pieces.append(piece)
        length += len(piece)
        if length > end:
            break
    if not pieces and (wanted.numbers or wanted.sheet):
        raise NotFound(f"There is no such {reader.part} in the file.", hint="get_document_info tells what there is.")
    whole = "".join(pieces)
    return questions.TextAnswer(
        kind=kind,
        part=reader.part,
        content=whole[question.offset : end],
        next_offset=end if length > end else None,
        covered=covered,
    )


def _read_facts(question: questions.TellFacts, data: bytes, kind: Kind) -> questions.FactsAnswer:
    reader = _load_format(kind)
    facts = reader.facts(data)
    if question.words:
        words = reader.count_words(data)
        scan = kind == "pdf" and not words
        note = "No text was found; the pages may be pictures (a scan)." if scan else None
        facts = facts.model_copy(update={"words": words, "note": note})
    return questions.FactsAnswer(kind=kind, part=reader.part, facts=facts)


def _find_text(question: questions.FindText, data: bytes, kind: Kind) -> questions.FindAnswer:
    reader = _load_format(kind)
    wanted = " ".join(question.query.casefold().split())
    hits: list[questions.DocumentHit] = []
    for part in reader.parts(data, WantedParts()):
        for number, line in enumerate(part.text.split("\n"), start=1):
            text = " ".join(line.split())
            place = text.casefold().find(wanted)
            if place < 0:
                continue
            if len(hits) == question.limit:
                return questions.FindAnswer(kind=kind, hits=hits, more=True)
            start = max(0, place - _EXCERPT // 2)
            hits.append(questions.DocumentHit(where=part.label, line=number, text=text[start : start + _EXCERPT]))
    return questions.FindAnswer(kind=kind, hits=hits)


def _list_members(data: bytes, kind: Kind) -> questions.MembersAnswer:
    if kind in ("docx", "xlsx", "pptx", "odt", "ods", "odp"):
        kind = "zip"
    if kind not in ("zip", "tar"):
        raise InvalidArguments(
            "The file is no archive.", hint="zip, tar, tar.gz, tar.bz2 and tar.xz are.", field="path"
        )
    return importlib.import_module(f"{_FORMATS}.zip_formats").list_archive_contents(data, kind)
