"""What `retrieve_memories` answers, read once at the edge; what is missing or odd in it costs only itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from annabelle.core.memory import Trust
from annabelle.policy.intent.own_words import own_words

_FAINT = 0.25
"""An exchange without a word of the message in it must be this close in meaning to be worth its tokens."""


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange of an earlier conversation."""

    user: str
    assistant: str
    speaker: str = ""
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class Memory:
    """A fact, or an exchange with its neighbours; untrusted when others may have written it."""

    kind: Literal["fact", "said"]
    id: int
    at: datetime | None
    trust: Trust = "trusted"
    fact: str = ""
    source: str = ""
    tools: tuple[str, ...] = ()
    read_from: int | None = None
    said: Said | None = None
    before: Said | None = None
    after: Said | None = None


def read_memories(structured: Mapping[str, object]) -> tuple[Memory, ...]:
    """The memories in a result of `retrieve_memories`, best first; a row that can not be understood is passed over."""
    rows = [*_rows(structured.get("facts")), *_rows(structured.get("conversations"))]
    return tuple(memory for row in rows if (memory := _memory(row)) is not None)


def _memory(row: Mapping[str, object]) -> Memory | None:
    if fact := _words(row, "fact"):
        tools, read_from = row.get("tools"), row.get("conversation_id")
        return Memory(
            "fact",
            _number(row),
            _moment(row, "created_at", "updated_at"),
            _trust(row),
            fact=fact,
            source=_words(row, "source"),
            tools=tuple(str(name) for name in cast("list[object]", tools)) if isinstance(tools, list) else (),
            read_from=read_from if isinstance(read_from, int) else None,
        )
    said = _said(row)
    if said is None or _is_faint(row.get("parts")):
        return None
    at = _moment(row, "said_at", "created_at")
    before, after = _said(row.get("before")), _said(row.get("after"))
    return Memory("said", _number(row), at, _trust(row), said=said, before=before, after=after)


def _is_faint(parts: object) -> bool:
    if not isinstance(parts, Mapping):
        return False
    known = cast("Mapping[str, object]", parts)
    closeness = known.get("vector")
    return known.get("text") == 0 and isinstance(closeness, int | float) and closeness < _FAINT


def _said(value: object) -> Said | None:
    if not isinstance(value, Mapping):
        return None
    row = cast("Mapping[str, object]", value)
    # What the user once pasted is somebody else's, and is not brought to mind as theirs.
    user = own_words(_words(row, "user_message")).strip()
    said = Said(user, _words(row, "agent_response"), _words(row, "speaker"), _trust(row))
    return said if said.user or said.assistant else None


def _trust(row: Mapping[str, object]) -> Trust:
    return "trusted" if row.get("trust", "trusted") == "trusted" else "untrusted"


def _rows(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list):
        return []
    return [cast("Mapping[str, object]", row) for row in cast("list[object]", value) if isinstance(row, Mapping)]


def _words(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def _number(row: Mapping[str, object]) -> int:
    value = row.get("id")
    return value if isinstance(value, int) else 0


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
