"""Reads the lines between `---` at the top of a Markdown file: the plain part of YAML that people write there.

Names with a value or with a list, in lines or in brackets; quotes and comments. Anything more is refused with its line,
instead of being read as something else than was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = "---"
_PAIR = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?")
_ITEM = re.compile(r"\s*-\s+(.*)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\["\\])*"|'(?:[^']|'')*')\s*(?:#.*)?""")
_NOT_PLAIN = tuple("[]{}&*!|>%@`\"',")


class FrontMatterMistake(ValueError):
    """What is wrong, with the line it is in."""


@dataclass(frozen=True, slots=True)
class Document:
    """The values by name, and the text below."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    lists: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    body: str = ""


def parse(text: str) -> Document:
    """The file in its two parts."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        raise FrontMatterMistake(f"line 1: the file does not begin with {_FENCE}")
    document = Document()
    current: list[str] | None = None
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _FENCE:
            return Document(document.values, document.lists, "\n".join(lines[number:]).strip())
        if not _COMMENT.sub("", line, count=1).strip():
            continue
        if current is not None and (item := _ITEM.fullmatch(line)):
            current.append(_scalar(item[1], number))
        else:
            current = _pair(document, line, number)
    raise FrontMatterMistake(f"line {len(lines)}: the front matter is not closed with {_FENCE}")


def _pair(document: Document, line: str, number: int) -> list[str] | None:
    """Take in one name; what it returns is the list that the next lines may fill."""
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
        document.lists[name] = _in_brackets(value, number)
    else:
        document.values[name] = _scalar(value, number)
    return None


def _in_brackets(value: str, number: int) -> list[str]:
    value = value if value.endswith("]") else _COMMENT.sub("", value, count=1).rstrip()
    if not value.endswith("]"):
        raise FrontMatterMistake(f"line {number}: the list is not closed")
    items, rest = list[str](), value[1:-1].strip()
    while rest:
        quoted = _QUOTED.match(rest) if rest[0] in "\"'" else None
        end = rest.find(",", quoted.end(1) if quoted else 0)
        item, rest = (rest, "") if end < 0 else (rest[:end], rest[end + 1 :].strip())
        items.append(_scalar(item, number))
    return items


def _scalar(value: str, number: int) -> str:
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
