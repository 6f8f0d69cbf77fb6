"""A to-do list as a Markdown checklist. Every line a person wrote stays as it is; only items are ours to change."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from annabelle.servers.notes.shelf import Paper

Priority = Literal["low", "normal", "high"]

_ITEM = re.compile(r"(\s*[-*+]\s+)\[([ xX])\]\s+(.*)")
_MARK = re.compile(r"\s*<!--\s*(t-[0-9a-f]{8,16})\s*-->\s*$")
_FACTS = re.compile(
    r"\s*\(((?:due|done) \d{4}-\d\d-\d\d|high|low)((?:, (?:(?:due|done) \d{4}-\d\d-\d\d|high|low))*)\)$"
)


@dataclass(frozen=True, slots=True)
class Todo:
    """One item, and the line it stands on."""

    id: str
    text: str
    done: bool = False
    due: str | None = None
    priority: Priority = "normal"
    finished: str | None = None
    line: int = -1
    lead: str = "- "

    def write(self) -> str:
        facts = [
            f"due {self.due}" if self.due else "",
            self.priority if self.priority != "normal" else "",
            f"done {self.finished}" if self.finished else "",
        ]
        said = ", ".join(filter(None, facts))
        text = " ".join(self.text.replace("<!--", "‹!--").split())
        return f"{self.lead}[{'x' if self.done else ' '}] {text}{f' ({said})' if said else ''} <!-- {self.id} -->"


@dataclass(frozen=True, slots=True)
class TodoList:
    """A list: its name, its lines, and the items among them."""

    name: str
    lines: tuple[str, ...]
    items: tuple[Todo, ...]

    def write(self) -> str:
        """The file with every item's id in it, so that it stays the same from now on. Of items that were not changed
        nothing else is written anew: a person may have put more into the line than an item has."""
        lines = list(self.lines)
        for item in self.items:
            mark = _MARK.search(lines[item.line])
            if mark is None or mark[1] != item.id:
                lines[item.line] = f"{_MARK.sub('', lines[item.line]).rstrip()} <!-- {item.id} -->"
        return "\n".join(lines).rstrip("\n") + "\n"

    def add(self, item: Todo) -> TodoList:
        """After the last item, or at the end of a list that has none."""
        place = self.items[-1].line + 1 if self.items else len(self.lines)
        lines = (*self.lines[:place], item.write(), *self.lines[place:])
        return TodoList(self.name, lines, (*self.items, replace(item, line=place)))

    def change(self, item: Todo) -> TodoList:
        lines = (*self.lines[: item.line], item.write(), *self.lines[item.line + 1 :])
        return TodoList(self.name, lines, tuple(item if one.id == item.id else one for one in self.items))

    def remove(self, item: Todo) -> TodoList:
        lines = (*self.lines[: item.line], *self.lines[item.line + 1 :])
        rest = (one for one in self.items if one.id != item.id)
        moved = tuple(replace(one, line=one.line - 1) if one.line > item.line else one for one in rest)
        return TodoList(self.name, lines, moved)


def new_list(name: str) -> TodoList:
    return TodoList(name, (f"# {name}", ""), ())


def read_list(paper: Paper) -> TodoList:
    """The list in a file. Items without an id get one from their text, the same at every reading until it is written
    down."""
    lines = paper.text.rstrip("\n").split("\n")
    heading = next((line.lstrip("#").strip() for line in lines if line.startswith("# ")), "")
    items: list[Todo] = []
    taken: set[str] = set()
    turns: dict[str, int] = {}
    for number, line in enumerate(lines):
        match = _ITEM.fullmatch(line)
        if match is not None:
            item = _item(match, number, paper.name, taken, turns)
            taken.add(item.id)
            items.append(item)
    return TodoList(heading or PurePosixPath(paper.name).stem, tuple(lines), tuple(items))


def _item(match: re.Match[str], number: int, file: str, taken: set[str], turns: dict[str, int]) -> Todo:
    text = match[3]
    mark = _MARK.search(text)
    text = text[: mark.start()] if mark else text.rstrip()
    facts = _FACTS.search(text)
    said = f"{facts[1]}{facts[2]}".split(", ") if facts else []
    text = (text[: facts.start()] if facts else text).strip()
    known = {word.split(" ")[0]: word.partition(" ")[2] for word in said}
    key = mark[1] if mark else ""
    while not key or key in taken:
        # Counted on from the last item of the same text: a thousand lines alike are not compared a million times.
        turn = turns.get(text, 0)
        turns[text] = turn + 1
        digest = hashlib.sha256("\n".join((file, text, str(turn))).encode(errors="replace"))
        key = f"t-{digest.hexdigest()[:10]}"
    return Todo(
        id=key,
        text=text,
        done=match[2] != " ",
        due=known.get("due"),
        priority="high" if "high" in known else "low" if "low" in known else "normal",
        finished=known.get("done"),
        line=number,
        lead=match[1],
    )
