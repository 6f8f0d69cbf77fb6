"""One note as a Markdown file: a head of a few lines between dashes, then the text. People may write either."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from annabelle.servers.notes.shelf import Paper

_HEAD = re.compile(r"---[ \t]*\n(.*?)\n?---[ \t]*(?:\n|$)", re.DOTALL)
_LINE = re.compile(r"([A-Za-z_][\w-]{0,40})\s*:\s*(.*)")
_OWN = ("id", "title", "tags", "created")
_MAX_HEAD = 10_000


@dataclass(frozen=True, slots=True)
class Note:
    """A note, whoever wrote it. Lines of the head that are not ours are kept as they are."""

    id: str
    title: str
    body: str
    tags: tuple[str, ...] = ()
    created: datetime | None = None
    foreign: tuple[str, ...] = field(default=())

    def write(self) -> str:
        head = [f"id: {self.id}", f"title: {_one_line(self.title)}", f"tags: [{', '.join(self.tags)}]"]
        if self.created is not None:
            head.append(f"created: {self.created.isoformat(timespec='seconds')}")
        return "\n".join(["---", *head, *self.foreign, "---", "", self.body.strip("\n"), ""])

    def changed(self, **values: object) -> Note:
        return replace(self, **values)  # pyright: ignore[reportArgumentType]  the fields' names are checked by replace


def read_note(paper: Paper) -> Note:
    """The note in a file. One without a head is a note all the same: its name is its title, its place its id."""
    head, body = _split(paper.text)
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
        id=known["id"] if re.fullmatch(r"n-[0-9a-f]{8,16}", known.get("id", "")) else _id_of(paper.name),
        title=known.get("title") or _heading(body) or stem,
        body=body.strip("\n"),
        tags=read_tags(known.get("tags", "")),
        created=_time(known.get("created", "")),
        foreign=tuple(foreign),
    )


def read_tags(text: str) -> tuple[str, ...]:
    """Tags as a list in brackets, or as words between commas."""
    words = (clean_tag(word) for word in text.strip().strip("[]").split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def clean_tag(text: str) -> str:
    """A tag as it is kept: small, without the sign before it, without anything that ends a list."""
    return re.sub(r"[\[\],:\s\x00-\x1f]+", "-", text.strip().strip("\"'#").casefold()).strip("-")[:40]


def _split(text: str) -> tuple[str, str]:
    match = _HEAD.match(text[:_MAX_HEAD])
    # A line of dashes at the top may also just be a line: a head has a key in its first line.
    if match is None or _LINE.match(match[1].lstrip("\n")) is None:
        return "", text
    return match[1], text[match.end() :]


def _heading(body: str) -> str | None:
    first = next((line.strip() for line in body.split("\n") if line.strip()), "")
    return first.lstrip("#").strip()[:200] or None if first.startswith("#") else None


def _id_of(name: str) -> str:
    return f"n-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:10]}"


def _time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _one_line(text: str) -> str:
    return " ".join(text.split())
