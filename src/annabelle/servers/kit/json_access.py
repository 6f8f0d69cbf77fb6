"""Typed access to JSON from other services, where a field may be missing or of another type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from annabelle.core.tools import JsonObject


def get_text(found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def get_object(found: Mapping[str, object], name: str) -> JsonObject:
    value = found.get(name)
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def get_objects(found: Mapping[str, object], name: str) -> list[JsonObject]:
    return [cast("JsonObject", item) for item in _get_list(found, name) if isinstance(item, dict)]


def get_strings(found: Mapping[str, object], name: str) -> tuple[str, ...]:
    return tuple(item for item in _get_list(found, name) if isinstance(item, str))


def _get_list(found: Mapping[str, object], name: str) -> list[object]:
    value = found.get(name)
    return cast("list[object]", value) if isinstance(value, list) else []
