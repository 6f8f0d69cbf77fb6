"""Decodes bytes to text, also when the named charset is wrong or missing."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from annabelle.servers.kit.lazy_import import deferred_module

if TYPE_CHECKING:
    import charset_normalizer
else:
    charset_normalizer = deferred_module("charset_normalizer")

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LABEL_FIRST = ("iso2022", "utf-7", "utf-16", "utf-32", "hz")
"""Encodings whose bytes may be valid UTF-8 as well, so only the label can tell."""

_NOT_FOR_TEXT = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem")
_LATIN = ("iso8859-1", "ascii")  # as browsers do: texts labelled so are in cp1252
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_DECLARED_WITHIN = 4_096
_MIN_GUESSED = 100
_MAX_GUESSED = 20_000


def decode_text(data: bytes, label: str | None = None, *, declared: bool = False) -> str:
    """Decode `data`, with U+FFFD for what fits no encoding. Valid UTF-8 wins over most labels.

    `label` is the charset a header names. With `declared`, the one that HTML or XML names itself counts where there
    is no usable label.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    charset = _known_charset(label)
    if charset is None and declared and (found := _DECLARED.search(data[:_DECLARED_WITHIN])):
        charset = _known_charset(found[1].decode("ascii", errors="replace"))
    return _replace_surrogates(_decode(data, charset))


def _decode(data: bytes, charset: str | None) -> str:
    if charset is not None and charset.startswith(_LABEL_FIRST):
        try:
            return data.decode(charset)
        except (UnicodeError, ValueError):
            pass
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_off = error.reason == "unexpected end of data" and error.start > 0 and error.end >= len(data) - 3
    if charset in (None, "utf-8"):
        if cut_off:
            return data.decode("utf-8", errors="ignore")
        charset = _guess_charset(data)
    try:
        return data.decode(charset, errors="replace")
    except (UnicodeError, ValueError):
        return data.decode("latin-1")


def _guess_charset(data: bytes) -> str:
    """Another alphabet is recognised in longer texts. Which Latin charset it is cannot be told reliably: cp1252."""
    if len(data) >= _MIN_GUESSED:
        best = charset_normalizer.from_bytes(data[:_MAX_GUESSED]).best()
        if best is not None and not any("Latin" in name for name in best.alphabets if name != "Basic Latin"):
            return best.encoding
    return "cp1252"


def _known_charset(label: str | None) -> str | None:
    try:
        found = codecs.lookup((label or "").strip().strip("\"'").lower())
    except (LookupError, ValueError, UnicodeError):
        return None
    # Codecs such as rot13 and zip are not charsets.
    if not getattr(found, "_is_text_encoding", True) or found.name in _NOT_FOR_TEXT:
        return None
    return "cp1252" if found.name in _LATIN else found.name


def _replace_surrogates(text: str) -> str:
    """Some encodings can produce surrogates, which are not valid text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
