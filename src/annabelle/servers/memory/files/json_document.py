"""The JSON export: one row per line, so that it can be written and read in pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.markdown import line_error
from annabelle.servers.memory.files.rows import (
    AnyImportRow,
    ContactImportRow,
    FactImportRow,
    ProfileRow,
    ProfileVersionRow,
    ProjectImportRow,
    SourceImportRow,
    TurnImportRow,
    describe_problem,
)

VERSION = 1
KEY = "annabelle_memory"
SECTIONS: dict[str, type[AnyImportRow]] = {
    "contacts": ContactImportRow,
    "projects": ProjectImportRow,
    "project_sources": SourceImportRow,
    "profile_history": ProfileVersionRow,
    "conversations": TurnImportRow,
    "facts": FactImportRow,
}

_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


def write_document(
    about: JsonObject, profile: JsonObject, sections: Iterable[tuple[str, Iterable[JsonObject]]]
) -> Iterator[str]:
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
class RowLocation:
    model: type[AnyImportRow]
    start: int
    end: int | None = None


def find_rows(text: str) -> list[RowLocation]:
    """Find every row of a document. Raises if it is truncated or of a later version."""
    reader = _JsonScanner(text)
    if reader.peek() == "[":
        return [RowLocation(FactImportRow, start) for start in reader.iter_elements()]
    found: list[RowLocation] = []
    version: object = None
    for name in reader.iter_keys():
        if name in SECTIONS and reader.peek() == "[":
            found += [RowLocation(SECTIONS[name], start) for start in reader.iter_elements()]
        elif name == "profile":
            found.append(RowLocation(ProfileRow, reader.at))
            reader.read_value()
        else:
            value = reader.read_value()
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


def find_json_lines(text: str) -> list[RowLocation]:
    found, at = list[RowLocation](), 0
    for line in text.split("\n"):
        if line.strip():
            found.append(RowLocation(FactImportRow, at + len(line) - len(line.lstrip()), at + len(line)))
        at += len(line) + 1
    return found


def read_row(text: str, found: RowLocation) -> AnyImportRow:
    try:
        value, end = _decoder.raw_decode(text, found.start)
        if found.end is not None and text[end : found.end].strip():
            raise ValueError("there is something behind it")
        return found.model.model_validate(value)
    except ValidationError as error:
        raise line_error(line_of(text, found.start), describe_problem(error)) from error
    except (ValueError, RecursionError) as error:
        raise line_error(line_of(text, found.start), "it is not JSON") from error


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


class _JsonScanner:
    """Walks through JSON without keeping the values it passes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._skip()

    def peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def read_value(self) -> object:
        try:
            value, self.at = _decoder.raw_decode(self._text, self.at)
        except (ValueError, RecursionError) as error:
            position = error.pos if isinstance(error, json.JSONDecodeError) else self.at
            raise self._syntax_error(min(position, len(self._text))) from error
        self._skip()
        return value

    def iter_elements(self) -> Iterator[int]:
        self._expect("[")
        while self.peek() != "]":
            yield self.at
            self.read_value()
            if self.peek() != "]":
                self._expect(",")
        self._expect("]")

    def iter_keys(self) -> Iterator[str]:
        """Yield each key of the object. The caller must read its value before the next key."""
        self._expect("{")
        while self.peek() != "}":
            key = self.read_value()
            if not isinstance(key, str):
                raise self._syntax_error(self.at)
            self._expect(":")
            yield key
            if self.peek() != "}":
                self._expect(",")
        self._expect("}")
        if self.at != len(self._text):
            raise self._syntax_error(self.at)

    def _expect(self, sign: str) -> None:
        if self.peek() != sign:
            raise self._syntax_error(self.at)
        self.at += 1
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _syntax_error(self, position: int) -> InvalidArguments:
        line, written = line_of(self._text, position), self._text.rstrip()
        if position >= len(written) or not written.endswith(("}", "]")):
            return line_error(line, "the file ends in the middle", "It may have been cut off; export it again.")
        return line_error(line, "it is not JSON")
