"""Notes are written by a thread: quickly, in order, without content, and over a disk that is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.store.audit import chain as chains, writer as writers
from annabelle.store.audit.chain import AuditChain, AuditLimits
from annabelle.store.audit.records import AuditPaths, AuditQuery, read_latest
from annabelle.store.audit.verification import verify_audit
from annabelle.store.audit.writer import AuditWriter
from store.audit.conftest import SECRET
from support.timing import seconds

WORKER = """
import sys
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.store.audit.chain import AuditChain, AuditLimits
from annabelle.store.audit.records import AuditPaths
from annabelle.store.audit.writer import AuditWriter
writer = AuditWriter(AuditChain(AuditPaths.from_home(Home.from_environment()), AuditLimits(), Redactor()))
writer.start()
for number in range(100000):
    writer.note("tool", {"tool": f"t{number}"})
    writer.note("approval", {"id": number})
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def writer_at(places: AuditPaths, told: list[str | None] | None = None) -> AuditWriter:
    return AuditWriter(AuditChain(places, AuditLimits(), Redactor([SECRET])), (told if told is not None else []).append)


@pytest.mark.req("GRD-08", "POL-06")
def test_neither_content_nor_a_secret_is_ever_written(places: AuditPaths) -> None:
    writer = writer_at(places)
    writer.start()
    said = "the surprise party is on friday"
    writer.note(
        "scan",
        {
            "tool": "filer_read_file",
            "direction": "result",
            "score": 0.93,
            "threats": [{"type": "prompt_injection", "path": "$.text", "snippet": said}],
            "arguments": {"path": said},
            "text": said,
            "reasons": [said],
            "arguments_hash": "ab" * 32,
            "header": f"Bearer {SECRET}",
            "api_key": "short",
            "long": "x" * 5000,
        },
        "tr_1",
    )
    writer.stop()
    blob = places.active.read_bytes()
    assert b"surprise" not in blob
    assert SECRET.encode() not in blob
    assert b"short" not in blob
    assert ("ab" * 32).encode() not in blob, "a plain hash can be tried with guesses"
    [record] = read_latest(places, AuditQuery())
    assert (record.kind, record.trace) == ("scan", "tr_1")
    assert record.facts["score"] == 0.93
    assert record.facts["direction"] == "result"
    assert len(str(record.facts["long"])) == 200
    text = record.facts["text"]
    assert isinstance(text, dict)
    assert text["length"] == len(said)


@pytest.mark.req("TRU-08")
def test_notes_of_many_threads_make_one_chain(places: AuditPaths) -> None:
    writer = writer_at(places)
    writer.start()

    def take_notes(name: str) -> None:
        for number in range(200):
            writer.note("tool" if number % 7 else "approval", {"who": name, "number": number})

    threads = [threading.Thread(target=take_notes, args=(f"thread-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds(30))
    writer.stop()
    verdict = verify_audit(places)
    assert verdict.is_intact, verdict.problem
    assert verdict.records == 800
    mine = [r.facts["number"] for r in read_latest(places, AuditQuery(last=1000)) if r.facts["who"] == "thread-2"]
    assert mine == list(range(200))


@pytest.mark.req("TRU-08")
def test_a_killed_process_loses_no_decision_and_tears_nothing(home: Home, places: AuditPaths) -> None:
    worker = subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    for _ in range(300):
        worker.stdout.readline()
    os.kill(worker.pid, signal.SIGKILL)
    said = worker.stdout.read().splitlines()
    worker.wait(seconds(20))
    worker.stdout.close()
    decided = [record.facts["id"] for record in read_latest(places, AuditQuery(last=10**6, kind="approval"))]
    least = 300 + len([line for line in said if line])
    assert decided[: least - 1] == list(range(least - 1))
    assert verify_audit(places).is_intact
    writer = writer_at(places)
    writer.start()
    writer.stop()
    assert verify_audit(places).is_intact


@pytest.mark.req("TRU-08")
@pytest.mark.parametrize("kind", ["approval", "rule", "stop", "forget"])
def test_what_somebody_decided_is_written_before_anybody_goes_on(
    places: AuditPaths, monkeypatch: pytest.MonkeyPatch, kind: AuditKind
) -> None:
    def nobody_else_writes(_: AuditWriter) -> None: ...

    monkeypatch.setattr(AuditWriter, "_write_loop", nobody_else_writes)
    writer = writer_at(places)
    writer.start()
    writer.note("tool", {"tool": "t"})
    assert list(read_latest(places, AuditQuery())) == []
    writer.note(kind, {"id": 1})
    assert [record.kind for record in read_latest(places, AuditQuery())] == ["tool", kind]
    writer.stop()


@pytest.mark.req("TRU-08")
def test_a_full_disk_stops_nobody_and_what_is_lost_is_counted(
    places: AuditPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, told, written = threading.Event(), list[str | None](), os.write
    monkeypatch.setattr(writers, "_MOST_WAITING", 5)
    monkeypatch.setattr(writers, "_RETRY_SECONDS", 0.01)

    def write(descriptor: int, blob: bytes) -> int:
        """Half of it fits."""
        if full.is_set():
            return written(descriptor, bytes(blob)[: len(blob) // 2])
        return written(descriptor, blob)

    monkeypatch.setattr(chains.os, "write", write)
    writer = writer_at(places, told)
    writer.start()
    writer.note("approval", {"number": 1})
    full.set()
    for number in range(2, 11):
        writer.note("approval", {"number": number})
    assert any(text and "can not be written" in text for text in told)
    full.clear()
    writer.flush()
    writer.stop()
    assert told[-1] is None
    records = read_latest(places, AuditQuery())
    assert [r.facts["number"] for r in records if r.kind == "approval"] == [1, 2, 3, 4, 5, 6]
    [gap] = [r.facts for r in records if r.kind == "audit"]
    assert (gap["event"], gap["lost"]) == ("gap", 4)
    assert verify_audit(places).is_intact


@pytest.mark.req("TRU-08")
def test_facts_that_are_too_deep_neither_end_the_audit_nor_hide_what_else_is_known(places: AuditPaths) -> None:
    deep: JsonObject = {}
    for _ in range(5000):
        deep = {"within": deep}
    writer = writer_at(places)
    writer.start()
    for kind in ("approval", "tool"):
        writer.note(kind, {"tool": "filer_read_file", "arguments": deep, "api_key": SECRET})
    writer.stop()
    assert [record.facts["tool"] for record in read_latest(places, AuditQuery())] == ["filer_read_file"] * 2
    assert SECRET.encode() not in places.active.read_bytes()
    assert verify_audit(places).is_intact


def test_what_was_noted_before_the_start_is_written_first(places: AuditPaths, tmp_path: Path) -> None:
    writer = writer_at(places)
    writer.note("config", {"what": "settings"})
    writer.start()
    writer.note("server", {"event": "start"})
    writer.stop()
    assert [record.kind for record in read_latest(places, AuditQuery())] == ["config", "server"]
