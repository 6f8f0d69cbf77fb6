"""Text that is to be forgotten, found in every spelling in which a file or a row may hold it (TRU-09).

Two texts are the same when they differ only in case, in the width and composition of their characters, or in the
amount of white space between words. A file may also hold them escaped (JSON, Python, URLs), as base64 or as UTF-16.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import cast
from urllib.parse import unquote

MASK = "[forgotten]"
_DIGITS = 6
_LEAST_BASE64 = 8
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|((?:x[0-9a-fA-F]{2}\\+)*x[0-9a-fA-F]{2})|([nrtfbv])|([\"'/]))|(\\\\)")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")

# What our own records are held together by: an id, a kind, a time. Without them a record could not be read again.
_STRUCTURE = frozenset(
    {
        "agent_id", "at", "attempt", "call_id", "channel", "code", "created_at", "event", "id", "key", "kind", "mcp",
        "message_id", "part_kind", "provider", "role", "status", "step", "thread_id", "timestamp", "tool",
        "tool_call_id", "tool_kind", "tool_name", "trace_id", "trust", "ts", "type", "user_id", "version",
    }
)  # fmt: skip
_WORD = re.compile(r"[\w.:/+-]{1,120}")


def fold(text: str) -> str:
    """The one spelling that stands for all that mean the same."""
    once = unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).casefold()
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
        return self.within(blob.decode(errors="replace")) or any(wide in blob for wide in self._wide)

    def spans(self, folded: str) -> list[tuple[int, int]]:
        """Where it stands in a folded text, from and to."""
        found: list[tuple[int, int]] = []
        for one in self._folded:
            at = folded.find(one)
            while at >= 0:
                found.append((at, at + len(one)))
                at = folded.find(one, at + len(one))
        return found

    def masked_text(self, text: str, mask: str = MASK) -> str:
        """The text without it: leaf by leaf when it is JSON, else the mask in the place of the whole."""
        if not self.within(text):
            return text
        value = _parsed(text)
        if value is None:
            return mask
        masked = self.masked(value, mask)
        return text if masked == value else json.dumps(masked, separators=(",", ":"))

    def masked(self, value: object, mask: str = MASK) -> object:
        """A JSON value with a mask in the place of every string in it that holds the text."""
        if isinstance(value, str):
            return self.masked_text(value, mask)
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value).items()
            return {self._masked_key(key, mask): self._masked_entry(key, item, mask) for key, item in entries}
        if isinstance(value, list | tuple):
            return [self.masked(item, mask) for item in cast("list[object]", value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            digits = str(value)
            return 0 if len(digits) >= _DIGITS and self._in(digits) else value
        return value

    def pruned(self, value: object) -> object:
        """A JSON value without the entries and items that hold the text; None when nothing is left of it."""
        if isinstance(value, dict):
            pairs = ((key, old, self.pruned(old)) for key, old in cast("dict[str, object]", value).items())
            return {key: new for key, old, new in pairs if not self.within(key) and (new is not None or old is None)}
        if isinstance(value, list | tuple):
            items = ((old, self.pruned(old)) for old in cast("list[object]", value))
            return [new for old, new in items if new is not None or old is None]
        return value if self.masked(value) == value else None

    def _masked_key(self, key: str, mask: str) -> str:
        return mask if key not in _STRUCTURE and self.within(key) else key

    def _masked_entry(self, key: str, item: object, mask: str) -> object:
        return item if key in _STRUCTURE and _structural(item) else self.masked(item, mask)

    def _in(self, folded: str) -> bool:
        return any(one in folded for one in self._folded)


def folds(text: str) -> tuple[str, ...]:
    """The folded text as it stands and, where that differs, as it was before it was escaped."""
    plain = unescape(text)
    return (fold(text),) if plain == text else (fold(text), fold(plain))


def _structural(item: object) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and _WORD.fullmatch(item) is not None)


def _parsed(text: str) -> dict[str, object] | list[object] | None:
    """A JSON object or array; anything else is a plain text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object] | list[object]", value) if isinstance(value, dict | list) else None


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
