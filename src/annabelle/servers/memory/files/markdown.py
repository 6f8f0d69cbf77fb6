"""Markdown of exported pages: escaping, row marks and the outline reader."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from annabelle.core.errors import InvalidArguments
from annabelle.core.trust import Trust

if TYPE_CHECKING:
    from annabelle.store.memory.conversations import StoredTurn


_ENTITY = re.compile(r"&(?=(?:amp|lt|gt);)")
_LINE_SIGN = re.compile(r"^(\s*)(\\*)([-*#+])")
_ESCAPED_SIGN = re.compile(r"^(\s*)\\(\\*)(?=[-*#+])")
_MARK = re.compile(r"[ \t]*<!-- (\d{1,18}) (trusted|untrusted) ([0-9a-f]{8}) -->")


@dataclass(frozen=True, slots=True)
class RowMark:
    """Id of the row a piece of a page was written from, with a checksum of its text."""

    id: int
    trust: Trust
    check: str

    def __str__(self) -> str:
        return f"<!-- {self.id} {self.trust} {self.check} -->"


def checksum(*values: object) -> str:
    """Short checksum that shows whether exported text was edited. Ignores white space."""
    plain = [" ".join(value.split()) if isinstance(value, str) else value for value in values]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]


def escape(text: str) -> str:
    """Escape text so that nothing in it reads as a comment, a heading or a bullet."""
    plain = _ENTITY.sub("&amp;", text)
    first, *rest = plain.split("\n")
    lines = [first, *(_LINE_SIGN.sub(r"\1\\\2\3", line) for line in rest)]
    return "\n".join(lines).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def unescape(text: str) -> str:
    first, *rest = text.split("\n")
    lines = [first, *(_ESCAPED_SIGN.sub(r"\1\2", line) for line in rest)]
    return "\n".join(lines).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def take_mark(text: str, line: int) -> tuple[str, RowMark | None]:
    """Split a piece of a page into text and mark. Raises if the mark is damaged."""
    found = list(_MARK.finditer(text))
    if len(found) > 1:
        raise line_error(line, "two lines of the export ran together here", "Put them on lines of their own.")
    rest = _MARK.sub("", text)
    if "<!--" in rest or "-->" in rest:
        raise line_error(line, "the comment at its end is damaged", "Remove the whole comment, or export anew.")
    if not found:
        return rest, None
    number, trust, check = found[0].groups()
    return rest, RowMark(int(number), "trusted" if trust == "trusted" else "untrusted", check)


def line_error(line: int, problem: str, hint: str | None = None) -> InvalidArguments:
    return InvalidArguments(f"Line {line} can not be imported: {problem}. Nothing was imported.", hint=hint)


_BULLET = re.compile(r"( *)[-*+](?: +(.*)|)$")
_HEADING = re.compile(r"(#{1,6}) +(.*?)\s*$")
_HEAD = re.compile(r"<!-- annabelle (\w+) (\d+)((?: [\w-]+=\S+)*) -->")
END = "<!-- end of {what} -->"


@dataclass(slots=True)
class OutlineItem:
    line: int
    lines: list[str]
    children: list[OutlineItem] = field(default_factory=list["OutlineItem"])

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


@dataclass(slots=True)
class OutlineSection:
    line: int
    title: str
    items: list[OutlineItem] = field(default_factory=list[OutlineItem])


@dataclass(slots=True)
class PageOutline:
    """A whole page. `kind`, `version` and `facts` are set only if it was exported."""

    kind: str | None = None
    version: int = 0
    facts: dict[str, str] = field(default_factory=dict[str, str])
    sections: list[OutlineSection] = field(default_factory=list[OutlineSection])


def format_head(what: str, **facts: object) -> str:
    return f"<!-- annabelle {what} 1{''.join(f' {name}={value}' for name, value in facts.items())} -->"


def read_page(text: str) -> PageOutline:
    """Parse the outline of a page. Raises for a line without a place, or a truncated page."""
    page, reader = PageOutline(), _OutlineReader()
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
            reader.add_line(number, line)
        else:
            reader.add_blank()
    page.sections = reader.sections
    if page.kind is not None and not ended:
        raise line_error(number, "the page ends before its last line", "It may have been cut off; export it again.")
    return page


class _OutlineReader:
    def __init__(self) -> None:
        self.sections: list[OutlineSection] = []
        self._open: list[tuple[int, OutlineItem]] = []
        self._blanks = 0

    def add_blank(self) -> None:
        self._blanks += 1

    def add_line(self, number: int, line: str) -> None:
        if heading := _HEADING.match(line):
            self._heading(number, len(heading[1]), heading[2])
        elif self.sections:
            self._below(number, line)
        elif _BULLET.match(line):  # other lines before the first section are ignored
            raise line_error(number, "it stands in no section", "Put it below its heading, which begins with ##.")
        self._blanks = 0

    def _heading(self, number: int, level: int, title: str) -> None:
        if level == 2:
            self.sections.append(OutlineSection(number, title))
            self._open = []
        elif self.sections:
            raise line_error(number, "a heading of this level has no meaning here", "Sections begin with ##.")

    def _below(self, number: int, line: str) -> None:
        bullet = _BULLET.match(line)
        indent = len(line) - len(line.lstrip())
        while self._open and bullet and self._open[-1][0] >= indent:
            self._open.pop()
        if bullet:
            item = OutlineItem(number, [bullet[2] or ""])
            (self._open[-1][1].children if self._open else self.sections[-1].items).append(item)
            self._open.append((indent, item))
            return
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        if not self._open:
            raise line_error(number, "it belongs to nothing", "A line of its own begins with a dash.")
        above, item = self._open[-1]
        item.lines += [""] * self._blanks
        item.lines.append(line[min(indent, above + 2) :])


def format_bullet(text: str, depth: int = 0) -> str:
    """Format text as a bullet, with further lines indented below it."""
    first, *rest = text.split("\n")
    margin = "  " * depth
    return "\n".join([f"{margin}- {first}".rstrip(), *(f"{margin}  {line}" if line else "" for line in rest)])


CONVERSATIONS_KIND = "conversations"


def write_month(month: str, turns: Iterable[StoredTurn], zone: ZoneInfo, agent: str) -> Iterator[str]:
    yield f"# Conversations of {month}\n\n<!-- annabelle {CONVERSATIONS_KIND} 1 -->\n"
    for turn in turns:
        mark = " (untrusted)" if turn.trust == "untrusted" else ""
        yield f"\n## {turn.said_at.astimezone(zone):%Y-%m-%d %H:%M} · {escape(turn.session_id)}{mark}\n"
        for speaker, text in ((turn.speaker or "user", turn.user_message), (agent, turn.agent_response)):
            if text:
                yield f"\n**{escape(speaker)}:** {escape(text)}\n"
    yield f"\n<!-- end of {CONVERSATIONS_KIND} -->\n"
