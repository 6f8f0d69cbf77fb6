"""The profile as a JSON document: validation, merging of updates, and the persona's fields (CTX-08)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from annabelle.core.errors import InvalidArguments, NotAllowed, TooLarge
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.servers.memory.arguments import clean_text, find_secret_kind, one_line

PersonaLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class PersonaFields(BaseModel):
    """How an agent presents itself and behaves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)] | None = None
    style: Annotated[str, Field(max_length=2000)] | None = None
    tone: Annotated[str, Field(max_length=2000)] | None = None
    system_prompt: Annotated[str, Field(max_length=20_000)] | None = None
    capabilities: Annotated[list[PersonaLine], Field(max_length=50)] | None = None
    proactive_behaviours: Annotated[list[PersonaLine], Field(max_length=50)] | None = None


PERSONA_FIELDS = tuple(PersonaFields.model_fields)
PERSONA_LISTS = ("capabilities", "proactive_behaviours")


def check_persona(section: JsonObject) -> JsonObject:
    """A persona with its fields in order; what is wrong with it is one sentence."""
    try:
        return PersonaFields.model_validate(section).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise InvalidArguments(
                f"A persona has no field {field[:60]!r}.",
                hint=f"It has {', '.join(PERSONA_FIELDS)}; whatever else there is to say belongs into system_prompt.",
                field="updates",
            ) from error
        raise InvalidArguments(f"The persona's {field} is not valid: {first['msg']}.", field="updates") from error


SECTIONS = ("persona", "user")
MAX_BYTES = 32_000
MAX_DEPTH = 6
MAX_KEY = 100


def merge_updates(before: JsonObject, updates: JsonObject) -> JsonObject:
    """The document with updates in it: objects are merged field by field, null removes, anything else replaces."""
    after = dict(before)
    for key, value in updates.items():
        old = after.get(key)
        if isinstance(value, dict):
            inside = cast("JsonObject", old) if isinstance(old, dict) else {}
            value = merge_updates(inside, cast("JsonObject", value))
        if value is None or value == {}:
            after.pop(key, None)
        else:
            after[key] = value
    return after


def difference(before: JsonObject, after: JsonObject) -> JsonObject:
    """The updates that lead from one document to another."""
    updates: JsonObject = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if inside := difference(cast("JsonObject", old), cast("JsonObject", value)):
                updates[key] = inside
        elif old != value:
            updates[key] = value
    return updates


def iter_leaves(document: JsonObject, above: str = "") -> Iterator[tuple[str, object]]:
    """Every field that holds a value, by its path: `user.city`."""
    for key, value in document.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            yield from iter_leaves(cast("JsonObject", value), path)
        else:
            yield path, value


def remove_fields(document: JsonObject, paths: frozenset[str], above: str = "") -> JsonObject:
    """The document without these fields, nor sections that are empty then."""
    kept: JsonObject = {}
    for key, value in document.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, dict):
            if inside := remove_fields(cast("JsonObject", value), paths, path):
                kept[key] = inside
        elif path not in paths:
            kept[key] = value
    return kept


def changed_fields(before: JsonObject, after: JsonObject) -> list[str]:
    """Which fields differ, by path, in the order of the new document and then the old."""
    old, new = dict(iter_leaves(before)), dict(iter_leaves(after))
    return [path for path in {**new, **old} if old.get(path) != new.get(path)]


def untrusted_after(before: JsonObject, after: JsonObject, untrusted: frozenset[str], trusted: bool) -> set[str]:
    """Which fields others may have written, after a change: what a trusted one touched is no longer among them."""
    changed, present = set(changed_fields(before, after)), dict(iter_leaves(after))
    return {
        path for path in present if (path in changed and not trusted) or (path in untrusted and path not in changed)
    }


def sort_into_sections(updates: JsonObject) -> JsonObject:
    """Updates sorted into the two sections; what is in neither is about the user."""
    sorted_in: JsonObject = {}
    for name in SECTIONS:
        section = updates.get(name, {})
        if section is not None and not isinstance(section, dict):
            raise InvalidArguments(f"The section {name} must be an object with fields.", field="updates")
        sorted_in[name] = section
    loose = {key: value for key, value in updates.items() if key not in SECTIONS}
    if loose:
        user = cast("JsonObject", sorted_in["user"] or {})
        sorted_in["user"] = {**loose, **user}
    return {name: section for name, section in sorted_in.items() if section != {}}


def validate_profile(document: JsonObject) -> JsonObject:
    """The document as it may be stored: cleaned, of bounded size and depth, without secrets, with a valid persona."""
    clean = cast("JsonObject", _clean_value(document, 0))
    if persona := clean.get("persona"):
        clean["persona"] = check_persona(cast("JsonObject", persona))
    size = len(json.dumps(clean, ensure_ascii=False).encode(errors="replace"))
    if size > MAX_BYTES:
        raise TooLarge(
            f"The profile would have {size} bytes; it may have {MAX_BYTES}.",
            hint="Keep what matters in every conversation, and store the rest as facts.",
            field="updates",
        )
    for path, value in iter_leaves(clean):
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        kind = find_secret_kind(words) or find_secret_kind(f"{path.rsplit('.', 1)[-1]}: {words}")
        if kind is not None:
            raise NotAllowed(
                f"{path} looks like it holds a {kind}, and memory keeps no secrets. Nothing was changed.",
                hint="Say where the secret is kept instead.",
                field="updates",
            )
    return clean


def refuse_untrusted_persona(before: JsonObject, after: JsonObject, trust: Trust) -> None:
    """What others wrote never changes who an agent is (I-13)."""
    if trust == "untrusted" and before.get("persona") != after.get("persona"):
        raise NotAllowed(
            "The persona is not changed while content from elsewhere is part of the conversation.",
            hint="A person can change it with `annabelle memory`, or say it in a new conversation.",
        )


def _clean_value(value: object, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise InvalidArguments(f"A profile is nested at most {MAX_DEPTH} levels deep.", field="updates")
    if isinstance(value, dict):
        return {_check_key(key): _clean_value(inside, depth + 1) for key, inside in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_clean_value(inside, depth + 1) for inside in cast("list[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArguments("A profile holds no numbers that are not numbers.", field="updates")
    return clean_text(value) if isinstance(value, str) else value


def _check_key(key: str) -> str:
    name = one_line(key)
    if not 0 < len(name) <= MAX_KEY:
        raise InvalidArguments(f"The name of a field has 1 to {MAX_KEY} characters.", field="updates")
    return name
