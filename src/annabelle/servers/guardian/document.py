"""The texts of nested data as one: every string with its JSON path, values in their order, then the keys.

Values stand one after the other without anything between but a line's end, so an order that is split across fields
reads as one. What a field hides or holds in code is put beside it.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, Literal, cast

from annabelle.servers.guardian.characters import as_seen
from annabelle.servers.guardian.decoding import decoded, retold
from annabelle.servers.guardian.excerpt import Excerpt, excerpt
from annabelle.servers.guardian.hidden import looks_like_markup, unseen_pieces, without_tags

LONGEST_PATH: Final = 200
MOST_FIELDS: Final = 50_000
MOST_ASIDES: Final = 200
LONGEST_JSON: Final = 2_000_000
"""A longer text is not parsed as JSON: its objects would take many times its size. It is read as it stands."""

SHORTEST_HIDING: Final = 16
"""A shorter text hides nothing that is worth a word: no code, no comment, no attribute."""

AsideKind = Literal["hidden", "decoded"]


@dataclass(frozen=True, slots=True)
class Aside:
    """A text that does not meet the eye, and the position it stands at."""

    kind: AsideKind
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """All texts joined, and where each of them begins. `unscanned` says what is not in it."""

    text: str
    starts: tuple[int, ...]
    paths: tuple[str, ...]
    asides: tuple[Aside, ...] = ()
    unscanned: str | None = None

    def path_at(self, position: int) -> str:
        """The path of the text at a position of the whole."""
        place = bisect_right(self.starts, position) - 1
        return self.paths[place] if place >= 0 else "$"


def read_document(content: object) -> Document:
    """Every string of `content`, as a reader understands it."""
    return read_fields(fields_of(content))


@dataclass(frozen=True, slots=True)
class Fields:
    """Every string with its path, as it came; `left_out` counts those beyond the bound."""

    paths: list[str]
    texts: list[str]
    left_out: int

    @property
    def length(self) -> int:
        return sum(len(text) for text in self.texts)

    def fingerprint(self) -> str:
        """The same for the same content."""
        digest = hashlib.sha256()
        for path, text in zip(self.paths, self.texts, strict=True):
            digest.update(f"{path}\0{len(text)}\0".encode("utf-8", errors="replace"))
            digest.update(text.encode("utf-8", errors="replace"))
        return digest.hexdigest()


def fields_of(content: object) -> Fields:
    """A text that is JSON is taken for what it holds: escapes must not hide anything."""
    found, left_out = _fields(_parsed(content))
    return Fields([path for path, _ in found], [text for _, text in found], left_out)


def read_fields(fields: Fields) -> Document:
    """The fields as one text, with what they hide; shortened when it is too long to be looked at in time."""
    return _joined(fields.paths, excerpt(fields.texts, fields.left_out))


def _fields(content: object) -> tuple[list[tuple[str, str]], int]:
    values: list[tuple[str, str]] = []
    keys: list[tuple[str, str]] = []
    left_out = 0
    waiting: list[tuple[str, object]] = [("$", content)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, str):
            if len(values) < MOST_FIELDS:
                values.append((path, node))
            else:
                left_out += 1
        elif isinstance(node, dict):
            entries = [(_below(path, f".{key}"), key, value) for key, value in cast("dict[str, object]", node).items()]
            keys.extend((f"{inner}~", key) for inner, key, _ in entries if len(keys) < MOST_FIELDS)
            waiting.extend((inner, value) for inner, _, value in reversed(entries))
        elif isinstance(node, list):
            items = cast("list[object]", node)
            waiting.extend((_below(path, f"[{place}]"), items[place]) for place in range(len(items) - 1, -1, -1))
    return values + keys, left_out


def _joined(paths: list[str], kept: Excerpt) -> Document:
    starts: list[int] = []
    texts: list[str] = []
    asides: list[Aside] = []
    position = 0
    for whole in kept.texts:
        starts.append(position)
        text = as_seen(whole)
        if len(text) >= SHORTEST_HIDING:
            asides += [Aside("hidden", position, piece) for piece in unseen_pieces(text)]
            pieces, text = decoded(text)
            asides += [Aside("decoded", position, as_seen(piece)) for piece in pieces]
            if looks_like_markup(text):
                text = without_tags(text)
        texts.append(text)
        position += len(text) + 1
    text = "\n".join(texts)
    asides += [Aside("decoded", 0, one) for one in retold(text)]
    return Document(text, tuple(starts), tuple(paths), tuple(asides[:MOST_ASIDES]), kept.unscanned)


def _below(path: str, step: str) -> str:
    return path if len(path) >= LONGEST_PATH else (path + step)[:LONGEST_PATH]


def _parsed(content: object) -> object:
    if not isinstance(content, str) or len(content) > LONGEST_JSON or content.lstrip()[:1] not in ("{", "["):
        return content
    try:
        return cast("object", json.loads(content))
    except (ValueError, RecursionError):
        return content
