"""Writes a tool's result in fewer words: rows of JSON as tables, at a higher degree only what may be needed again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, cast

from annabelle.thinker.compress.identifiers import MIDDLE, STRONG, WEAK, identifiers, weight

_LONG_TEXT: Final = 160
_PROSE: Final = 60
_DEEPEST: Final = 12
_READ_CHARS: Final = 400_000


class Degree(IntEnum):
    """How much is left of a result."""

    WHOLE = 0
    COMPACT = 1
    PRUNED = 2
    NEEDED = 3


def compacted(text: str, degree: Degree) -> str:
    """The result at this degree; never longer than it was, and a mark says that it was shortened."""
    if degree is Degree.WHOLE or len(text) <= _LONG_TEXT:
        return text
    value = parsed(text)
    body = _plain(text, degree) if value is None else _structured(value, degree)
    mark = "" if degree is Degree.COMPACT and value is not None else f"[tool: shortened, was {len(text)} chars] "
    short = f"{mark}{body}".rstrip()
    return short if len(short) < len(text) else text


def parsed(text: str) -> object | None:
    """JSON of objects or lists, with numbers as they were written; None for anything else."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")) or len(stripped) > _READ_CHARS:
        return None
    try:
        return cast("object", json.loads(stripped, parse_float=str, parse_int=str))
    except (ValueError, RecursionError):
        return None


def leaves(value: object, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every scalar with its key. A key that is an identifier itself, as in a map by id, is a value too."""
    if isinstance(value, Mapping):
        rows = cast("Mapping[str, object]", value)
        for name, one in rows.items():
            if not isinstance(one, str) and one is not None and weight(name) == STRONG:
                yield key, name
            if depth < _DEEPEST:
                yield from leaves(one, name, depth + 1)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            if depth < _DEEPEST:
                yield from leaves(one, key, depth + 1)
    elif value is not None and value != "":
        yield key, _scalar(value)


def _structured(value: object, degree: Degree) -> str:
    if degree is Degree.NEEDED:
        return by_key(needed(leaves(value)))
    return _written(value, degree, 0)


def needed(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that may be asked for again; of prose, the identifiers in it."""
    kept: list[tuple[str, str]] = []
    for key, value in pairs:
        if weight(value, key) >= WEAK:
            kept.append((key, value))
        else:
            kept += [(key, word) for word in identifiers(value)]
    return kept


def by_key(pairs: Sequence[tuple[str, str]]) -> str:
    """`key: a, b; other: c`, each value once."""
    rows: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        rows.setdefault(key, {}).setdefault(value)
    return "; ".join(f"{key}: {', '.join(values)}" if key else ", ".join(values) for key, values in rows.items())


def _written(value: object, degree: Degree, depth: int) -> str:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return _object(cast("Mapping[str, object]", value), degree, depth)
    if isinstance(value, list):
        return _list(cast("list[object]", value), degree, depth)
    return _short(_scalar(value), degree)


def _object(row: Mapping[str, object], degree: Degree, depth: int) -> str:
    by_name = [(name, one) for name, one in row.items() if one not in (None, "", [], {})]
    inner = [cast("Mapping[str, object]", one) for _, one in by_name if isinstance(one, Mapping)]
    if depth and len(by_name) > 1 and len(inner) == len(by_name) and _alike(inner):
        # A map of rows by id: the id is the first column, and needs no second one.
        rows = [
            {"": name, **{k: v for k, v in one.items() if v != name}}
            for (name, _), one in zip(by_name, inner, strict=True)
        ]
        return _table(rows, degree, depth)
    fields: list[str] = []
    for name, one in by_name:
        written = _written(one, degree, depth + 1)
        if written:
            fields.append(f"{name}{written}" if written.startswith("(") else f"{name}: {written}")
    text = ", ".join(fields) if depth else "\n".join(fields)
    return f"{{{text}}}" if depth > 1 and len(fields) > 1 else text


def _list(values: list[object], degree: Degree, depth: int) -> str:
    rows = [cast("Mapping[str, object]", one) for one in values if isinstance(one, Mapping)]
    if rows and len(rows) == len(values) and (len(rows) == 1 or _alike(rows)):
        return _table(rows, degree, depth) if len(rows) > 1 else _object(rows[0], degree, max(depth, 1))
    return ", ".join(filter(None, (_written(one, degree, depth + 1) for one in values)))


def _table(rows: Sequence[Mapping[str, object]], degree: Degree, depth: int) -> str:
    """Names once, then the values of each row; what is the same in all rows is said once."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [_written(row.get(name, ""), degree, depth + 2) for row in rows] for name in names}
    names = [name for name in names if any(cells[name])]
    same = [name for name in names if len(set(cells[name])) == 1 and name]
    columns = [name for name in names if name not in same]
    if not columns:
        columns, same = names, []
    shared = f" all {', '.join(f'{name} {cells[name][0]}' for name in same)};" if same else ""
    lines = ("|".join(cells[name][place] for name in columns) for place in range(len(rows)))
    return f"({'|'.join(columns)}){shared} {'; '.join(lines)}"


def _alike(rows: Sequence[Mapping[str, object]]) -> bool:
    """Whether rows have most of their names in common, so that a table says it shorter."""
    names = {name for row in rows for name in row}
    return bool(names) and sum(len(row) for row in rows) * 2 >= len(names) * len(rows)


def _short(text: str, degree: Degree) -> str:
    most = _LONG_TEXT if degree is Degree.COMPACT else _PROSE
    if len(text) <= most or weight(text) >= MIDDLE:
        return text
    cut = text[:most].rsplit(" ", 1)[0] if degree is Degree.COMPACT else ""
    words = [word for word in identifiers(text[len(cut) :]) if word not in cut]
    return f"{cut}… {' '.join(words)}".strip("… ") if words or cut else ""


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(str(value).split()) if value is not None else ""


def _plain(text: str, degree: Degree) -> str:
    """Text that is no JSON: its beginning, and what may be needed of the rest."""
    head = {Degree.COMPACT: 600, Degree.PRUNED: 200}.get(degree, 0)
    beginning = text[:head].rsplit(None, 1)[0] if len(text) > head and head else text[:head]
    words = [word for word in identifiers(text[len(beginning) :]) if word not in beginning]
    return "\n".join(filter(None, (beginning, ", ".join(words))))
