"""Finds a text to be forgotten in every spelling, and masks it in JSON so that records stay readable (TRU-09)."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import cast
from urllib.parse import unquote

_LEAST_BASE64 = 8
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|((?:x[0-9a-fA-F]{2}\\+)*x[0-9a-fA-F]{2})|([nrtfbv])|([\"'/]))|(\\\\)")
_BACKSLASHES = re.compile(r"\\+")
# Never part of text, but frequent in a database's numbers and vectors.
_NO_TEXT = "\x00-\x08\x0e-\x1b\x7f\ufffd"
_TEXTS = re.compile(f"[^{_NO_TEXT}]+")
_UNTEXTUAL = re.compile(f"[{_NO_TEXT}]")
_WIDEST = 18  # most characters one character may become when folded
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def fold_spelling(text: str) -> str:
    """Returns one spelling for all equivalent ones."""
    once = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return " ".join(unicodedata.normalize("NFKC", once).split())


def unescape(text: str) -> str:
    """Undoes JSON, Python and URL escapes."""
    if "\\" in text:
        text = _SURROGATES.sub(_join_surrogates, _ESCAPE.sub(_decode_escape, text))
    return unquote(text) if "%" in text else text


def _decode_escape(found: re.Match[str]) -> str:
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


def _join_surrogates(found: re.Match[str]) -> str:
    return found.group().encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class ForgetMatcher:
    """Finds one or more texts in any spelling."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(texts)
        self._folded = tuple(dict.fromkeys(folded for text in self.texts if (folded := fold_spelling(text))))
        self._spaced = any(" " in folded for folded in self._folded)
        spellings = {way for text in self.texts for way in _spellings(text)}
        self._base64 = tuple({core for way in spellings for core in _base64_cores(way.encode(errors="replace"))})
        self._wide = tuple(
            {way.encode(code, "surrogatepass") for way in spellings for code in ("utf-16-le", "utf-16-be")}
        )

    def __bool__(self) -> bool:
        return bool(self._folded)

    def found_in(self, text: str) -> bool:
        if text.isascii() and "\\" not in text and "%" not in text:
            # Fast path: most text is plain.
            plain = text.lower()
            if self._found_in_folded(" ".join(plain.split()) if self._spaced else plain):
                return True
        elif any(self._found_in_folded(folded) for folded in fold_unescaped(text)):
            return True
        return any(core in text for core in self._base64)

    def found_in_bytes(self, blob: bytes) -> bool:
        """Like `found_in`, for the bytes of any file."""
        if any(wide in blob for wide in self._wide) or any(core.encode() in blob for core in self._base64):
            return True
        return self.found_in(self._readable_pieces(blob.decode(errors="replace")))

    def _readable_pieces(self, text: str) -> str:
        """Drops pieces too short to contain a match: folding vectors takes seconds per megabyte."""
        if not self._folded or any(_UNTEXTUAL.search(folded) for folded in self._folded):
            return text
        least = min(map(len, self._folded))
        pieces = (piece for piece in _TEXTS.findall(text) if len(piece) * _WIDEST >= least)
        return "\0".join(piece for piece in pieces if len(piece) >= least or not piece.isascii())

    def find_spans(self, folded: str) -> list[tuple[int, int]]:
        """Returns the start and end of every match in a folded text."""
        found: list[tuple[int, int]] = []
        for one in self._folded:
            at = folded.find(one)
            while at >= 0:
                found.append((at, at + len(one)))
                at = folded.find(one, at + len(one))
        return found

    def _found_in_folded(self, folded: str) -> bool:
        return any(one in folded for one in self._folded)


def fold_unescaped(text: str) -> tuple[str, ...]:
    """Folds the text as it is and, if different, as it may have been before it was escaped."""
    ways = [text]
    if "\\" in text or "%" in text:
        # A backslash before another may stand for itself or escape what follows, so both readings are tried.
        ways += [unescape(text), _BACKSLASHES.sub(r"\\", text)]
    return tuple(fold_spelling(way) for way in dict.fromkeys(ways))


def _spellings(text: str) -> set[str]:
    cases = {text, text.lower(), text.upper(), text.strip()}
    return {unicodedata.normalize(form, case) for case in cases for form in ("NFC", "NFD") if case.strip()}


