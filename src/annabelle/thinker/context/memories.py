"""What memory found for a message, as data in tags with its source and its trust, right before the message (MEM-09)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal, cast

from annabelle.core.memory import Trust
from annabelle.thinker.context.budget import MEMORIES_TOKENS, fit, shortened, tokens
from annabelle.thinker.context.clock import day
from annabelle.thinker.context.tags import MEMORIES, element, escaped

# Of one memory, so that a long one does not push out all others.
_FACT_TOKENS = 90
_SAID_TOKENS = 45
_NEIGHBOUR_TOKENS = 25
_SOURCE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange of an earlier conversation."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A fact, or an exchange with its neighbours; untrusted when others may have written it."""

    kind: Literal["fact", "said"]
    id: int
    trust: Trust
    at: datetime | None
    fact: str = ""
    source: str = ""
    said: Said | None = None
    before: Said | None = None
    after: Said | None = None


@dataclass(frozen=True, slots=True)
class MemoriesLayer:
    text: str
    shown: int = 0
    left_out: int = 0


def memories_layer(memories: Sequence[Memory], where: tzinfo) -> MemoriesLayer:
    """`<memories>` with the best that have room, in their order; nothing at all when there are none.

    Facts come first, then exchanges, each whole or not at all. What room is left goes to their neighbours.
    """
    ordered = sorted(memories, key=lambda memory: memory.kind != "fact")
    fitted = fit((_rendered(memory, where) for memory in ordered), MEMORIES_TOKENS)
    if not fitted.pieces:
        return MemoriesLayer("", 0, fitted.left_out)
    shown = list(fitted.pieces)
    room = MEMORIES_TOKENS - sum(tokens(piece) + 1 for piece in shown)
    for memory in ordered:
        plain = _rendered(memory, where)
        full = _rendered(memory, where, neighbours=True)
        if plain in shown and 0 < tokens(full) - tokens(plain) <= room:
            room -= tokens(full) - tokens(plain)
            shown[shown.index(plain)] = full
    return MemoriesLayer(element(MEMORIES, "\n" + "\n".join(shown) + "\n"), len(shown), fitted.left_out)


def _rendered(memory: Memory, where: tzinfo, *, neighbours: bool = False) -> str:
    when = day(memory.at, where) if memory.at is not None else ""
    trust = memory.trust if memory.trust != "trusted" else None
    if memory.said is None:
        source = " on ".join(part for part in (memory.source[:_SOURCE_CHARS], when) if part)
        return element("fact", _short(memory.fact, _FACT_TOKENS), id=memory.id, source=source, trust=trust)
    parts = [*_exchange(memory.said, _SAID_TOKENS)]
    if neighbours and memory.before is not None:
        parts.insert(0, element("before", "".join(_exchange(memory.before, _NEIGHBOUR_TOKENS))))
    if neighbours and memory.after is not None:
        parts.append(element("after", "".join(_exchange(memory.after, _NEIGHBOUR_TOKENS))))
    return element("said", "".join(parts), id=memory.id, on=when, trust=trust)


def _exchange(said: Said, most: int) -> Iterator[str]:
    for name, words in (("user", said.user), ("assistant", said.assistant)):
        if words.strip():
            yield element(name, _short(words, most))


def _short(text: str, most: int) -> str:
    return escaped(shortened(" ".join(text.split()), most))


def read_memories(structured: Mapping[str, object]) -> tuple[Memory, ...]:
    """The memories in a result of `retrieve_memories`, best first; a row that can not be understood is passed over."""
    rows = [*_rows(structured.get("facts")), *_rows(structured.get("conversations"))]
    return tuple(memory for row in rows if (memory := _memory(row)) is not None)


def _memory(row: Mapping[str, object]) -> Memory | None:
    trust: Trust = "trusted" if row.get("trust", "trusted") == "trusted" else "untrusted"
    if fact := _words(row, "fact"):
        at = _moment(row, "created_at", "updated_at")
        return Memory("fact", _number(row, "id", "fact_id"), trust, at, fact=fact, source=_words(row, "source"))
    said = _said(row)
    if said is None:
        return None
    return Memory(
        "said",
        _number(row, "id", "conversation_id"),
        trust,
        _moment(row, "said_at", "created_at"),
        said=said,
        before=_said(row.get("before")),
        after=_said(row.get("after")),
    )


def _said(value: object) -> Said | None:
    if not isinstance(value, Mapping):
        return None
    row = cast("Mapping[str, object]", value)
    said = Said(_words(row, "user_message"), _words(row, "agent_response"))
    return said if said.user or said.assistant else None


def _rows(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list):
        return []
    return [cast("Mapping[str, object]", row) for row in cast("list[object]", value) if isinstance(row, Mapping)]


def _words(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def _number(row: Mapping[str, object], *names: str) -> int:
    return next((value for name in names if isinstance(value := row.get(name), int)), 0)


def _moment(row: Mapping[str, object], *names: str) -> datetime | None:
    for name in names:
        value = row.get(name)
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                continue
            return moment if moment.tzinfo is not None else None
    return None
