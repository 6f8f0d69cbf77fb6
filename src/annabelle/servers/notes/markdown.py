"""Parses and writes notes and to-do lists as Markdown. Lines a person wrote are kept."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal

from annabelle.servers.notes.notes_folder import MarkdownFile

_HEAD = re.compile(r"---[ \t]*\n(.*?)\n?---[ \t]*(?:\n|$)", re.DOTALL)
_LINE = re.compile(r"([A-Za-z_][\w-]{0,40})\s*:\s*(.*)")
_OWN = ("id", "title", "tags", "created")
_MAX_HEAD = 10_000


@dataclass(frozen=True, slots=True)
class Note:
    """A note. Unknown lines of its front matter are kept."""

    id: str
    title: str
    body: str
    tags: tuple[str, ...] = ()
    created: datetime | None = None
    foreign: tuple[str, ...] = field(default=())

    def to_markdown(self) -> str:
        head = [f"id: {self.id}", f"title: {_one_line(self.title)}", f"tags: [{', '.join(self.tags)}]"]
        if self.created is not None:
            head.append(f"created: {self.created.isoformat(timespec='seconds')}")
        return "\n".join(["---", *head, *self.foreign, "---", "", self.body.strip("\n"), ""])

    def with_changes(self, **values: object) -> Note:
        return replace(self, **values)  # pyright: ignore[reportArgumentType]  the fields' names are checked by replace


def parse_note(paper: MarkdownFile) -> Note:
    """Parse a note. Without front matter, its title and id come from its heading or file name."""
    head, body = _split_head(paper.text)
    known: dict[str, str] = {}
    foreign: list[str] = []
    for line in head.split("\n"):
        match = _LINE.fullmatch(line.strip())
        if match is not None and match[1].lower() in _OWN and match[1].lower() not in known:
            known[match[1].lower()] = match[2].strip().strip("\"'")
        elif line.strip():
            foreign.append(line)
    stem = PurePosixPath(paper.name).stem
    return Note(
        id=known["id"] if re.fullmatch(r"n-[0-9a-f]{8,16}", known.get("id", "")) else _id_from_name(paper.name),
        title=known.get("title") or _heading(body) or stem,
        body=body.strip("\n"),
        tags=parse_tags(known.get("tags", "")),
        created=_parse_time(known.get("created", "")),
        foreign=tuple(foreign),
    )


def parse_tags(text: str) -> tuple[str, ...]:
    """Parse tags in brackets or separated by commas."""
    words = (clean_tag(word) for word in text.strip().strip("[]").split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def clean_tag(text: str) -> str:
    """Normalize a tag: lower case, no leading #, no list separators, at most 40 characters."""
    return re.sub(r"[\[\],:\s\x00-\x1f]+", "-", text.strip().strip("\"'#").casefold()).strip("-")[:40]


def _split_head(text: str) -> tuple[str, str]:
    match = _HEAD.match(text[:_MAX_HEAD])
    # A line of dashes may also be a rule: front matter has a key in its first line.
    if match is None or _LINE.match(match[1].lstrip("\n")) is None:
        return "", text
    return match[1], text[match.end() :]


def _heading(body: str) -> str | None:
    first = next((line.strip() for line in body.split("\n") if line.strip()), "")
    return first.lstrip("#").strip()[:200] or None if first.startswith("#") else None


def _id_from_name(name: str) -> str:
    return f"n-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:10]}"


def _parse_time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _one_line(text: str) -> str:
    return " ".join(text.split())


Priority = Literal["low", "normal", "high"]

_ITEM = re.compile(r"(\s*[-*+]\s+)\[([ xX])\]\s+(.*)")
_MARK = re.compile(r"\s*<!--\s*(t-[0-9a-f]{8,16})\s*-->\s*$")
_FACTS = re.compile(
    r"\s*\(((?:due|done) \d{4}-\d\d-\d\d|high|low)((?:, (?:(?:due|done) \d{4}-\d\d-\d\d|high|low))*)\)$"
)


@dataclass(frozen=True, slots=True)
class Todo:
    id: str
    text: str
    done: bool = False
    due: str | None = None
    priority: Priority = "normal"
    finished: str | None = None
    line: int = -1
    lead: str = "- "

    def to_markdown(self) -> str:
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
    name: str
    lines: tuple[str, ...]
    items: tuple[Todo, ...]

    def to_markdown(self) -> str:
        """The file with an id for every item. Unchanged items keep their lines, which may contain more than an item
        has."""
        lines = list(self.lines)
        for item in self.items:
            mark = _MARK.search(lines[item.line])
            if mark is None or mark[1] != item.id:
                lines[item.line] = f"{_MARK.sub('', lines[item.line]).rstrip()} <!-- {item.id} -->"
        return "\n".join(lines).rstrip("\n") + "\n"

    def add(self, item: Todo) -> TodoList:
        """Add after the last item, or at the end."""
        place = self.items[-1].line + 1 if self.items else len(self.lines)
        lines = (*self.lines[:place], item.to_markdown(), *self.lines[place:])
        return TodoList(self.name, lines, (*self.items, replace(item, line=place)))

    def change(self, item: Todo) -> TodoList:
        lines = (*self.lines[: item.line], item.to_markdown(), *self.lines[item.line + 1 :])
        return TodoList(self.name, lines, tuple(item if one.id == item.id else one for one in self.items))

    def remove(self, item: Todo) -> TodoList:
        lines = (*self.lines[: item.line], *self.lines[item.line + 1 :])
        rest = (one for one in self.items if one.id != item.id)
        moved = tuple(replace(one, line=one.line - 1) if one.line > item.line else one for one in rest)
        return TodoList(self.name, lines, moved)


def make_list(name: str) -> TodoList:
    return TodoList(name, (f"# {name}", ""), ())


def parse_list(paper: MarkdownFile) -> TodoList:
    """Parse a list. Items without an id get a stable one from their text."""
    lines = paper.text.rstrip("\n").split("\n")
    heading = next((line.lstrip("#").strip() for line in lines if line.startswith("# ")), "")
    items: list[Todo] = []
    taken: set[str] = set()
    turns: dict[str, int] = {}
    for number, line in enumerate(lines):
        match = _ITEM.fullmatch(line)
        if match is not None:
            item = _parse_item(match, number, paper.name, taken, turns)
            taken.add(item.id)
            items.append(item)
    return TodoList(heading or PurePosixPath(paper.name).stem, tuple(lines), tuple(items))


def _parse_item(match: re.Match[str], number: int, file: str, taken: set[str], turns: dict[str, int]) -> Todo:
    text = match[3]
    mark = _MARK.search(text)
    text = text[: mark.start()] if mark else text.rstrip()
    facts = _FACTS.search(text)
    said = f"{facts[1]}{facts[2]}".split(", ") if facts else []
    text = (text[: facts.start()] if facts else text).strip()
    known = {word.split(" ")[0]: word.partition(" ")[2] for word in said}
    key = mark[1] if mark else ""
    while not key or key in taken:
        # Continue from the last item with the same text, so that many equal lines stay fast.
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
