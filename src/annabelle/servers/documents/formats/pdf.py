"""PDF files, page by page."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime

import pypdf
from pypdf.errors import DependencyError, PyPdfError

from annabelle.core.errors import InvalidArguments
from annabelle.servers.documents.formats.base import DocumentFacts, DocumentFormat, DocumentPart, WantedParts


class PdfFormat(DocumentFormat):
    part = "page"

    def parts(self, data: bytes, wanted: WantedParts) -> Iterator[DocumentPart]:
        reader = _open(data)
        count = len(reader.pages)
        for number in wanted.numbers or range(1, count + 1):
            if number <= count:
                yield DocumentPart(number, f"page {number}", _text(reader, number))

    def facts(self, data: bytes) -> DocumentFacts:
        reader = _open(data)
        known = reader.metadata
        return DocumentFacts(
            title=_said(known.title if known else None),
            author=_said(known.author if known else None),
            subject=_said(known.subject if known else None),
            created=_time(known, "creation_date"),
            modified=_time(known, "modification_date"),
            parts=len(reader.pages),
        )


def _open(data: bytes) -> pypdf.PdfReader:
    reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted:
        try:
            known = reader.decrypt("")
        except (DependencyError, NotImplementedError, PyPdfError) as error:
            raise _locked() from error
        if not known:
            raise _locked()
    return reader


def _locked() -> InvalidArguments:
    return InvalidArguments("The PDF is protected by a password.", hint="Ask for a copy without one.", field="path")


def _text(reader: pypdf.PdfReader, number: int) -> str:
    """A page's text; a page that cannot be read does not hide the others."""
    try:
        return reader.pages[number - 1].extract_text()
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001  a broken page makes the library raise anything
        return f"[page {number} can not be read: {type(error).__name__}]"


def _said(value: object) -> str | None:
    return value.strip()[:300] or None if isinstance(value, str) else None


def _time(known: object, name: str) -> str | None:
    try:
        value: object = getattr(known, name, None)
    except Exception:  # noqa: BLE001  a date that is none makes the library raise anything
        return None
    return value.isoformat() if isinstance(value, datetime) else None


FORMAT = PdfFormat()
