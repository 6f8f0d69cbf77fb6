"""Verifies the audit from its files: finds the first altered, missing or misplaced record, and reports incidents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from annabelle.store.audit.chain import DROPPED, HEAD_MISSING
from annabelle.store.audit.records import (
    FIRST_PREVIOUS_HASH,
    AuditChainRecord,
    AuditHead,
    AuditPaths,
    ForgedAuditHead,
    open_files,
    parse_record,
    read_head,
    read_key,
)

_JITTER: Final = timedelta(seconds=5)
"""Records of two threads may be slightly out of order, and clock corrections are small."""


def describe_incident(record: AuditChainRecord, before: AuditChainRecord | None) -> str | None:
    """Describes what a record says about the audit or, by its time, about the clock."""
    if record.kind == "audit":
        return _describe_audit_event(record)
    if before is None or before.kind == "audit":
        return None
    back = datetime.fromisoformat(before.at) - datetime.fromisoformat(record.at)
    return f"Before record {record.n} the clock was set back by {_format_duration(back)}." if back > _JITTER else None


def _describe_audit_event(record: AuditChainRecord) -> str | None:
    facts = record.facts
    match facts.get("event"):
        case "gap":
            return (
                f"Record {record.n} says that {facts.get('lost')} records could not be written since"
                f" {facts.get('since')} and are lost."
            )
        case "repaired":
            return f"Before record {record.n} a crash tore a line: {facts.get('bytes')} bytes are in audit.torn."
        case _:
            return None


def _format_duration(back: timedelta) -> str:
    minutes, seconds = divmod(int(back.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    told = [f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")) if count]
    return " ".join(told[:2])


Fault = Literal["altered", "missing", "reordered", "duplicated", "no_key", "head"]


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """The first fault, and where it is."""

    fault: Fault
    text: str
    file: str | None = None
    line: int | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True)
class AuditVerification:
    """Result of a verification. Rotation dropped `dropped` records; `torn` bytes are a line in progress or cut off by a
    kill; `incidents` are sentences about events that are not tampering."""

    records: int
    first: int | None
    last: AuditHead | None
    dropped: int
    torn: int
    problem: AuditProblem | None
    incidents: tuple[str, ...] = ()

    @property
    def is_intact(self) -> bool:
        return self.problem is None

    def describe(self) -> str:
        """The result in words, without the incidents."""
        if self.problem is not None:
            return self.problem.text
        if self.last is None:
            return "Nothing was recorded yet."
        dropped = f" Records up to {self.dropped} were dropped by rotation." if self.dropped else ""
        torn = f" A line of {self.torn} bytes is being written, or was when Annabelle was killed." if self.torn else ""
        return (
            f"The audit is whole: {self.records} records, {self.first} to {self.last.n}.{dropped}{torn}"
            f" The last one's hash is {self.last.hash}"
        )


@dataclass(frozen=True, slots=True)
class _AuditLine:
    path: Path
    number: int
    blob: bytes
    record: AuditChainRecord | None

    def problem(self, fault: Fault, text: str) -> AuditProblem:
        n = self.record.n if self.record is not None else None
        return AuditProblem(fault, f"{self.path.name}, line {self.number}: {text}", self.path.name, self.number, n)


def verify_audit(places: AuditPaths) -> AuditVerification:
    """Checks every line, oldest first, up to the first fault."""
    key = read_key(places.key)
    if key is None:
        there = bool(places.files()) or places.head.exists()
        lacking = AuditProblem("no_key", f"The key {places.key.name} is missing, so nothing can be checked.")
        return AuditVerification(0, None, None, 0, 0, lacking if there else None)
    try:
        head = read_head(places.head, key)  # before the files, which may grow meanwhile
    except ForgedAuditHead:
        altered = AuditProblem("head", f"{places.head.name} was altered.", places.head.name)
        return AuditVerification(0, None, None, 0, 0, altered)
    if head is None and places.never_started:
        return AuditVerification(0, None, None, 0, 0, None)
    return _AuditWalk(places, key, head).run()


class _AuditWalk:
    def __init__(self, places: AuditPaths, key: bytes, head: AuditHead | None) -> None:
        self._paths, self._key, self._head = places, key, head
        self._records = self._torn = 0
        self._first: _AuditLine | None = None
        self._last: _AuditLine | None = None
        self._dropped: dict[int, str] = {}
        self._incidents: list[str] = []

    def run(self) -> AuditVerification:
        problem = self._lines() or self._beginning() or self._end()
        first, last = self._first, self._last
        return AuditVerification(
            self._records,
            first.record.n if first is not None and first.record is not None else None,
            AuditHead(last.record.n, last.record.hash) if last is not None and last.record is not None else None,
            max(self._dropped, default=0),
            self._torn,
            problem,
            tuple(self._incidents),
        )

    def _lines(self) -> AuditProblem | None:
        for line in self._all():
            if not line.blob.endswith(b"\n") and line.path == self._paths.active:
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

    def _follows(self, line: _AuditLine) -> AuditProblem | None:
        record, before = line.record, self._last.record if self._last is not None else None
        if record is None:
            return line.problem("altered", f"{self._expected(before)} was altered: it can not be read.")
        if not record.is_genuine(self._key):
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

    def _look_for_incidents(self, line: _AuditLine) -> None:
        assert line.record is not None, "a line that can not be read follows nothing"
        found = describe_incident(line.record, self._last.record if self._last is not None else None)
        if found is not None:
            self._incidents.append(found)

    def _out_of_place(self, line: _AuditLine, record: AuditChainRecord, before: AuditChainRecord) -> AuditProblem:
        if record.n == before.n:
            return line.problem("duplicated", f"record {record.n} stands there twice.")
        if record.n < before.n:
            return line.problem("reordered", f"record {record.n} stands behind record {before.n}.")
        if any(other.record is not None and other.record.n == before.n + 1 for other in self._all()):
            return line.problem("reordered", f"record {record.n} stands where record {before.n + 1} belongs.")
        return line.problem(
            "missing", f"{_describe_range(before.n + 1, record.n - 1)} missing before record {record.n}."
        )

    def _about_itself(self, line: _AuditLine, record: AuditChainRecord) -> AuditProblem | None:
        event = record.facts.get("event")
        if event == HEAD_MISSING:
            return line.problem(
                "head", f"record {record.n} says that {self._paths.head.name} was gone: records before it may be, too."
            )
        last = record.facts.get("last")
        if event == DROPPED and isinstance(last, int):
            self._dropped[last] = str(record.facts.get("last_record"))
        return None

    def _beginning(self) -> AuditProblem | None:
        """Checks that the oldest record is the first of all, or follows what rotation dropped."""
        line = self._first
        if line is None or line.record is None:
            return None
        record = line.record
        expected = FIRST_PREVIOUS_HASH if record.n == 1 else self._dropped.get(record.n - 1)
        if expected is None:
            return line.problem("missing", f"{_describe_range(1, record.n - 1)} missing before record {record.n}.")
        if record.prev != expected:
            return line.problem("altered", f"record {record.n} does not follow the one that was dropped before it.")
        return None

    def _end(self) -> AuditProblem | None:
        head, last = self._head, self._last.record if self._last is not None else None
        if head is None:
            return AuditProblem("head", f"{self._paths.head.name} is missing: records at the end may be, too.")
        reached = last.n if last is not None else 0
        if reached >= head.n:
            return None
        where = self._last.path.name if self._last is not None else self._paths.active.name
        at = self._last.number if self._last is not None else 0
        text = f"{where}, after line {at}: {_describe_range(reached + 1, head.n)} missing at the end."
        return AuditProblem("missing", text, where, at, reached + 1)

    def _expected(self, before: AuditChainRecord | None) -> str:
        return "the first record" if before is None else f"record {before.n + 1}"

    def _all(self) -> Iterator[_AuditLine]:
        with open_files(self._paths) as files:
            for path, file in files:
                for number, blob in enumerate(file, start=1):
                    yield _AuditLine(path, number, blob, parse_record(blob))


def _describe_range(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"
