"""Reads a page as an outline: headings, bullets, bullets below bullets, and lines that go on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from annabelle.servers.memory.files.marks import bad_line

_BULLET = re.compile(r"( *)[-*+](?: +(.*)|)$")
_HEADING = re.compile(r"(#{1,6}) +(.*?)\s*$")
_HEAD = re.compile(r"<!-- annabelle (\w+) (\d+)((?: [\w-]+=\S+)*) -->")
END = "<!-- end of {what} -->"


@dataclass(slots=True)
class Item:
    """One bullet with everything that belongs to it."""

    line: int
    lines: list[str]
    children: list[Item] = field(default_factory=list["Item"])

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


@dataclass(slots=True)
class Section:
    """A second-level heading and the bullets below it."""

    line: int
    title: str
    items: list[Item] = field(default_factory=list[Item])


@dataclass(slots=True)
class Page:
    """A whole page. What it says of itself is there only when it was exported."""

    kind: str | None = None
    version: int = 0
    facts: dict[str, str] = field(default_factory=dict[str, str])
    sections: list[Section] = field(default_factory=list[Section])


def head(what: str, **facts: object) -> str:
    """What an exported page says of itself, at its top."""
    return f"<!-- annabelle {what} 1{''.join(f' {name}={value}' for name, value in facts.items())} -->"


def read_page(text: str) -> Page:
    """The outline of a page. A line that belongs to nothing, or a page that ends too early, is refused."""
    page, reader = Page(), _Reader()
    ended, number = False, 0
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        inside = raw.lstrip()
        line = raw[: len(raw) - len(inside)].expandtabs(4) + inside.rstrip()
        if found := _HEAD.fullmatch(line.strip()):
            page.kind, page.version = found[1], int(found[2])
            page.facts = dict(pair.split("=", 1) for pair in found[3].split())
        elif page.kind is not None and line.strip() == END.format(what=page.kind):
            ended = True
        elif line:
            reader.take(number, line)
        else:
            reader.blank()
    page.sections = reader.sections
    if page.kind is not None and not ended:
        raise bad_line(number, "the page ends before its last line", "It may have been cut off; export it again.")
    return page


class _Reader:
    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._open: list[tuple[int, Item]] = []
        self._blanks = 0

    def blank(self) -> None:
        self._blanks += 1

    def take(self, number: int, line: str) -> None:
        if heading := _HEADING.match(line):
            self._heading(number, len(heading[1]), heading[2])
        elif self.sections:
            self._below(number, line)
        elif _BULLET.match(line):  # any other line before the first section is for people
            raise bad_line(number, "it stands in no section", "Put it below its heading, which begins with ##.")
        self._blanks = 0

    def _heading(self, number: int, level: int, title: str) -> None:
        if level == 2:
            self.sections.append(Section(number, title))
            self._open = []
        elif self.sections:
            raise bad_line(number, "a heading of this level has no meaning here", "Sections begin with ##.")

    def _below(self, number: int, line: str) -> None:
        bullet = _BULLET.match(line)
        indent = len(line) - len(line.lstrip())
        while self._open and bullet and self._open[-1][0] >= indent:
            self._open.pop()
        if bullet:
            item = Item(number, [bullet[2] or ""])
            (self._open[-1][1].children if self._open else self.sections[-1].items).append(item)
            self._open.append((indent, item))
            return
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        if not self._open:
            raise bad_line(number, "it belongs to nothing", "A line of its own begins with a dash.")
        above, item = self._open[-1]
        item.lines += [""] * self._blanks
        item.lines.append(line[min(indent, above + 2) :])


def bullet(text: str, depth: int = 0) -> str:
    """A text as a bullet, its further lines below it."""
    first, *rest = text.split("\n")
    margin = "  " * depth
    return "\n".join([f"{margin}- {first}".rstrip(), *(f"{margin}  {line}" if line else "" for line in rest)])
