"""Text that is to be forgotten, found in every spelling in which a file or a row may hold it (TRU-09).

Two texts are the same when they differ only in case, in the width and composition of their characters, or in the
amount of white space between words. A file may also hold them escaped (JSON, Python, URLs), as base64 or as UTF-16.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable
from typing import cast
from urllib.parse import unquote

_LEAST_BASE64 = 8
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|((?:x[0-9a-fA-F]{2}\\+)*x[0-9a-fA-F]{2})|([nrtfbv])|([\"'/]))|(\\\\)")
_BACKSLASHES = re.compile(r"\\+")
# What no text has between its characters, and a database's numbers and vectors are full of.
_NO_TEXT = "\x00-\x08\x0e-\x1b\x7f\ufffd"
_TEXTS = re.compile(f"[^{_NO_TEXT}]+")
_UNTEXTUAL = re.compile(f"[{_NO_TEXT}]")
_WIDEST = 18  # characters that one character may become when its spelling is folded
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def fold(text: str) -> str:
    """The one spelling that stands for all that mean the same."""
    once = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return " ".join(unicodedata.normalize("NFKC", once).split())


def unescape(text: str) -> str:
    """The text as it was before it was written as JSON, as a Python literal or into an address."""
    if "\\" in text:
        text = _SURROGATES.sub(_joined, _ESCAPE.sub(_plain, text))
    return unquote(text) if "%" in text else text


def _plain(found: re.Match[str]) -> str:
    unit, octets, space, sign, _backslashes = cast("tuple[str | None, ...]", found.groups())
    if unit is not None:
        return chr(int(unit, 16))
    if octets is not None:
        raw = bytes(int(pair, 16) for pair in re.findall(r"x([0-9a-fA-F]{2})", octets))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("latin-1")
    return " " if space is not None else sign or "\\"


def _joined(found: re.Match[str]) -> str:
    return found.group().encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Needle:
    """One or more texts to look for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(texts)
        self._folded = tuple(dict.fromkeys(folded for text in self.texts if (folded := fold(text))))
        self._spaced = any(" " in folded for folded in self._folded)
        spellings = {way for text in self.texts for way in _spellings(text)}
        self._base64 = tuple({core for way in spellings for core in _base64(way.encode(errors="replace"))})
        self._wide = tuple(
            {way.encode(code, "surrogatepass") for way in spellings for code in ("utf-16-le", "utf-16-be")}
        )

    def __bool__(self) -> bool:
        return bool(self._folded)

    def within(self, text: str) -> bool:
        """Whether the text holds it, in any spelling."""
        if text.isascii() and "\\" not in text and "%" not in text:
            # Most of what there is to search is plain, and need not be taken apart.
            plain = text.lower()
            if self._in(" ".join(plain.split()) if self._spaced else plain):
                return True
        elif any(self._in(folded) for folded in folds(text)):
            return True
        return any(core in text for core in self._base64)

    def within_bytes(self, blob: bytes) -> bool:
        """The same for the bytes of a file of any kind."""
        if any(wide in blob for wide in self._wide) or any(core.encode() in blob for core in self._base64):
            return True
        return self.within(self._readable(blob.decode(errors="replace")))

    def _readable(self, text: str) -> str:
        """The pieces of a file that are long enough to hold it: taking vectors apart costs seconds a megabyte."""
        if not self._folded or any(_UNTEXTUAL.search(folded) for folded in self._folded):
            return text
        least = min(map(len, self._folded))
        pieces = (piece for piece in _TEXTS.findall(text) if len(piece) * _WIDEST >= least)
        return "\0".join(piece for piece in pieces if len(piece) >= least or not piece.isascii())

    def spans(self, folded: str) -> list[tuple[int, int]]:
        """Where it stands in a folded text, from and to."""
        found: list[tuple[int, int]] = []
        for one in self._folded:
            at = folded.find(one)
            while at >= 0:
                found.append((at, at + len(one)))
                at = folded.find(one, at + len(one))
        return found

    def _in(self, folded: str) -> bool:
        return any(one in folded for one in self._folded)


def folds(text: str) -> tuple[str, ...]:
    """The folded text as it stands and, where that differs, as it may have been before it was escaped."""
    ways = [text]
    if "\\" in text or "%" in text:
        # A backslash before another may stand for one, or for what follows it; both are looked at.
        ways += [unescape(text), _BACKSLASHES.sub(r"\\", text)]
    return tuple(fold(way) for way in dict.fromkeys(ways))


def _spellings(text: str) -> set[str]:
    cases = {text, text.lower(), text.upper(), text.strip()}
    return {unicodedata.normalize(form, case) for case in cases for form in ("NFC", "NFD") if case.strip()}


def _base64(blob: bytes) -> set[str]:
    """What stands in a base64 text that holds these bytes, for each of the three ways they may be cut into groups."""
    cores: set[str] = set()
    for skipped in range(3):
        inner = blob[skipped:]
        core = base64.b64encode(inner[: len(inner) // 3 * 3]).decode()
        if len(core) >= _LEAST_BASE64:
            cores |= {core, core.translate(str.maketrans("+/", "-_"))}
    return cores
