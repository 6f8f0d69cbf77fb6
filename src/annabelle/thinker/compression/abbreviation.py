"""Abbreviates tool results: JSON rows become tables; at the highest degree only identifiers stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, cast

STRONG: Final = 3
MIDDLE: Final = 2
WEAK: Final = 1

_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*%?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_TIME = re.compile(r"(?:\d{4}-\d{2}-\d{2}[T ])?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?")
_AMOUNT_KEY = re.compile(r"price|amount|cost|total|balance|sum|fee|paid", re.I)
_CODE = re.compile(r"[A-Z]{2,6}")
_ID_KEY = re.compile(r"(?:^|_|-|\b)(?:ids?|uuid|number|no|code|key|ref(?:erence)?|sku|email|phone|url|path)$", re.I)
_WORD = re.compile(r"(?:[^\s,;\"'`<>()\[\]{}|*=]|(?<=\d),(?=\d{3}\b))+")
_TRAILING = ".:!?…"
_SHORT_VALUE: Final = 48
_MAX_IDENTIFIER_CHARS: Final = 120


def identifier_weight(value: str, key: str = "") -> int:
    """How likely a later call needs a value: 0 for prose, 3 for an identifier."""
    return _cached_weight(value, key) if value and len(value) <= _MAX_IDENTIFIER_CHARS else 0


# Only short values, so that the cache does not hold whole tool results.
@lru_cache(maxsize=10_000)
def _cached_weight(value: str, key: str) -> int:
    if value.isalpha() and not value.isupper():  # a plain word: only its key can make it an identifier
        return STRONG if _ID_KEY.search(_to_snake_case(key)) else WEAK if len(value) <= _SHORT_VALUE else 0
    if _TIME.fullmatch(value):
        return WEAK
    if _NUMBER.fullmatch(value) and sum(map(str.isdigit, value)) < 3 and not _AMOUNT_KEY.search(key):
        return WEAK if _ID_KEY.search(_to_snake_case(key)) else 0
    spaced = any(char.isspace() for char in value)
    if not spaced and (_ID_KEY.search(_to_snake_case(key)) or _is_identifier(value)):
        return STRONG
    if _DATE.fullmatch(value) or _CODE.fullmatch(value) or (not spaced and "_" in value):
        return MIDDLE
    return WEAK if len(value) <= _SHORT_VALUE and value.count(" ") <= 3 else 0


def find_identifiers(text: str) -> list[str]:
    """The distinct words of a text that later calls may need, in order."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(text):
        word = match[0].strip(_TRAILING)
        # Two capitals are more often AM, OK or TV than a code.
        if (len(word) > 2 and identifier_weight(word) >= MIDDLE) or (_NUMBER.fullmatch(word) and len(word) > 2):
            found.setdefault(word)
    return list(found)


def _is_identifier(value: str) -> bool:
    """Letters with digits, an address, a path or a long number; short numbers are often amounts."""
    if "@" in value or "://" in value or value.startswith(("#", "/", "~/")):
        return len(value) > 2
    if _DATE.fullmatch(value):
        return False
    digits = sum(char.isdigit() for char in value)
    if _NUMBER.fullmatch(value):
        return digits >= 6
    return digits > 0 and len(value) > 2


def _to_snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)


_LONG_TEXT: Final = 160
_PROSE: Final = 60
_MAX_DEPTH: Final = 12
_READ_CHARS: Final = 400_000


class AbbreviationDegree(IntEnum):
    """How much is left of a result."""

    WHOLE = 0
    COMPACT = 1
    PRUNED = 2
    NEEDED = 3


def abbreviate_result(text: str, degree: AbbreviationDegree) -> str:
    """The result at this degree, never longer than before, marked as shortened."""
    if degree is AbbreviationDegree.WHOLE or len(text) <= _LONG_TEXT:
        return text
    value = parse_json_text(text)
    body = _abbreviate_text(text, degree) if value is None else _abbreviate_value(value, degree)
    mark = (
        ""
        if degree is AbbreviationDegree.COMPACT and value is not None
        else f"[tool: shortened, was {len(text)} chars] "
    )
    short = f"{mark}{body}".rstrip()
    return short if len(short) < len(text) else text


def parse_json_text(text: str) -> object | None:
    """A JSON object or list with numbers as text; None for anything else."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")) or len(stripped) > _READ_CHARS:
        return None
    try:
        return cast("object", json.loads(stripped, parse_float=str, parse_int=str))
    except (ValueError, RecursionError):
        return None


def iterate_leaves(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every scalar with its key. A key that is an identifier, as in a map by id, counts as a value."""
    if isinstance(value, Mapping):
        rows = cast("Mapping[str, object]", value)
        for name, one in rows.items():
            if not isinstance(one, str) and one is not None and identifier_weight(name) == STRONG:
                yield key, name
            if depth < _MAX_DEPTH:
                yield from iterate_leaves(one, name, depth + 1)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            if depth < _MAX_DEPTH:
                yield from iterate_leaves(one, key, depth + 1)
    elif value is not None and value != "":
        yield key, _render_scalar(value)


