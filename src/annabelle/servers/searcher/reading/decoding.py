"""From bytes to characters, by what the sender says, the document says, or the bytes themselves show."""

from __future__ import annotations

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9_.:\-]{1,40})""", re.IGNORECASE)
_DECLARED_WITHIN = 2048
_LATIN = ("iso8859-1", "ascii")
# Not encodings of documents; two of them take time that grows with the square of the length.
_REFUSED = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7", "mbcs", "oem"})


def decode(data: bytes, charset: str | None, *, declared: bool = True) -> str:
    """All of the text; what is no character in its encoding becomes �. `declared`: HTML and XML name their own."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    inside = _DECLARED.search(data[:_DECLARED_WITHIN]) if declared else None
    for name in (charset, inside.group(1).decode("ascii") if inside else None):
        known = _known(name)
        if known:
            return data.decode(known, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and error.reason == "unexpected end of data":
            return data.decode("utf-8", errors="ignore")  # cut off in the middle of a character
        return data.decode("cp1252", errors="replace")


def _known(name: str | None) -> str | None:
    try:
        known = codecs.lookup(name or "")
        b"a".decode(known.name, errors="replace")  # some codecs are not of texts
    except (LookupError, UnicodeError):
        return None
    if known.name in _REFUSED:
        return None
    return "cp1252" if known.name in _LATIN else known.name  # what browsers do: pages that say latin-1 mean the other
