"""Checks the audit from its files alone: which is the first record that was altered, is missing or stands elsewhere?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from annabelle.store.audit.chain import DROPPED, HEAD_MISSING
from annabelle.store.audit.head import ForgedHead, Head, read_head
from annabelle.store.audit.incidents import incident
from annabelle.store.audit.key import read_key
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.reading import opened
from annabelle.store.audit.record import BEGINNING, Record, parse

Fault = Literal["altered", "missing", "reordered", "duplicated", "no_key", "head"]


@dataclass(frozen=True, slots=True)
class Problem:
    """The first thing that is wrong, and where."""

    fault: Fault
    text: str
    file: str | None = None
    line: int | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the files say. `dropped` records went by rotation, which is written down; `torn` bytes are a line that is
    being written, or was when the hub was killed; `incidents` are sentences on what befell it and is no tampering."""

    records: int
    first: int | None
    last: Head | None
    dropped: int
    torn: int
    problem: Problem | None
    incidents: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return self.problem is None


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int
    blob: bytes
    record: Record | None

    def problem(self, fault: Fault, text: str) -> Problem:
        n = self.record.n if self.record is not None else None
        return Problem(fault, f"{self.path.name}, line {self.number}: {text}", self.path.name, self.number, n)


def verify(places: AuditPlaces) -> Verdict:
    """Every line, oldest first, up to the first that does not fit."""
    key = read_key(places.key)
    if key is None:
        there = bool(places.files()) or places.head.exists()
        lacking = Problem("no_key", f"The key {places.key.name} is missing, so nothing can be checked.")
        return Verdict(0, None, None, 0, 0, lacking if there else None)
    try:
        head = read_head(places.head, key)  # before the files, which only grow meanwhile
    except ForgedHead:
        altered = Problem("head", f"{places.head.name} was altered.", places.head.name)
        return Verdict(0, None, None, 0, 0, altered)
    if head is None and places.never_begun:
        return Verdict(0, None, None, 0, 0, None)
    return _Walk(places, key, head).verdict()


class _Walk:
    def __init__(self, places: AuditPlaces, key: bytes, head: Head | None) -> None:
        self._places, self._key, self._head = places, key, head
        self._records = self._torn = 0
        self._first: _Line | None = None
        self._last: _Line | None = None
        self._dropped: dict[int, str] = {}
        self._incidents: list[str] = []

    def verdict(self) -> Verdict:
        problem = self._lines() or self._beginning() or self._end()
        first, last = self._first, self._last
        return Verdict(
            self._records,
            first.record.n if first is not None and first.record is not None else None,
            Head(last.record.n, last.record.hash) if last is not None and last.record is not None else None,
            max(self._dropped, default=0),
            self._torn,
            problem,
            tuple(self._incidents),
        )

    def _lines(self) -> Problem | None:
        for line in self._all():
            if not line.blob.endswith(b"\n") and line.path == self._places.active:
                self._torn = len(line.blob)
                return None
            problem = self._follows(line)
            if problem is not None:
                return problem
            self._look_for_incidents(line)
            self._first = self._first or line
            self._last = line
            self._records += 1
        return None

    def _follows(self, line: _Line) -> Problem | None:
        record, before = line.record, self._last.record if self._last is not None else None
        if record is None:
            return line.problem("altered", f"{self._expected(before)} was altered: it can not be read.")
        if not record.genuine(self._key):
            return line.problem("altered", f"record {record.n} was altered.")
        if before is not None and record.n != before.n + 1:
            return self._out_of_place(line, record, before)
        if before is not None and record.prev != before.hash:
            return line.problem("altered", f"record {record.n} does not follow the one that stands before it.")
        if self._head is not None and record.n == self._head.n and record.hash != self._head.hash:
            return line.problem("altered", f"record {record.n} is not the one that was written.")
        if record.kind == "audit":
            return self._about_itself(line, record)
        return None

    def _look_for_incidents(self, line: _Line) -> None:
        assert line.record is not None, "a line that can not be read follows nothing"
        found = incident(line.record, self._last.record if self._last is not None else None)
        if found is not None:
            self._incidents.append(found)

    def _out_of_place(self, line: _Line, record: Record, before: Record) -> Problem:
        if record.n == before.n:
            return line.problem("duplicated", f"record {record.n} stands there twice.")
        if record.n < before.n:
            return line.problem("reordered", f"record {record.n} stands behind record {before.n}.")
        if any(other.record is not None and other.record.n == before.n + 1 for other in self._all()):
            return line.problem("reordered", f"record {record.n} stands where record {before.n + 1} belongs.")
        return line.problem("missing", f"{_range(before.n + 1, record.n - 1)} missing before record {record.n}.")

    def _about_itself(self, line: _Line, record: Record) -> Problem | None:
        event = record.facts.get("event")
        if event == HEAD_MISSING:
            return line.problem(
                "head", f"record {record.n} says that {self._places.head.name} was gone: records before it may be, too."
            )
        last = record.facts.get("last")
        if event == DROPPED and isinstance(last, int):
            self._dropped[last] = str(record.facts.get("last_record"))
        return None

    def _beginning(self) -> Problem | None:
        """Behind what did the oldest record stand? Behind nothing, or behind what rotation says it dropped."""
        line = self._first
        if line is None or line.record is None:
            return None
        record = line.record
        expected = BEGINNING if record.n == 1 else self._dropped.get(record.n - 1)
        if expected is None:
            return line.problem("missing", f"{_range(1, record.n - 1)} missing before record {record.n}.")
        if record.prev != expected:
            return line.problem("altered", f"record {record.n} does not follow the one that was dropped before it.")
        return None

    def _end(self) -> Problem | None:
        head, last = self._head, self._last.record if self._last is not None else None
        if head is None:
            return Problem("head", f"{self._places.head.name} is missing: records at the end may be, too.")
        reached = last.n if last is not None else 0
        if reached >= head.n:
            return None
        where = self._last.path.name if self._last is not None else self._places.active.name
        at = self._last.number if self._last is not None else 0
        text = f"{where}, after line {at}: {_range(reached + 1, head.n)} missing at the end."
        return Problem("missing", text, where, at, reached + 1)

    def _expected(self, before: Record | None) -> str:
        return "the first record" if before is None else f"record {before.n + 1}"

    def _all(self) -> Iterator[_Line]:
        with opened(self._places) as files:
            for path, file in files:
                for number, blob in enumerate(file, start=1):
                    yield _Line(path, number, blob, parse(blob))


def _range(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"