def _abbreviate_value(value: object, degree: AbbreviationDegree) -> str:
    if degree is AbbreviationDegree.NEEDED:
        return format_by_key(needed_pairs(iterate_leaves(value)))
    return _render_value(value, degree, 0)


def needed_pairs(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that later calls may need; of prose, its identifiers."""
    kept: list[tuple[str, str]] = []
    for key, value in pairs:
        if identifier_weight(value, key) >= WEAK:
            kept.append((key, value))
        else:
            kept += [(key, word) for word in find_identifiers(value)]
    return kept


def format_by_key(pairs: Sequence[tuple[str, str]]) -> str:
    """`key: a, b; other: c`, each value once."""
    rows: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        rows.setdefault(key, {}).setdefault(value)
    return "; ".join(f"{key}: {', '.join(values)}" if key else ", ".join(values) for key, values in rows.items())


def _render_value(value: object, degree: AbbreviationDegree, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return _render_object(cast("Mapping[str, object]", value), degree, depth)
    if isinstance(value, list):
        return _render_list(cast("list[object]", value), degree, depth)
    return _shorten_text(_render_scalar(value), degree)


def _render_object(row: Mapping[str, object], degree: AbbreviationDegree, depth: int) -> str:
    by_name = [(name, one) for name, one in row.items() if one not in (None, "", [], {})]
    inner = [cast("Mapping[str, object]", one) for _, one in by_name if isinstance(one, Mapping)]
    if depth and len(by_name) > 1 and len(inner) == len(by_name) and _have_similar_keys(inner):
        # A map of rows by id: the id becomes the first column.
        rows = [
            {"": name, **{k: v for k, v in one.items() if v != name}}
            for (name, _), one in zip(by_name, inner, strict=True)
        ]
        return _render_table(rows, degree, depth)
    fields: list[str] = []
    for name, one in by_name:
        written = _render_value(one, degree, depth + 1)
        if written:
            fields.append(f"{name}{written}" if written.startswith("(") else f"{name}: {written}")
    text = ", ".join(fields) if depth else "\n".join(fields)
    return f"{{{text}}}" if depth > 1 and len(fields) > 1 else text


def _render_list(values: list[object], degree: AbbreviationDegree, depth: int) -> str:
    rows = [cast("Mapping[str, object]", one) for one in values if isinstance(one, Mapping)]
    if rows and len(rows) == len(values) and (len(rows) == 1 or _have_similar_keys(rows)):
        return _render_table(rows, degree, depth) if len(rows) > 1 else _render_object(rows[0], degree, max(depth, 1))
    return ", ".join(filter(None, (_render_value(one, degree, depth + 1) for one in values)))


def _render_table(rows: Sequence[Mapping[str, object]], degree: AbbreviationDegree, depth: int) -> str:
    """Column names, then the values of each row; a value equal in all rows is written once."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [_render_value(row.get(name, ""), degree, depth + 2) for row in rows] for name in names}
    names = [name for name in names if any(cells[name])]
    same = [name for name in names if len(set(cells[name])) == 1 and name]
    columns = [name for name in names if name not in same]
    if not columns:
        columns, same = names, []
    shared = f" all {', '.join(f'{name} {cells[name][0]}' for name in same)};" if same else ""
    lines = ("|".join(cells[name][place] for name in columns) for place in range(len(rows)))
    return f"({'|'.join(columns)}){shared} {'; '.join(lines)}"


def _have_similar_keys(rows: Sequence[Mapping[str, object]]) -> bool:
    """Whether rows share most keys, so that a table is shorter."""
    names = {name for row in rows for name in row}
    return bool(names) and sum(len(row) for row in rows) * 2 >= len(names) * len(rows)


def _shorten_text(text: str, degree: AbbreviationDegree) -> str:
    most = _LONG_TEXT if degree is AbbreviationDegree.COMPACT else _PROSE
    if len(text) <= most or identifier_weight(text) >= MIDDLE:
        return text
    cut = text[:most].rsplit(" ", 1)[0] if degree is AbbreviationDegree.COMPACT else ""
    words = [word for word in find_identifiers(text[len(cut) :]) if word not in cut]
    return f"{cut}… {' '.join(words)}".strip("… ") if words or cut else ""


def _render_scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(str(value).split()) if value is not None else ""


def _abbreviate_text(text: str, degree: AbbreviationDegree) -> str:
    """Plain text: its beginning, and the identifiers of the rest."""
    head = {AbbreviationDegree.COMPACT: 600, AbbreviationDegree.PRUNED: 200}.get(degree, 0)
    beginning = text[:head].rsplit(None, 1)[0] if len(text) > head and head else text[:head]
    words = [word for word in find_identifiers(text[len(beginning) :]) if word not in beginning]
    return "\n".join(filter(None, (beginning, ", ".join(words))))
