"""Reads a file of memories, whatever kind it is, and checks all of it before anything is taken in."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from annabelle.core.errors import InvalidArguments
from annabelle.core.memory import Trust
from annabelle.servers.kit import StopSign
from annabelle.servers.memory.files import document, facts_page, people_pages, profile_page
from annabelle.servers.memory.files.marks import bad_line
from annabelle.servers.memory.files.outline import read_page
from annabelle.servers.memory.files.rows import ORDER, AnyRow, FactRow
from annabelle.servers.memory.profile_document import checked
from annabelle.servers.memory.safety import secret_kind
from annabelle.servers.memory.statement import read_statement

PAGES = ("profile.md", "facts.md", "contacts.md", "projects.md")
DOCUMENT = "memory.json"
FOLDER = (*PAGES, DOCUMENT)

_CHECKED_AT_ONCE = 200


@dataclass(slots=True)
class Reading:
    """What a file holds: how many rows of each kind, and each of them when it is asked for."""

    names: list[str]
    digest: str
    rows: list[Callable[[], AnyRow]] = field(default_factory=list[Callable[[], AnyRow]])
    kinds: Counter[str] = field(default_factory=Counter[str])
    secrets: Counter[str] = field(default_factory=Counter[str])
    notes: list[str] = field(default_factory=list[str])

    def between(self, start: int, stop: int) -> Iterator[AnyRow]:
        """Some of the rows. Here it is read what a fact is about, so that the writer need not."""
        return (_stated(make()) for make in self.rows[start:stop])


def read_all(
    files: list[tuple[str, bytes]], trust: Trust, prune: bool, stop: StopSign, last: Reading | None = None
) -> Reading:
    """Read files and check every row. The first thing that is wrong refuses all of them, with its line.

    `last` saves the work when these are the files it was made of.
    """
    digest = hashlib.sha256(repr((trust, prune)).encode())
    for name, data in files:
        digest.update(f"\n{name} {len(data)}\n".encode())
        digest.update(data)
    if last is not None and last.digest == digest.hexdigest():
        return last
    # Of a folder, the pages are what a person edits; the document is for a folder that has nothing else.
    pages = [one for one in files if one[0] != DOCUMENT] or files
    reading = Reading([name for name, _ in pages], digest.hexdigest())
    made: list[tuple[int, Callable[[], AnyRow]]] = []
    kind_in = lru_cache(1000)(secret_kind)  # rows share most of what they say of their origin
    for name, data in pages:
        for number, make in enumerate(_rows(name, _text(name, data), reading)):
            if number % _CHECKED_AT_ONCE == 0:
                stop.check()
            row = make()
            if kind := next((kind for words in row.words() if words and (kind := kind_in(words))), None):
                reading.secrets[kind] += 1
                continue
            reading.kinds[row.kind] += 1
            made.append((ORDER.index(row.kind), make))
    made.sort(key=lambda one: one[0])  # stable: within a kind the file's own order stays
    reading.rows = [make for _, make in made]
    return reading


def _rows(name: str, text: str, reading: Reading) -> Iterator[Callable[[], AnyRow]]:
    ending = name.lower().rsplit(".", 1)[-1]
    if ending in ("jsonl", "ndjson"):
        for found in document.find_lines(text):
            yield lambda found=found: document.row_at(text, found)
    elif ending == "json":
        for found in document.find_rows(text):
            yield lambda found=found: document.row_at(text, found)
    elif ending in ("md", "markdown"):
        for _, row in _page(name, text, reading):
            yield lambda row=row: row
    else:
        raise InvalidArguments(
            f"{name[:100]} is not a kind of file that is imported.",
            hint="There are .json, .jsonl and the .md pages of an export.",
            field="file_path",
        )


def _page(name: str, text: str, reading: Reading) -> Iterator[tuple[int, AnyRow]]:
    page = read_page(text)
    kind = page.kind or name.lower().rsplit(".", 1)[0]
    if page.version > 1:
        raise bad_line(1, f"this page is of version {page.version}, made by a newer Annabelle")
    if kind == facts_page.KIND:
        yield from facts_page.read_facts(page)
    elif kind == profile_page.KIND:
        row = profile_page.read_profile(page)
        checked(dict(row.content))
        yield 1, row
    elif kind == people_pages.CONTACTS:
        yield from people_pages.read_contacts(page)
    elif kind == people_pages.PROJECTS:
        yield from people_pages.read_projects(page)
    else:
        raise InvalidArguments(
            f"{name[:100]} is not a page that can be imported.",
            hint=f"Pages are {', '.join(PAGES)}; conversations come from the JSON export.",
            field="file_path",
        )


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise bad_line(line, f"{name[:100]} is not UTF-8 text there") from error


def _stated(row: AnyRow) -> AnyRow:
    if not isinstance(row, FactRow) or row.id is not None or row.about is not None:
        return row
    stated = read_statement(row.fact)
    return row.model_copy(update={"about": stated.key}) if stated else row
