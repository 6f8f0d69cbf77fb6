"""Joins the texts of nested data to one document of bounded size, finds hidden text and cuts windows."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, cast

from annabelle.servers.guardian.encoded_text import decode_pieces, undo_ciphers
from annabelle.servers.guardian.visible_text import (
    find_hidden_pieces,
    looks_like_markup,
    normalise_characters,
    strip_tags,
)

BUDGET: Final = 400_000
"""Maximum number of characters in one scan."""
_EDGE: Final = 60_000
_PIECE: Final = 1_200
_MAX_KEYWORDS: Final = 120
_KEYWORDS: Final = (
    "ignore", "instruction", "system prompt", "you are now", "assistant", "password", "do not tell", "<!--", "as an ai",
    "api key", "language model", "important!!", "curl ", "base64",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The texts, shortened where necessary. `unscanned` says what is missing."""

    texts: list[str]
    unscanned: str | None


def make_excerpt(texts: list[str], left_out_fields: int) -> Excerpt:
    """Keep the texts if they fit the budget; otherwise give each a share."""
    total = sum(len(text) for text in texts)
    if total <= BUDGET:
        said = f"{left_out_fields} more fields were not looked at." if left_out_fields else None
        return Excerpt(texts, said)
    share = _share_of_budget(sorted(len(text) for text in texts), BUDGET)
    kept = [text if len(text) <= share else _sample_text(text, share) for text in texts]
    missing = total - sum(len(text) for text in kept)
    fields = f" and {left_out_fields} more fields" if left_out_fields else ""
    return Excerpt(kept, f"{missing} of {total} characters{fields} were not looked at.")


def _share_of_budget(lengths: list[int], budget: int) -> int:
    """Maximum length per text so that all fit. What short texts do not use goes to the longer ones."""
    for place, length in enumerate(lengths):
        share = budget // (len(lengths) - place)
        if length > share:
            return share
        budget -= length
    return budget


