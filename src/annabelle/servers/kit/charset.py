"""Decodes bytes to text, also when the declared charset is wrong."""

from __future__ import annotations

import codecs

_FIRST = ("iso2022", "utf-7", "utf-16", "utf-32", "hz")
"""Encodings whose bytes may look like another one's; there only the label tells."""

_ODD = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem")


def decode_text(data: bytes, charset: str) -> str:
    """The text, with U+FFFD where nothing fits. Valid UTF-8 is taken for UTF-8: that is no accident."""
    return _replace_surrogates(_decode(data, _known_charset(charset)))


def _decode(data: bytes, declared: str) -> str:
    tries = [declared, "utf-8"] if declared.startswith(_FIRST) else ["utf-8", declared]
    for one in tries:
        try:
            return data.decode(one)
        except (UnicodeError, ValueError):
            continue
    fallback = "cp1252" if declared in ("utf-8", "ascii", "us-ascii") else declared
    try:
        return data.decode(fallback, errors="replace")
    except (UnicodeError, ValueError):
        return data.decode("latin-1")


def _known_charset(charset: str) -> str:
    name = charset.strip().strip("\"'").lower()
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError, UnicodeError):
        return "utf-8"
    # Codecs such as rot13 and zip are no character sets, and some that are were never meant for mail.
    return found.name if getattr(found, "_is_text_encoding", True) and found.name not in _ODD else "utf-8"


def _replace_surrogates(text: str) -> str:
    """Halves of characters, which some encodings can spell, are no text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
