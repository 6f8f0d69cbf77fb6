"""Playbooks: how to handle a kind of request, as Markdown files with front matter (PLB-02)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Playbook:
    """`instructions` go into the prompt of a matching turn, `required_tools` into its tools (SEL-06)."""

    name: str
    instructions: str
    keywords: tuple[str, ...] = ()
    required_tools: tuple[str, ...] = ()
    priority: int = 0
    description: str = ""
    servers: tuple[str, ...] = ()
    """Servers it is for: a default playbook with servers is written once one of them exists (PLB-01)."""
    from_skill: bool = False
    """Whether it stands for a SKILL.md: others wrote it, so its instructions are read through the hub (SKL-10)."""

    def is_usable(self, tools: Collection[str]) -> bool:
        """Whether at least half of the required tools are available; else its instructions are useless."""
        return 2 * sum(name in tools for name in self.required_tools) >= len(self.required_tools)


class Playbooks(Protocol):
    def matching(self, text: str, tools: Collection[str]) -> tuple[Playbook, ...]:
        """Returns playbooks whose keywords are in the message and whose tools suffice, most important first."""
        ...


_FENCE = "---"
_PAIR = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?")
_ITEM = re.compile(r"\s*-\s+(.*)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\["\\])*"|'(?:[^']|'')*')\s*(?:#.*)?""")
_NOT_PLAIN = tuple("[]{}&*!|>%@`\"',")


class FrontMatterMistake(ValueError):
    """A syntax error, with its line."""


@dataclass(frozen=True, slots=True)
class FrontMatterDocument:
    values: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    body: str = ""


def parse_front_matter(text: str) -> FrontMatterDocument:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        raise FrontMatterMistake(f"line 1: the file does not begin with {_FENCE}")
    document = FrontMatterDocument()
    current: list[str] | None = None
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _FENCE:
            return FrontMatterDocument(document.values, document.lists, "\n".join(lines[number:]).strip())
        if not _COMMENT.sub("", line, count=1).strip():
            continue
        if current is not None and (item := _ITEM.fullmatch(line)):
            current.append(_parse_scalar(item[1], number))
        else:
            current = _parse_pair(document, line, number)
    raise FrontMatterMistake(f"line {len(lines)}: the front matter is not closed with {_FENCE}")


def _parse_pair(document: FrontMatterDocument, line: str, number: int) -> list[str] | None:
    """Parses one name; returns the list that the next lines may fill."""
    pair = _PAIR.fullmatch(line.rstrip())
    if pair is None:
        raise FrontMatterMistake(f"line {number}: expected `name: value`")
    name, value = pair[1], (pair[2] or "").strip()
    if name in document.values or name in document.lists:
        raise FrontMatterMistake(f"line {number}: {name} is there twice")
    if not value or value.startswith("#"):
        document.lists[name] = []
        return document.lists[name]
    if value.startswith("["):
        document.lists[name] = _parse_bracket_list(value, number)
    else:
        document.values[name] = _parse_scalar(value, number)
    return None


def _parse_bracket_list(value: str, number: int) -> list[str]:
    value = value if value.endswith("]") else _COMMENT.sub("", value, count=1).rstrip()
    if not value.endswith("]"):
        raise FrontMatterMistake(f"line {number}: the list is not closed")
    items, rest = list[str](), value[1:-1].strip()
    while rest:
        quoted = _QUOTED.match(rest) if rest[0] in "\"'" else None
        end = rest.find(",", quoted.end(1) if quoted else 0)
        item, rest = (rest, "") if end < 0 else (rest[:end], rest[end + 1 :].strip())
        items.append(_parse_scalar(item, number))
    return items


def _parse_scalar(value: str, number: int) -> str:
    value = value.strip()
    if value.startswith(('"', "'")):
        quoted = _QUOTED.fullmatch(value)
        if quoted is None:
            raise FrontMatterMistake(f"line {number}: the quotes do not match")
        inner = quoted[1][1:-1]
        return re.sub(r"\\(.)", r"\1", inner) if value[0] == '"' else inner.replace("''", "'")
    value = _COMMENT.sub("", value, count=1).strip()
    if not value or value.startswith(_NOT_PLAIN) or ": " in value or value.endswith(":"):
        raise FrontMatterMistake(f"line {number}: put the value in quotes")
    return value


MOST_BYTES = 64 * 1024
_MOST_KEYWORDS = 200
_MOST_TOOLS = 50
_PLAYBOOK_NAME = re.compile(r"[\w-]{1,64}")
_VALUES = frozenset({"name", "description", "priority"})
_LISTS = frozenset({"keywords", "required_tools", "servers"})


class PlaybookMistake(ValueError):
    """What is wrong with a file, in a few words for the log."""


def read_playbook(path: Path) -> Playbook:
    """Reads a playbook; OSError if the file cannot be read."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PlaybookMistake(f"it is longer than {MOST_BYTES // 1024} KB")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise PlaybookMistake("it is not UTF-8") from None
    return parse_playbook(text, path.stem)


def parse_playbook(text: str, stem: str) -> Playbook:
    """Parses a playbook; its name defaults to the file's stem."""
    try:
        document = parse_front_matter(text)
    except FrontMatterMistake as mistake:
        raise PlaybookMistake(str(mistake)) from mistake
    _check_names(document)
    name, keywords = document.values.get("name", stem), document.lists.get("keywords", [])
    if _PLAYBOOK_NAME.fullmatch(name) is None:
        raise PlaybookMistake("its name has other signs than letters, digits, - and _")
    if not any(re.search(r"\w", keyword) for keyword in keywords):
        raise PlaybookMistake("it has no keywords, so no message would ever call for it")
    if not document.body:
        raise PlaybookMistake("it has no instructions below the front matter")
    return Playbook(
        name=name,
        instructions=document.body,
        keywords=tuple(keywords[:_MOST_KEYWORDS]),
        required_tools=tuple(document.lists.get("required_tools", ())[:_MOST_TOOLS]),
        priority=_parse_number("priority", document.values.get("priority", "0"), 0, 100),
        description=document.values.get("description", ""),
        servers=tuple(document.lists.get("servers", ())),
    )


def _check_names(document: FrontMatterDocument) -> None:
    unknown = sorted(set(document.values) - _VALUES | set(document.lists) - _LISTS)
    for name in unknown:
        if name in _VALUES:
            raise PlaybookMistake(f"{name} has no value")
        if name in _LISTS:
            raise PlaybookMistake(f"{name} is to be a list")
        raise PlaybookMistake(f"{name} is not known; known are {', '.join(sorted(_VALUES | _LISTS))}")


def _parse_number(name: str, value: str, least: int, most: int) -> int:
    if re.fullmatch(r"\d{1,4}", value, re.ASCII) is None or not least <= int(value) <= most:
        raise PlaybookMistake(f"{name} is to be a number from {least} to {most}")
    return int(value)
