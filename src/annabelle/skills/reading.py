"""Makes a playbook of a Markdown file, or says what is wrong with the file."""

from __future__ import annotations

import re
from pathlib import Path

from annabelle.skills.front_matter import Document, FrontMatterMistake, parse
from annabelle.skills.playbook import Playbook

MOST_BYTES = 64 * 1024
_MOST_KEYWORDS = 200
_MOST_TOOLS = 50
_NAME = re.compile(r"[\w-]{1,64}")
_VALUES = frozenset({"name", "description", "priority"})
_LISTS = frozenset({"keywords", "required_tools", "servers"})


class PlaybookMistake(ValueError):
    """What is wrong with a file, in a few words for the log."""


def read_playbook(path: Path) -> Playbook:
    """The playbook in a file; OSError when it can not be read."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PlaybookMistake(f"it is longer than {MOST_BYTES // 1024} KB")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise PlaybookMistake("it is not UTF-8") from None
    return playbook_from(text, path.stem)


def playbook_from(text: str, stem: str) -> Playbook:
    """The playbook that a text describes; without a name of its own it is called like its file."""
    try:
        document = parse(text)
    except FrontMatterMistake as mistake:
        raise PlaybookMistake(str(mistake)) from mistake
    _check_names(document)
    name, keywords = document.values.get("name", stem), document.lists.get("keywords", [])
    if _NAME.fullmatch(name) is None:
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
        priority=_number("priority", document.values.get("priority", "0"), 0, 100),
        description=document.values.get("description", ""),
        servers=tuple(document.lists.get("servers", ())),
    )


def _check_names(document: Document) -> None:
    unknown = sorted(set(document.values) - _VALUES | set(document.lists) - _LISTS)
    for name in unknown:
        if name in _VALUES:
            raise PlaybookMistake(f"{name} has no value")
        if name in _LISTS:
            raise PlaybookMistake(f"{name} is to be a list")
        raise PlaybookMistake(f"{name} is not known; known are {', '.join(sorted(_VALUES | _LISTS))}")


def _number(name: str, value: str, least: int, most: int) -> int:
    if re.fullmatch(r"\d{1,4}", value, re.ASCII) is None or not least <= int(value) <= most:
        raise PlaybookMistake(f"{name} is to be a number from {least} to {most}")
    return int(value)