def _base64_cores(blob: bytes) -> set[str]:
    """Returns the base64 text that these bytes determine, for each of their three alignments."""
    cores: set[str] = set()
    for skipped in range(3):
        inner = blob[skipped:]
        core = base64.b64encode(inner[: len(inner) // 3 * 3]).decode()
        if len(core) >= _LEAST_BASE64:
            cores |= {core, core.translate(str.maketrans("+/", "-_"))}
    return cores


FORGOTTEN_MASK = "[forgotten]"

# Fields our own records need to stay readable: ids, kinds, times.
_STRUCTURE_FIELDS = frozenset(
    {
        "agent_id", "archived_at", "at", "attempt", "call_id", "channel", "code", "created_at", "ended_at", "event",
        "finish_reason", "key", "kind", "limit", "mcp", "message_id", "model", "model_name", "part_kind", "provider",
        "provider_name", "role", "said_at", "started_at", "state", "status", "step", "thread_id", "time", "timestamp",
        "tool", "tool_call_id", "tool_kind", "tool_name", "trace_id", "trust", "ts", "type", "user_id", "version",
    }
)  # fmt: skip
# Below these fields is content from people, models and tools, whatever its field names.
PAYLOAD_FIELDS = frozenset({"args", "arguments", "content", "metadata", "profile", "return_value", "row", "structured"})
_WORD = re.compile(r"[\w.:/+-]{1,120}")
_LEAST_DIGITS = 6


def mask_value(matcher: ForgetMatcher, value: object, mask: str = FORGOTTEN_MASK, *, payload: bool = False) -> object:
    """Replaces every string that contains the text by a mask."""
    if isinstance(value, str):
        return _mask_text(matcher, value, mask)
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        return {
            key if not payload and key in _STRUCTURE_FIELDS else _mask_key(matcher, key, mask): item
            if not payload and key in _STRUCTURE_FIELDS and _is_structural(item)
            else mask_value(matcher, item, mask, payload=payload or key in PAYLOAD_FIELDS)
            for key, item in entries
        }
    if isinstance(value, list | tuple):
        return [mask_value(matcher, item, mask, payload=payload) for item in cast("Iterable[object]", value)]
    return 0 if _is_number(value) and len(str(value)) >= _LEAST_DIGITS and matcher.found_in(str(value)) else value


def mask_json(matcher: ForgetMatcher, text: str, mask: str = FORGOTTEN_MASK, *, payload: bool = False) -> str:
    """Like `mask_value`, for stored JSON; text that is not JSON is masked as a whole."""
    if not matcher.found_in(text):
        return text
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return mask
    new = mask_value(matcher, value, mask, payload=payload)
    return text if new == value else json.dumps(new, separators=(",", ":"))


def prune_value(matcher: ForgetMatcher, value: object) -> object:
    """Removes entries that contain the text, and records in lists that do; None if nothing is left."""
    if isinstance(value, dict):
        old = cast("dict[str, object]", value)
        kept = {
            key: new
            for key, item in old.items()
            if not matcher.found_in(key) and _is_kept(item, new := prune_value(matcher, item))
        }
        return kept if kept or not old else None
    if isinstance(value, list | tuple):
        items = list(cast("Iterable[object]", value))
        left = [
            new
            for item in items
            if not _record_mentions(matcher, item) and _is_kept(item, new := prune_value(matcher, item))
        ]
        return left if left or not items else None
    return value if mask_value(matcher, value, payload=True) == value else None


def _is_kept(old: object, new: object) -> bool:
    return new is not None or old is None


def _record_mentions(matcher: ForgetMatcher, item: object) -> bool:
    """Whether a record contains the text; a partial record would be useless."""
    values = cast("dict[str, object]", item).values() if isinstance(item, dict) else ()
    return any(isinstance(value, str) and matcher.found_in(value) for value in values)


def _mask_text(matcher: ForgetMatcher, text: str, mask: str) -> str:
    """Masks a string. If it contains JSON, such as a tool call's arguments, it stays JSON."""
    if not matcher.found_in(text):
        return text
    if text.lstrip().startswith(("{", "[")):
        new = mask_json(matcher, text, mask, payload=True)
        return mask if new == text else new
    return mask


def _mask_key(matcher: ForgetMatcher, key: str, mask: str) -> str:
    return mask if matcher.found_in(key) else key


def _is_structural(item: object) -> bool:
    return _is_number(item) or (isinstance(item, str) and _WORD.fullmatch(item) is not None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
