"""The text of a PDF, page by page."""

from __future__ import annotations

import io

import pypdf
from pypdf.errors import PyPdfError

MAX_PAGES = 300
MAX_CHARS = 2_000_000


class NotReadable(Exception):
    """The reason a document cannot be read, as a sentence."""


def read_pdf(data: bytes) -> tuple[str, str, str | None]:
    """Its title, its text, and what was left out."""
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise NotReadable("The PDF is protected by a password.")
        total = len(reader.pages)
        title = (reader.metadata.title if reader.metadata else None) or ""
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError) as error:
        raise NotReadable("The PDF is damaged and can not be read.") from error
    pages: list[str] = []
    chars, unread = 0, 0
    for number in range(min(total, MAX_PAGES)):
        try:
            text = reader.pages[number].extract_text().strip()
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            text, unread = "", unread + 1  # the other pages are still readable
        pages.append(f"## Page {number + 1}\n\n{text}" if text else "")
        chars += len(text)
        if chars > MAX_CHARS:
            break
    notes = [
        f"Only {len(pages)} of {total} pages were read." if len(pages) < total else "",
        f"{unread} pages are damaged." if unread else "",
        "It has no text, only pictures of it." if not chars else "",
    ]
    return title, "\n\n".join(filter(None, pages)), " ".join(filter(None, notes)) or None
