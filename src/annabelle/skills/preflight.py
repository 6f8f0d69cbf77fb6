"""A call made before a skill runs, to see whether there is anything to do: it costs no token (SKL-05)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import cast

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject

_MOST_MINUTES = 60 * 24 * 31


def read_preflight(given: object) -> JsonObject | None:
    """`{tool, arguments, window_minutes}`; in the arguments `{now}` and `{until}` stand for the window."""
    if given is None:
        return None
    call = cast("JsonObject", given) if isinstance(given, dict) else {}
    tool, minutes = call.get("tool"), call.get("window_minutes") or 60
    arguments = cast("object", call.get("arguments") or {})
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise InvalidArguments("preflight names no tool.", hint="Give tool, arguments and window_minutes.")
    if not isinstance(minutes, int) or not 0 < minutes <= _MOST_MINUTES:
        raise InvalidArguments(f"window_minutes is {minutes}.", hint=f"It is a whole number up to {_MOST_MINUTES}.")
    return {"tool": tool, "arguments": arguments, "window_minutes": minutes}


def fill_window(preflight: JsonObject, now: datetime) -> JsonObject:
    """The call for the window that begins now."""
    until = now + timedelta(minutes=cast("int", preflight["window_minutes"]))
    times = {"{now}": now.isoformat(timespec="seconds"), "{until}": until.isoformat(timespec="seconds")}
    given = cast("JsonObject", preflight["arguments"])
    return preflight | {"arguments": {name: times.get(str(value), value) for name, value in given.items()}}


def has_entries(structured: Mapping[str, object] | None) -> bool:
    """Whether a result lists anything. One without lists says nothing about it, so there may be."""
    lists = [cast("list[object]", value) for value in (structured or {}).values() if isinstance(value, list)]
    return not lists or any(lists)