def _sample_text(text: str, share: int) -> str:
    edge = min(_EDGE, share // 3)
    spans = [(0, edge), (len(text) - edge, len(text))]
    pieces = max(1, (share - 2 * edge) // _PIECE)
    called = sorted(set(_find_keywords(text)))[: min(_MAX_KEYWORDS, pieces // 2)]
    spans += [(max(0, place - _PIECE // 2), place + _PIECE // 2) for place in called]
    evenly = max(1, pieces - len(called))
    stride = max(1, (len(text) - 2 * edge) // evenly)
    spans += [(start, start + _PIECE) for start in range(edge, len(text) - edge, stride)][:evenly]
    return "\n".join(text[start:end] for start, end in _merge_spans(sorted(spans)))


def _find_keywords(text: str) -> Iterator[int]:
    low = text.lower()
    for word in _KEYWORDS:
        place = low.find(word)
        for _ in range(_MAX_KEYWORDS // 4):
            if place < 0:
                break
            yield place
            place = low.find(word, place + _PIECE)


def _merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


MAX_PATH: Final = 200
MAX_FIELDS: Final = 50_000
MAX_HIDDEN_TEXTS: Final = 200
MAX_JSON: Final = 2_000_000
"""Longer texts are not parsed as JSON, to save memory. They are scanned as they are."""

SHORTEST_HIDING: Final = 16
"""Shorter texts are too short to hide anything."""

HiddenTextKind = Literal["hidden", "decoded"]


@dataclass(frozen=True, slots=True)
class HiddenText:
    """A text that a reader does not see, and its position."""

    kind: HiddenTextKind
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class ScanDocument:
    """All texts joined, with their start positions. `unscanned` says what is missing."""

    text: str
    starts: tuple[int, ...]
    paths: tuple[str, ...]
    asides: tuple[HiddenText, ...] = ()
    unscanned: str | None = None

    def path_at(self, position: int) -> str:
        place = bisect_right(self.starts, position) - 1
        return self.paths[place] if place >= 0 else "$"


def read_document(content: object) -> ScanDocument:
    return read_fields(collect_fields(content))


@dataclass(frozen=True, slots=True)
class ScanFields:
    """Every string with its path. `left_out` counts those beyond the limit."""

    paths: list[str]
    texts: list[str]
    left_out: int

    @property
    def length(self) -> int:
        return sum(len(text) for text in self.texts)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for path, text in zip(self.paths, self.texts, strict=True):
            digest.update(f"{path}\0{len(text)}\0".encode("utf-8", errors="replace"))
            digest.update(text.encode("utf-8", errors="replace"))
        return digest.hexdigest()


def collect_fields(content: object) -> ScanFields:
    """Collect all strings. A text that is JSON is parsed, so that escapes cannot hide anything."""
    found, left_out = _walk_content(_parse_json(content))
    return ScanFields([path for path, _ in found], [text for _, text in found], left_out)


def read_fields(fields: ScanFields) -> ScanDocument:
    """Join the fields to one bounded document, with the text they hide."""
    return _join_fields(fields.paths, make_excerpt(fields.texts, fields.left_out))


def _walk_content(content: object) -> tuple[list[tuple[str, str]], int]:
    values: list[tuple[str, str]] = []
    keys: list[tuple[str, str]] = []
    left_out = 0
    waiting: list[tuple[str, object]] = [("$", content)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, str):
            if len(values) < MAX_FIELDS:
                values.append((path, node))
            else:
                left_out += 1
        elif isinstance(node, dict):
            entries = [
                (_child_path(path, f".{key}"), key, value) for key, value in cast("dict[str, object]", node).items()
            ]
            keys.extend((f"{inner}~", key) for inner, key, _ in entries if len(keys) < MAX_FIELDS)
            waiting.extend((inner, value) for inner, _, value in reversed(entries))
        elif isinstance(node, list):
            items = cast("list[object]", node)
            waiting.extend((_child_path(path, f"[{place}]"), items[place]) for place in range(len(items) - 1, -1, -1))
    return values + keys, left_out


def _join_fields(paths: list[str], kept: Excerpt) -> ScanDocument:
    starts: list[int] = []
    texts: list[str] = []
    asides: list[HiddenText] = []
    position = 0
    for whole in kept.texts:
        starts.append(position)
        text = normalise_characters(whole)
        if len(text) >= SHORTEST_HIDING:
            asides += [HiddenText("hidden", position, piece) for piece in find_hidden_pieces(text)]
            pieces, text = decode_pieces(text)
            asides += [HiddenText("decoded", position, normalise_characters(piece)) for piece in pieces]
            if looks_like_markup(text):
                text = strip_tags(text)
        texts.append(text)
        position += len(text) + 1
    text = "\n".join(texts)
    asides += [HiddenText("decoded", 0, one) for one in undo_ciphers(text)]
    return ScanDocument(text, tuple(starts), tuple(paths), tuple(asides[:MAX_HIDDEN_TEXTS]), kept.unscanned)


def _child_path(path: str, step: str) -> str:
    return path if len(path) >= MAX_PATH else (path + step)[:MAX_PATH]


def _parse_json(content: object) -> object:
    if not isinstance(content, str) or len(content) > MAX_JSON or content.lstrip()[:1] not in ("{", "["):
        return content
    try:
        return cast("object", json.loads(content))
    except (ValueError, RecursionError):
        return content


WIDTHS: Final = (200, 480)
"""Window sizes in characters, for a sentence and for a paragraph."""

Window = tuple[int, int]


def split_into_windows(start: int, length: int) -> list[Window]:
    """Windows of a text at `start`: one for a short text, otherwise half overlapping ones."""
    if length <= WIDTHS[0]:
        return [(start, start + length)]
    found: list[Window] = []
    for width in WIDTHS:
        if length <= width * 5 // 4:
            found.append((start, start + length))
            break
        stride = width // 2
        count = -(-(length - width) // stride)
        found += [(start + place * stride, start + place * stride + width) for place in range(count)]
        found.append((start + length - width, start + length))
    return found
