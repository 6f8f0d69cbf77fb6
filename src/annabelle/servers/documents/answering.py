"""Answers a question about a file's bytes. Pure work: no disk, no network; it runs in a process of its own."""

from __future__ import annotations

import importlib
from typing import assert_never, cast

from annabelle.core.errors import AnnabelleError, InvalidArguments, NotFound, TooLarge
from annabelle.servers.documents.formats.base import Format, Wanted
from annabelle.servers.documents.kinds import Kind, kind_of
from annabelle.servers.documents.questions import (
    Answer,
    FactsAnswer,
    FindText,
    FoundAnswer,
    Hit,
    ListMembers,
    MembersAnswer,
    PictureAnswer,
    Question,
    ReadRows,
    ReadTables,
    ReadText,
    TellFacts,
    TellPicture,
    TextAnswer,
)
from annabelle.servers.documents.ranges import page_numbers
from annabelle.servers.documents.table_answers import answer_rows, answer_tables

_FORMATS = "annabelle.servers.documents.formats"
_READ_BY: dict[Kind, tuple[str, str]] = {
    "pdf": ("pdf", "FORMAT"),
    "docx": ("word", "FORMAT"),
    "xlsx": ("excel", "FORMAT"),
    "pptx": ("slides", "FORMAT"),
    "odt": ("open_document", "TEXT"),
    "ods": ("open_document", "SHEETS"),
    "odp": ("open_document", "SLIDES"),
    "rtf": ("rich_text", "FORMAT"),
    "html": ("web_page", "FORMAT"),
    "eml": ("mail", "FORMAT"),
    "csv": ("plain", "CSV"),
    "markdown": ("plain", "TEXT"),
    "text": ("plain", "TEXT"),
}
_EXCERPT = 200


def answer(question: Question, data: bytes) -> Answer:
    """The answer, or one clear sentence: a hostile file makes its library raise anything, and that stays in here."""
    kind = kind_of(data, question.name)
    try:
        return _answer(question, data, kind)
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


def _answer(question: Question, data: bytes, kind: Kind) -> Answer:
    match question:
        case ReadText():
            return _text(question, data, kind)
        case FindText():
            return _find(question, data, kind)
        case TellFacts():
            return _facts(question, data, kind)
        case ReadRows():
            return answer_rows(question, _reader(kind), data, kind)
        case ReadTables():
            return answer_tables(question, _reader(kind), data, kind)
        case TellPicture():
            return _picture(data)
        case ListMembers():
            return _members(data, kind)
    assert_never(question)


def _reader(kind: Kind) -> Format:
    """The one place where formats, and with them their libraries, are loaded."""
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
    return cast("Format", getattr(importlib.import_module(f"{_FORMATS}.{module}"), name))


def _text(question: ReadText, data: bytes, kind: Kind) -> TextAnswer:
    reader = _reader(kind)
    wanted = Wanted(page_numbers(question.pages), question.sheet)
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
    return TextAnswer(
        kind=kind,
        part=reader.part,
        content=whole[question.offset : end],
        next_offset=end if length > end else None,
        covered=covered,
    )


def _facts(question: TellFacts, data: bytes, kind: Kind) -> FactsAnswer:
    reader = _reader(kind)
    facts = reader.facts(data)
    if question.words:
        words = reader.words(data)
        scan = kind == "pdf" and not words
        note = "No text was found; the pages may be pictures (a scan)." if scan else None
        facts = facts.model_copy(update={"words": words, "note": note})
    return FactsAnswer(kind=kind, part=reader.part, facts=facts)


def _find(question: FindText, data: bytes, kind: Kind) -> FoundAnswer:
    reader = _reader(kind)
    wanted = " ".join(question.query.casefold().split())
    hits: list[Hit] = []
    for part in reader.parts(data, Wanted()):
        for number, line in enumerate(part.text.split("\n"), start=1):
            text = " ".join(line.split())
            place = text.casefold().find(wanted)
            if place < 0:
                continue
            if len(hits) == question.limit:
                return FoundAnswer(kind=kind, hits=hits, more=True)
            start = max(0, place - _EXCERPT // 2)
            hits.append(Hit(where=part.label, line=number, text=text[start : start + _EXCERPT]))
    return FoundAnswer(kind=kind, hits=hits)


def _picture(data: bytes) -> PictureAnswer:
    picture = importlib.import_module(f"{_FORMATS}.picture")
    return PictureAnswer(facts=picture.picture_facts(data).model_dump())


def _members(data: bytes, kind: Kind) -> MembersAnswer:
    if kind in ("docx", "xlsx", "pptx", "odt", "ods", "odp"):
        kind = "zip"
    if kind not in ("zip", "tar"):
        raise InvalidArguments(
            "The file is no archive.", hint="zip, tar, tar.gz, tar.bz2 and tar.xz are.", field="path"
        )
    archive = importlib.import_module(f"{_FORMATS}.archive")
    return MembersAnswer(kind=kind, contents=archive.contents(data, kind).model_dump())
