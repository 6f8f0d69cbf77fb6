"""The document that holds everything: JSON with one row per line, so that it is written and read piece by piece."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.checking import problem_of
from annabelle.servers.memory.files.marks import bad_line
from annabelle.servers.memory.files.rows import (
    AnyRow,
    ContactRow,
    FactRow,
    ProfileRow,
    ProjectRow,
    SourceRow,
    TurnRow,
    VersionRow,
)

VERSION = 1
KEY = "annabelle_memory"
SECTIONS: dict[str, type[AnyRow]] = {
    "contacts": ContactRow,
    "projects": ProjectRow,
    "project_sources": SourceRow,
    "profile_history": VersionRow,
    "conversations": TurnRow,
    "facts": FactRow,
}

_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


def write_document(
    about: JsonObject, profile: JsonObject, sections: Iterable[tuple[str, Iterable[JsonObject]]]
) -> Iterator[str]:
    """The document, piece by piece."""
    top = {KEY: VERSION, **about, "profile": profile}
    yield "{\n" + ",\n".join(f"{json.dumps(name)}: {_json(value)}" for name, value in top.items())
    for name, rows in sections:
        yield f",\n{json.dumps(name)}: ["
        separator = "\n"
        for row in rows:
            yield f"{separator}{_json(row)}"
            separator = ",\n"
        yield "\n]"
    yield "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Found:
    """Where a row stands in a text, and what it is."""

    model: type[AnyRow]
    start: int
    end: int | None = None


def find_rows(text: str) -> list[Found]:
    """Where every row of a document stands. One that ends too early, or is of a later version, is refused."""
    reader = _Reader(text)
    if reader.peek() == "[":
        return [Found(FactRow, start) for start in reader.elements()]
    found: list[Found] = []
    version: object = None
    for name in reader.names():
        if name in SECTIONS and reader.peek() == "[":
            found += [Found(SECTIONS[name], start) for start in reader.elements()]
        elif name == "profile":
            found.append(Found(ProfileRow, reader.at))
            reader.value()
        else:
            value = reader.value()
            version = value if name == KEY else version
    if not isinstance(version, int):
        raise InvalidArguments(
            "This is no export of a memory. Nothing was imported.",
            hint='Export one with format json, or write lines of {"fact": …, "category": …} into a .jsonl file.',
        )
    if version > VERSION:
        raise InvalidArguments(
            f"This export is of version {version}; this Annabelle reads up to {VERSION}. Nothing was imported.",
            hint="Import it with the Annabelle that made it, or a newer one.",
        )
    return found


def find_lines(text: str) -> list[Found]:
    """Where every row of a file of JSON lines stands."""
    found, at = list[Found](), 0
    for line in text.split("\n"):
        if line.strip():
            found.append(Found(FactRow, at + len(line) - len(line.lstrip()), at + len(line)))
        at += len(line) + 1
    return found


def row_at(text: str, found: Found) -> AnyRow:
    """The row that stands there, checked."""
    try:
        value, end = _decoder.raw_decode(text, found.start)
        if found.end is not None and text[end : found.end].strip():
            raise ValueError("there is something behind it")
        return found.model.model_validate(value)
    except ValidationError as error:
        raise bad_line(line_of(text, found.start), problem_of(error)) from error
    except (ValueError, RecursionError) as error:
        raise bad_line(line_of(text, found.start), "it is not JSON") from error


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


class _Reader:
    """Walks through JSON without holding what it passes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._skip()

    def peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def value(self) -> object:
        try:
            value, self.at = _decoder.raw_decode(self._text, self.at)
        except (ValueError, RecursionError) as error:
            position = error.pos if isinstance(error, json.JSONDecodeError) else self.at
            raise self._wrong(min(position, len(self._text))) from error
        self._skip()
        return value

    def elements(self) -> Iterator[int]:
        self._expect("[")
        while self.peek() != "]":
            yield self.at
            self.value()
            if self.peek() != "]":
                self._expect(",")
        self._expect("]")

    def names(self) -> Iterator[str]:
        """Each key of the object in turn; whoever asks reads the value before the next."""
        self._expect("{")
        while self.peek() != "}":
            key = self.value()
            if not isinstance(key, str):
                raise self._wrong(self.at)
            self._expect(":")
            yield key
            if self.peek() != "}":
                self._expect(",")
        self._expect("}")
        if self.at != len(self._text):
            raise self._wrong(self.at)

    def _expect(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._wrong(self.at)
        self.at += 1
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _wrong(self, position: int) -> InvalidArguments:
        line, written = line_of(self._text, position), self._text.rstrip()
        if position >= len(written) or not written.endswith(("}", "]")):
            return bad_line(line, "the file ends in the middle", "It may have been cut off; export it again.")
        return bad_line(line, "it is not JSON")
