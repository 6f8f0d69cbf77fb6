"""A trace is one id for everything a request causes, and a file that remembers it."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from pathlib import Path

import pytest

from annabelle.core.ids import is_id, new_id
from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.core.trace import TraceFile, accept_trace, current_trace, read_trace, use_trace
from support.timing import seconds


@pytest.mark.req("TRC-01")
def test_everything_inside_belongs_to_the_trace_and_nothing_after():
    with use_trace(None) as made:
        assert is_id(made, "tr")
        assert current_trace() == made
        with use_trace("tr_inner"):
            assert current_trace() == "tr_inner"
        assert current_trace() == made
    assert current_trace() is None


@pytest.mark.req("TRC-01")
async def test_two_conversations_at_once_keep_their_own_traces():
    async def work() -> tuple[str, str | None]:
        with use_trace(None) as made:
            await asyncio.sleep(0)
            return made, current_trace()

    for made, seen in await asyncio.gather(*(work() for _ in range(20))):
        assert made == seen


@pytest.mark.req("TRC-01")
@pytest.mark.parametrize("offered", [None, "", "tr_short", "msg_" + "0" * 26, "tr_" + "0" * 26 + "\r\nEvil: 1"])
def test_a_trace_id_from_outside_counts_only_when_it_is_one(offered: str | None):
    accepted = accept_trace(offered)
    assert is_id(accepted, "tr")
    assert accepted != offered


def test_a_good_trace_id_from_outside_is_kept():
    mine = new_id("tr")
    assert accept_trace(mine) == mine


@pytest.mark.req("TRC-02")
def test_a_line_names_trace_time_component_event_and_data(tmp_path: Path):
    path = tmp_path / "traces.jsonl"
    with use_trace(None) as trace_id:
        TraceFile(path, "filer", Redactor()).write("tool.call", {"tool": "read", "n": 3})
    record = json.loads(path.read_text())
    assert record == {
        "trace_id": trace_id,
        "ts": record["ts"],
        "mcp": "filer",
        "event": "tool.call",
        "data": record["data"],
    }
    assert record["data"] == {"tool": "read", "n": 3}
    assert read_trace(path, trace_id) == [record]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("TRC-02", "TRC-03")
def test_a_secret_does_not_get_into_the_trace_file(tmp_path: Path):
    path = tmp_path / "traces.jsonl"
    TraceFile(path, "hub", Redactor(["lovelace1815"])).write("e", {"text": "is lovelace1815", "api_key": "x"}, "tr_x")
    assert "lovelace1815" not in path.read_text()
    assert json.loads(path.read_text())["data"] == {"text": f"is {MASK}", "api_key": MASK}


@pytest.mark.req("TRC-02")
def test_a_full_file_is_rotated_and_a_trace_is_read_over_all_of_them(tmp_path: Path):
    path, trace_id = tmp_path / "traces.jsonl", new_id("tr")
    file = TraceFile(path, "hub", Redactor(), max_bytes=400, keep=3)
    for number in range(12):
        file.write("step", {"n": number}, trace_id)
    files = sorted(entry.name for entry in tmp_path.iterdir())
    assert set(files) <= {"traces.jsonl", "traces.jsonl.1", "traces.jsonl.2", "traces.jsonl.3"}
    assert len(files) >= 3
    numbers = [record["data"]["n"] for record in read_trace(path, trace_id, keep=3)]
    assert numbers == list(range(numbers[0], 12))


@pytest.mark.req("TRC-02")
def test_a_disk_that_can_not_be_written_does_not_stop_the_work(tmp_path: Path):
    TraceFile(tmp_path / "missing" / "traces.jsonl", "hub", Redactor()).write("step")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_line_does_not_hide_the_rest(tmp_path: Path):
    path, trace_id = tmp_path / "traces.jsonl", new_id("tr")
    file = TraceFile(path, "hub", Redactor())
    file.write("first", trace_id=trace_id)
    with path.open("ab") as raw:
        raw.write(f'{{"trace_id": "{trace_id}", "ev\xff\n'.encode("latin-1"))
    file.write("second", trace_id=trace_id)
    assert [record["event"] for record in read_trace(path, trace_id)] == ["first", "second"]


def _write_many(path: Path, component: str) -> None:
    file = TraceFile(path, component, Redactor())
    for number in range(200):
        file.write("step", {"n": number, "text": "x" * 300}, "tr_shared")


def test_lines_of_several_processes_stay_whole(tmp_path: Path):
    path = tmp_path / "traces.jsonl"
    spawn = multiprocessing.get_context("fork")
    processes = [spawn.Process(target=_write_many, args=(path, f"p{n}")) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(seconds(30))
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) == 800


@pytest.mark.req("TRC-02")
def test_half_a_character_in_a_text_stops_nobody(tmp_path: Path):
    mine = new_id("tr")
    TraceFile(tmp_path / "traces.jsonl", "hub", Redactor()).write("said", {"text": "a\ud83db"}, mine)
    assert [record["event"] for record in read_trace(tmp_path / "traces.jsonl", mine)] == ["said"]
