"""Sessions: append-only, each turn once, and readable after any accident."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from annabelle.core import jsonl
from annabelle.core.contract import TokenUsage
from annabelle.core.errors import InvalidArguments, StorageTrouble
from annabelle.thinker.session import file_store as session_files
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.records import Compaction, SessionTurn
from thinker.fakes import Bench, DictTools, ListedModel


def turn(number: int) -> SessionTurn:
    return SessionTurn(
        message_id=f"msg_{number}",
        trace_id="tr_1",
        user_id="owner",
        user=f"q{number}",
        assistant=f"a{number}",
        tools=("look",),
        usage=TokenUsage(input_tokens=number),
    )


async def filled(folder: Path, count: int) -> Path:
    files = FileSessionStore(folder, "tess")
    for number in range(count):
        await files.append("thr_1", turn(number))
    return files.path("thr_1")


async def read(folder: Path) -> list[str]:
    return [record.message_id for record in (await FileSessionStore(folder, "tess").session("thr_1")).turns]


def copies(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir() if ".damaged-" in file.name]


@pytest.mark.req("SES-01")
async def test_a_session_is_a_header_and_a_line_per_turn(tmp_path: Path) -> None:
    path = await filled(tmp_path, 2)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["header", "turn", "turn"]
    assert lines[0]["agent_id"] == "tess"
    assert (lines[1]["user"], lines[1]["assistant"], lines[1]["tools"]) == ("q0", "a0", ["look"])
    assert lines[2]["usage"]["input_tokens"] == 1


@pytest.mark.req("SES-01")
async def test_a_turn_is_remembered_with_its_tools_and_tokens(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel([("look", {})], "seen"), DictTools(look=lambda a: "x"))
    await bench.run("hello")
    (kept,) = await bench.sessions.turns("thr_one")
    assert (kept.user, kept.assistant, kept.tools) == ("hello", "seen", ("look",))
    assert (kept.usage.input_tokens, kept.usage.output_tokens) == (20, 10)


@pytest.mark.req("SES-01")
async def test_the_same_message_twice_is_one_turn_also_in_a_new_process(tmp_path: Path) -> None:
    await filled(tmp_path, 2)
    files = FileSessionStore(tmp_path, "tess")
    await files.append("thr_1", turn(0))
    await files.append("thr_1", turn(1))
    assert await read(tmp_path) == ["msg_0", "msg_1"]
    assert await files.compact("thr_1", Compaction(message_id="msg_0", summary="They met.", turns=1))
    await FileSessionStore(tmp_path, "tess").append("thr_1", turn(0))
    assert await read(tmp_path) == ["msg_1"], "what was summed up is not written again"


@pytest.mark.req("SES-01")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(1, 400))
async def test_a_file_torn_anywhere_in_its_last_turn_keeps_every_turn_before(tmp_path: Path, cut: int) -> None:
    (tmp_path / "thr_1.jsonl").unlink(missing_ok=True)
    path = await filled(tmp_path, 3)
    blob = path.read_bytes()
    last = len(blob.splitlines()[-1])
    path.write_bytes(blob[: -min(cut, last)])
    files = FileSessionStore(tmp_path, "tess")
    before = [record.message_id for record in (await files.session("thr_1")).turns]
    assert before[:2] == ["msg_0", "msg_1"]
    repaired = path.read_bytes()
    assert repaired.endswith(b"\n")
    assert len([json.loads(line) for line in repaired.splitlines()]) == 1 + len(before)
    await files.append("thr_1", turn(2))
    await files.append("thr_1", turn(3))
    assert await read(tmp_path) == ["msg_0", "msg_1", "msg_2", "msg_3"]


@pytest.mark.req("SES-01")
async def test_of_a_damaged_file_what_is_readable_is_used_and_the_rest_kept_aside(tmp_path: Path) -> None:
    path = await filled(tmp_path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([lines[0], b"\xff\x00garbage\n", lines[2], lines[3]])
    path.write_bytes(damaged)
    assert await read(tmp_path) == ["msg_1", "msg_2"]
    assert copies(tmp_path) == [damaged]


@pytest.mark.req("SES-01")
async def test_a_damaged_session_is_told_to_the_person_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ListedModel("Hi.", "Hi.", "Hi."), DictTools())
    await bench.run("hello")
    path = tmp_path / "sessions" / "thr_one.jsonl"
    path.write_bytes(path.read_bytes() + b"\xff\x00garbage\n")
    bench.parts = replace(bench.parts, sessions=Bench(tmp_path, bench.model, bench.tools).sessions)
    told: list[object] = []
    for _ in range(2):
        await bench.run("and now?")
        told += [notice["data"]["text"] for notice in bench.facts("notice")]
    [text] = told
    assert "thr_one.jsonl was damaged; it is kept as thr_one.jsonl.damaged-" in str(text)


async def test_a_session_with_a_mark_where_it_was_cleared_starts_behind_it(tmp_path: Path) -> None:
    path = await filled(tmp_path, 2)
    jsonl.append_records(path, [{"type": "cleared", "at": "2026-05-01T12:00:00+00:00"}])
    files = FileSessionStore(tmp_path, "tess")
    assert (await files.session("thr_1")).turns == []
    await files.append("thr_1", turn(0))
    await files.append("thr_1", turn(5))
    assert await read(tmp_path) == ["msg_5"]
    assert "q0" in path.read_text()


async def test_a_long_session_is_held_in_memory_only_in_part(tmp_path: Path) -> None:
    await filled(tmp_path, 60)
    assert await read(tmp_path) == [f"msg_{number}" for number in range(20, 60)]


async def test_a_thread_id_is_never_a_way_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments):
        await FileSessionStore(tmp_path, "tess").session("../../etc/passwd")


@pytest.mark.req("SES-01")
async def test_a_session_that_can_not_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    files = FileSessionStore(tmp_path, "tess")
    await files.session("thr_1")
    files.path("thr_1").mkdir()
    with pytest.raises(StorageTrouble, match=r"thr_1\.jsonl could not be written"):
        await files.append("thr_1", turn(0))
    files.path("thr_1").rmdir()
    await files.append("thr_1", turn(0))
    assert await read(tmp_path) == ["msg_0"]


async def test_damage_that_is_known_is_not_copied_again(tmp_path: Path) -> None:
    path = await filled(tmp_path, 2)
    path.write_bytes(b"damage\n" + path.read_bytes())
    assert await read(tmp_path) == ["msg_0", "msg_1"]
    await FileSessionStore(tmp_path, "tess").append("thr_1", turn(2))
    assert await read(tmp_path) == ["msg_0", "msg_1", "msg_2"]
    assert len(copies(tmp_path)) == 1


async def test_as_many_threads_stay_open_as_may_and_the_rest_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    read_file = session_files._records
    monkeypatch.setattr(session_files, "_records", lambda path: loaded.append(str(path)) or read_file(path))
    files = FileSessionStore(tmp_path, "tess")
    for number in range(session_files._OPEN_THREADS):
        await files.session(f"thr_{number}")
    await files.session("thr_0")
    assert loaded.count(str(files.path("thr_0"))) == 1
    await files.session("thr_one_more")
    await files.session("thr_1")
    assert loaded.count(str(files.path("thr_1"))) == 2


@pytest.mark.req("SES-01")
async def test_more_threads_at_once_than_are_held_open_lose_and_double_nothing(tmp_path: Path) -> None:
    files = FileSessionStore(tmp_path, "tess")
    threads = [f"thr_{number}" for number in range(session_files._OPEN_THREADS + 20)]
    for _ in range(2):
        await asyncio.gather(*(files.append(thread, turn(number)) for number in range(2) for thread in threads))
    for thread in threads:
        records = [json.loads(line) for line in files.path(thread).read_text().splitlines()]
        assert [record.get("message_id") for record in records] == [None, "msg_0", "msg_1"]
