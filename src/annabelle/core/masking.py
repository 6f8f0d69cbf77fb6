"""Takes a text out of JSON: each string that holds it is replaced, and the record stays one that can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import cast

from annabelle.core.needle import Needle

MASK = "[forgotten]"

# What our own records are held together by: an id, a kind, a time. Without them they could not be read again.
_STRUCTURE = frozenset(
    {
        "agent_id", "archived_at", "at", "attempt", "call_id", "channel", "code", "created_at", "ended_at", "event",
        "finish_reason", "key", "kind", "limit", "mcp", "message_id", "model", "model_name", "part_kind", "provider",
        "provider_name", "role", "said_at", "started_at", "state", "status", "step", "thread_id", "time", "timestamp",
        "tool", "tool_call_id", "tool_kind", "tool_name", "trace_id", "trust", "ts", "type", "user_id", "version",
    }
)  # fmt: skip
# From here on it is what people, models and tools said, whatever they call its parts.
PAYLOAD = frozenset({"args", "arguments", "content", "metadata", "profile", "return_value", "row", "structured"})
_WORD = re.compile(r"[\w.:/+-]{1,120}")
_LEAST_DIGITS = 6


def masked(needle: Needle, value: object, mask: str = MASK, *, payload: bool = False) -> object:
    """The value with a mask in the place of every string in it that holds the text."""
    if isinstance(value, str):
        return _masked_text(needle, value, mask)
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        return {
            key if not payload and key in _STRUCTURE else _masked_key(needle, key, mask): item
            if not payload and key in _STRUCTURE and _structural(item)
            else masked(needle, item, mask, payload=payload or key in PAYLOAD)
            for key, item in entries
        }
    if isinstance(value, list | tuple):
        return [masked(needle, item, mask, payload=payload) for item in cast("Iterable[object]", value)]
    return 0 if _is_number(value) and len(str(value)) >= _LEAST_DIGITS and needle.within(str(value)) else value


def masked_json(needle: Needle, text: str, mask: str = MASK, *, payload: bool = False) -> str:
    """The same for JSON as it is stored; a text that is no JSON is masked as a whole."""
    if not needle.within(text):
        return text
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return mask
    new = masked(needle, value, mask, payload=payload)
    return text if new == value else json.dumps(new, separators=(",", ":"))


def pruned(needle: Needle, value: object) -> object:
    """The value without the entries that hold the text, and without records of a list that do; None for nothing."""
    if isinstance(value, dict):
        old = cast("dict[str, object]", value)
        kept = {
            key: new for key, item in old.items() if not needle.within(key) and _kept(item, new := pruned(needle, item))
        }
        return kept if kept or not old else None
    if isinstance(value, list | tuple):
        items = list(cast("Iterable[object]", value))
        left = [new for item in items if not _told(needle, item) and _kept(item, new := pruned(needle, item))]
        return left if left or not items else None
    return value if masked(needle, value, payload=True) == value else None


def _kept(old: object, new: object) -> bool:
    return new is not None or old is None


def _told(needle: Needle, item: object) -> bool:
    """Whether a record says it: half a record is no use."""
    values = cast("dict[str, object]", item).values() if isinstance(item, dict) else ()
    return any(isinstance(value, str) and needle.within(value) for value in values)


def _masked_text(needle: Needle, text: str, mask: str) -> str:
    """A string may hold JSON itself, as a tool call's arguments do; then it stays JSON."""
    if not needle.within(text):
        return text
    if text.lstrip().startswith(("{", "[")):
        new = masked_json(needle, text, mask, payload=True)
        return mask if new == text else new
    return mask


def _masked_key(needle: Needle, key: str, mask: str) -> str:
    return mask if needle.within(key) else key


def _structural(item: object) -> bool:
    return _is_number(item) or (isinstance(item, str) and _WORD.fullmatch(item) is not None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
