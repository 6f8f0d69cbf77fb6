"""Reads import files of any kind and checks all rows before anything is imported."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from annabelle.core.errors import InvalidArguments
from annabelle.core.trust import Trust
from annabelle.servers.kit import StopSign
from annabelle.servers.memory.arguments import find_secret_kind
from annabelle.servers.memory.files import json_document, pages
from annabelle.servers.memory.files.markdown import line_error, read_page
from annabelle.servers.memory.files.rows import ORDER, AnyImportRow, FactImportRow
from annabelle.servers.memory.statement import read_statement

PAGES = tuple(f"{kind}.md" for kind in pages.READERS)
DOCUMENT = "memory.json"
FOLDER = (*PAGES, DOCUMENT)

_CHECKED_AT_ONCE = 200


@dataclass(slots=True)
class ImportContent:
    """Checked rows of an import, each parsed again on demand."""

    names: list[str]
    digest: str
    rows: list[Callable[[], AnyImportRow]] = field(default_factory=list[Callable[[], AnyImportRow]])
    secrets: Counter[str] = field(default_factory=Counter[str])
    notes: list[str] = field(default_factory=list[str])

    def iter_rows(self, start: int, stop: int) -> Iterator[AnyImportRow]:
        """Parse some of the rows. Statements are read here, outside the write transaction."""
        return (_with_statement(make()) for make in self.rows[start:stop])


def read_import(
    files: list[tuple[str, bytes]], trust: Trust, prune: bool, stop: StopSign, last: ImportContent | None = None
) -> ImportContent:
    """Read files and check every row; the first problem refuses all. Returns `last` if its files were the same."""
    digest = hashlib.sha256(repr((trust, prune)).encode())
    for name, data in files:
        digest.update(f"\n{name} {len(data)}\n".encode())
        digest.update(data)
    if last is not None and last.digest == digest.hexdigest():
        return last
    # In a folder, people edit the pages. The document is used only if there are no pages.
    chosen = [one for one in files if one[0] != DOCUMENT] or files
    reading = ImportContent([name for name, _ in chosen], digest.hexdigest())
    made: list[tuple[int, Callable[[], AnyImportRow]]] = []
    kind_in = lru_cache(1000)(find_secret_kind)  # most rows share their origin's texts
    for name, data in chosen:
        for number, make in enumerate(_iter_file_rows(name, _decode_file(name, data))):
            if number % _CHECKED_AT_ONCE == 0:
                stop.check()
            row = make()
            if kind := next((kind for words in row.iter_texts() if words and (kind := kind_in(words))), None):
                reading.secrets[kind] += 1
                continue
            made.append((ORDER.index(row.kind), make))
    made.sort(key=lambda one: one[0])  # stable: keeps the file's order within a kind
    reading.rows = [make for _, make in made]
    return reading


def _iter_file_rows(name: str, text: str) -> Iterator[Callable[[], AnyImportRow]]:
    ending = name.lower().rsplit(".", 1)[-1]
    if ending in ("md", "markdown"):
        for row in _read_page_rows(name, text):
            yield lambda row=row: row
        return
    find_rows = _DOCUMENTS.get(ending)
    if find_rows is None:
        raise InvalidArguments(
            f"{name[:100]} is not a kind of file that is imported.",
            hint="There are .json, .jsonl and the .md pages of an export.",
            field="file_path",
        )
    for found in find_rows(text):
        yield lambda found=found: json_document.read_row(text, found)


_DOCUMENTS = {
    "json": json_document.find_rows,
    "jsonl": json_document.find_json_lines,
    "ndjson": json_document.find_json_lines,
}


def _read_page_rows(name: str, text: str) -> Iterable[AnyImportRow]:
    page = read_page(text)
    if page.version > 1:
        raise line_error(1, f"this page is of version {page.version}, made by a newer Annabelle")
    read = pages.READERS.get(page.kind or name.lower().rsplit(".", 1)[0])
    if read is None:
        raise InvalidArguments(
            f"{name[:100]} is not a page that can be imported.",
            hint=f"Pages are {', '.join(PAGES)}; conversations come from the JSON export.",
            field="file_path",
        )
    return read(page)


def _decode_file(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise line_error(line, f"{name[:100]} is not UTF-8 text there") from error


def _with_statement(row: AnyImportRow) -> AnyImportRow:
    if not isinstance(row, FactImportRow) or row.id is not None or row.about is not None:
        return row
    stated = read_statement(row.fact)
    return row.model_copy(update={"about": stated.key}) if stated else row
