"""A JSON-lines file loses at most the line a crash cut, and never a whole one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core import jsonl
from annabelle.core.errors import StorageTrouble

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), min_size=1, max_size=5)


@given(records=RECORDS, more=RECORDS)
@settings(max_examples=3, deadline=None)
def test_a_file_cut_at_any_byte_gives_back_every_whole_line_and_takes_new_ones(
    tmp_path_factory: pytest.TempPathFactory, records: list[jsonl.JsonRecord], more: list[jsonl.JsonRecord]
):
    path = tmp_path_factory.mktemp("cut") / "session.jsonl"
    jsonl.append_records(path, records, durable=False)
    whole = path.read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == 0x0A]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = jsonl.load_records(path)
        finished = sum(end <= cut for end in ends)
        # A line whose line feed alone is missing is whole, too.
        assert kept in (records[:finished], records[: finished + 1])
        jsonl.append_records(path, more, durable=False)
        assert jsonl.load_records(path) == kept + more


@given(garbage=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_bytes_whatsoever_stop_a_file_from_being_read_and_written(
    tmp_path_factory: pytest.TempPathFactory, garbage: bytes
):
    path = tmp_path_factory.mktemp("garbage") / "session.jsonl"
    path.write_bytes(garbage)
    before = jsonl.load_records(path)
    jsonl.append_records(path, [{"n": 1}], durable=False)
    assert jsonl.load_records(path) == [*before, {"n": 1}]


def test_a_torn_last_line_is_cut_off_the_file(tmp_path: Path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": 2')
    assert jsonl.load_records(path) == [{"n": 1}]
    assert path.read_bytes() == b'{"n": 1}\n'


def test_a_damaged_line_in_the_middle_is_passed_over_and_said_so(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": \xff}\n[1, 2]\n{"n": 3}\n')
    assert jsonl.load_records(path) == [{"n": 1}, {"n": 3}]
    assert "damaged" in caplog.text


def test_a_missing_file_is_an_empty_one(tmp_path: Path):
    assert jsonl.load_records(tmp_path / "none.jsonl") == []


def test_unusual_line_separators_inside_a_text_do_not_split_it(tmp_path: Path):
    path = tmp_path / "session.jsonl"
    record: jsonl.JsonRecord = {"text": "a\u2028b\u0085c\x1cd\ve"}
    jsonl.append_records(path, [record])
    assert jsonl.load_records(path) == [record]


def test_a_full_disk_while_writing_keeps_what_was_there_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "session.jsonl"
    jsonl.append_records(path, [{"n": 1}])
    write = os.write
    monkeypatch.setattr(jsonl.os, "write", lambda descriptor, blob: write(descriptor, blob[: len(blob) // 2]))
    with pytest.raises(StorageTrouble) as caught:
        jsonl.append_records(path, [{"n": 2}])
    monkeypatch.undo()
    assert "No space left" in caught.value.message
    assert caught.value.hint is not None
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"n": 1}]


def test_a_session_file_is_for_its_owner_only(tmp_path: Path):
    path = tmp_path / "folder" / "session.jsonl"
    jsonl.append_records(path, [{"n": 1}])
    assert path.stat().st_mode & 0o777 == 0o600
