"""The page of the profile: who the agent is, and what it should have in mind of its user."""

from __future__ import annotations

import json
from typing import cast

from pydantic import JsonValue

from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.marks import bad_line, check_of, escaped, take_mark, unescaped
from annabelle.servers.memory.files.outline import END, Item, Page, Section, bullet, head
from annabelle.servers.memory.files.rows import ProfilePage
from annabelle.servers.memory.persona import FIELDS, LISTS

KIND = "profile"
PERSONA, USER = "Persona", "About the user"

_INTRO = """# Profile

Who the agent is, and what it should have in mind of its user in every conversation. Edit what is below and import this
file again: it takes effect with the next message. A field without a value is left out.
"""

_decoder = json.JSONDecoder()


def profile_check(content: JsonObject) -> str:
    return check_of(content)


def write_profile(content: JsonObject, version: int) -> str:
    """The page of a profile."""
    persona = cast("JsonObject", content.get("persona") or {})
    lines = [_INTRO, head(KIND, version=version, check=profile_check(content)), "", f"## {PERSONA}", ""]
    for field in FIELDS:
        lines += _field(field, persona.get(field, ""), 0)
    lines += ["", f"## {USER}", ""]
    for name, value in cast("JsonObject", content.get("user") or {}).items():
        lines += _field(name, value, 0)
    return "\n".join([*lines, "", END.format(what=KIND), ""])


def read_profile(page: Page) -> ProfilePage:
    """The profile a page describes."""
    content: JsonObject = {}
    for section in page.sections:
        title = section.title.strip().casefold()
        if title == PERSONA.casefold():
            content["persona"] = _persona(section)
        elif title in (USER.casefold(), "user"):
            content["user"] = _fields(section.items)
        else:
            raise bad_line(section.line, f"there is no section {section.title[:60]!r}", f"There are {PERSONA}, {USER}.")
    known = {name: value for name, value in content.items() if value}
    try:
        version = int(page.facts["version"]) if "version" in page.facts else None
        return ProfilePage(content=cast("dict[str, JsonValue]", known), version=version, check=page.facts.get("check"))
    except ValueError as error:
        raise bad_line(1, "the comment at the top is damaged") from error


def _field(name: str, value: object, depth: int) -> list[str]:
    key = name if _plain_key(name) else json.dumps(name, ensure_ascii=False)
    if isinstance(value, dict) and value:
        inside = cast("JsonObject", value)
        return [bullet(f"{key}:", depth), *(line for name in inside for line in _field(name, inside[name], depth + 1))]
    if isinstance(value, list) and _plain_list(cast("list[object]", value)):
        return [bullet(f"{key}:", depth), *(bullet(escaped(str(one)), depth + 1) for one in cast("list[str]", value))]
    if value == "":
        return [bullet(f"{key}:", depth)]
    text = value if isinstance(value, str) and _plain(value) else json.dumps(value, ensure_ascii=False)
    return [bullet(f"{key}: {escaped(text)}", depth)]


def _plain_key(name: str) -> bool:
    return not any(sign in name for sign in ':"\n<>&\\') and name == name.strip()


def _plain(text: str) -> bool:
    """Whether a text reads back as itself."""
    if text != text.strip() or any(line != line.rstrip() or "\t" in line for line in text.split("\n")):
        return False
    return "\r" not in text and _value(text) == text


def _plain_list(values: list[object]) -> bool:
    texts = [value for value in values if isinstance(value, str) and value and _plain(value) and ":" not in value]
    return bool(values) and len(texts) == len(values) and not any(text.startswith('"') for text in texts)


def _persona(section: Section) -> JsonObject:
    persona: JsonObject = {}
    for item in section.items:
        text, _ = take_mark(item.text, item.line)
        if not text:
            continue
        name, value = _split(text, item.line)
        field = "_".join(name.lower().replace("-", " ").split()).replace("behaviors", "behaviours")
        if field in LISTS:
            listed = _value(unescaped(value)) if value else None
            several = cast("list[object]", listed) if isinstance(listed, list) else [listed] if listed else []
            persona[field] = [*map(str, several), *(_prose(child) for child in item.children)]
        else:
            # A person writes lists into their prose, too.
            persona[field] = "\n".join([_text(value), *(f"- {_prose(child)}" for child in item.children)]).strip()
    return {field: value for field, value in persona.items() if value}


def _text(written: str) -> str:
    value = _value(unescaped(written)) if written else ""
    return value if isinstance(value, str) else unescaped(written)


def _prose(item: Item) -> str:
    below = "".join(f"\n  - {_prose(child)}" for child in item.children)
    return f"{_text(item.text)}{below}"


def _fields(items: list[Item]) -> JsonObject:
    """Fields by name. One without a value is left out."""
    found: JsonObject = {}
    for item in items:
        text, _ = take_mark(item.text, item.line)
        if not text and not item.children:
            continue
        name, value = _split(text, item.line)
        if item.children:
            if value:
                raise bad_line(item.line, "a field has either a value or lines below it")
            inside = _below(item.children)
        else:
            inside = _value(unescaped(value)) if value else None
        if inside is not None:
            found[name] = inside
    return found


def _below(children: list[Item]) -> JsonObject | list[object] | None:
    texts = [unescaped(take_mark(child.text, child.line)[0]) for child in children]
    if any(child.children or ":" in text for child, text in zip(children, texts, strict=True)):
        return _fields(children) or None
    return [_value(text) for text in texts if text] or None


def _split(text: str, line: int) -> tuple[str, str]:
    if text.startswith('"'):
        try:
            name, end = _decoder.raw_decode(text)
        except ValueError as error:
            raise bad_line(line, "the name of the field is damaged") from error
        rest = text[end:]
    else:
        name, colon, after = text.partition(":")
        rest = colon + after
    if not isinstance(name, str) or not name.strip() or not rest.startswith(":"):
        raise bad_line(line, "it is not a field", "Write it as `- name: value`.")
    return name if text.startswith('"') else name.strip(), rest[1:].strip()


def _value(text: str) -> object:
    """A value as it was written: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text
