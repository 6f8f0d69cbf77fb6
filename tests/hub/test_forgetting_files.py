"""Files lose the text where they stand: same length for those that others append to, nothing left of copies."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from annabelle.core.home import Home
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, ForgetMatcher
from annabelle.hub.forgetting import forget_journal
from annabelle.hub.forgetting.files import (
    HomeFiles,
    count_database_remains,
    find_personal_files,
    find_replacements,
    mask_lines,
    sweep_files,
)
from annabelle.hub.forgetting.forget_journal import ForgetRequest, PendingForgetFile, shred_file

SECRET = "Zürich Vault 4711"
NEEDLE = ForgetMatcher([SECRET])


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.req("TRU-09")
def test_lines_are_overwritten_in_place_while_their_writer_goes_on(tmp_path: Path):
    log = put(tmp_path / "hub.log", f"one\ntwo {SECRET.upper()} 2\nthree\n")
    with log.open("a") as writer:
        before = log.stat()
        assert mask_lines(log, NEEDLE, apply=True) == 1
        writer.write("four\n")
    after = log.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size + len("four\n"))
    assert log.read_text().split("\n") == [
        "one",
        FORGOTTEN_MASK.ljust(len("two  2") + len(SECRET.encode())),
        "three",
        "four",
        "",
    ]


def test_looking_changes_nothing(tmp_path: Path):
    log = put(tmp_path / "hub.log", f"{SECRET}\n")
    assert mask_lines(log, NEEDLE, apply=False) == 1
    assert log.read_text() == f"{SECRET}\n"


def test_a_text_that_goes_on_in_the_next_line_takes_both_with_it(tmp_path: Path):
    log = put(tmp_path / "cli.log", "before\nTraceback: Zürich\n\n   vault 4711 was wrong\nafter\n")
    assert mask_lines(log, NEEDLE, apply=True) == 2
    assert log.read_text().split("\n")[0] == "before"
    assert log.read_text().split("\n")[-2] == "after"
    assert "4711" not in log.read_text()


@pytest.mark.parametrize("escaped", [True, False])
def test_records_stay_records(tmp_path: Path, escaped: bool):
    record = {"type": "turn", "message_id": "msg_1", "user": f"say {SECRET}", "tools": ["a"], "usage": {"n": 3}}
    arguments = {"part_kind": "tool-call", "tool_name": "x", "args": json.dumps({"fact": SECRET})}
    record["messages"] = [{"kind": "response", "parts": [arguments]}]
    lines = [json.dumps({"type": "header"}), json.dumps(record, ensure_ascii=escaped), json.dumps({"type": "cleared"})]
    session = put(tmp_path / "t.jsonl", "\n".join(lines) + "\n")
    size = session.stat().st_size
    assert mask_lines(session, NEEDLE, apply=True) == 1
    assert session.stat().st_size == size
    header, turn, cleared = (json.loads(line) for line in session.read_text().splitlines())
    assert (header, cleared) == ({"type": "header"}, {"type": "cleared"})
    assert (turn["message_id"], turn["user"], turn["usage"]) == ("msg_1", FORGOTTEN_MASK, {"n": 3})
    assert json.loads(turn["messages"][0]["parts"][0]["args"]) == {"fact": FORGOTTEN_MASK}


def test_a_record_shorter_than_the_mask_is_emptied(tmp_path: Path):
    session = put(tmp_path / "t.jsonl", '{"a":"abc"}\n["abc"]\nabc\n')
    assert mask_lines(session, ForgetMatcher(["abc"]), apply=True) == 3
    assert [line.rstrip() for line in session.read_text().splitlines()] == ['{"a":""}', '[""]', FORGOTTEN_MASK[:3]]


def test_words_that_the_mask_and_the_records_themselves_are_made_of_come_to_an_end(tmp_path: Path):
    session = put(tmp_path / "t.jsonl", '{"type":"turn","user":"forgotten turn"}\nit was forgotten\n')
    for word in ("forgotten", "turn"):
        mask_lines(session, ForgetMatcher([word]), apply=True)
        assert mask_lines(session, ForgetMatcher([word]), apply=True) == 0
    assert json.loads(session.read_text().splitlines()[0]) == {"type": "turn", "user": FORGOTTEN_MASK}


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.just(f"x {SECRET} y"),
            st.just(json.dumps({"text": SECRET, "n": 1})),
            st.dictionaries(st.text(max_size=5), st.sampled_from([SECRET, "b", SECRET[:6]]), max_size=3).map(
                json.dumps
            ),
        ),
        max_size=12,
    )
)
def test_whatever_the_file_holds_nothing_is_left_and_the_length_stays(lines: list[str]):
    blob = bytearray("\n".join(lines).encode(errors="replace"))
    for at, line in find_replacements(bytes(blob), NEEDLE):
        assert b"\n" not in line
        blob[at : at + len(line)] = line
    assert len(blob) == len("\n".join(lines).encode(errors="replace"))
    assert not NEEDLE.found_in_bytes(bytes(blob))


@pytest.fixture
def full(home: Home) -> Home:
    """A home in which everything that is Annabelle's, and something of the person's own, holds the text."""
    put(home.logs / "hub.log", f"a {SECRET}\n")
    put(home.logs / "hub.log.1", f"b {SECRET}\n")
    put(home.logs / "filer-audit.jsonl", json.dumps({"path": f"{SECRET}.txt", "operation": "read"}) + "\n")
    put(home.traces_file, json.dumps({"trace_id": "tr_1", "event": "x", "data": {"error": SECRET}}) + "\n")
    put(home.history_file, f"{SECRET}\nhello\n")
    put(home.agent("annabelle") / "sessions" / "t.jsonl", json.dumps({"user": SECRET}) + "\n")
    put(home.agent("annabelle") / "sessions" / "t.jsonl.damaged-ab", f"half {SECRET}\n")
    put(home.memory_export / "facts.md", f"# Facts\n- Ada likes tea\n- {SECRET}\n")
    put(
        home.memory_export / "memory.json", json.dumps({"facts": [{"id": 1, "fact": SECRET}, {"id": 2, "fact": "tea"}]})
    )
    put(home.data / "annabelle.db.replaced", SECRET)
    home.backups.mkdir()
    with sqlite3.connect(home.backups / "memory-1-2.db") as copy:
        copy.execute("CREATE TABLE t (a TEXT)")
        copy.execute("INSERT INTO t VALUES (?)", (f"{'x' * 6000}{SECRET}",))
    copy.close()
    put(home.backups / "memory-1-3.db", "nothing")
    put(home.workspace / "notes.md", SECRET)
    put(home.settings_file, f"USER_NAME={SECRET}\n")
    put(home.agent("annabelle") / "instructions.md", SECRET)
    put(home.playbooks / "banking.md", SECRET)
    put(home.playbooks / "draft.txt", SECRET)
    put(home.workspace / "temp/results/20261115-page.md", f"a page about {SECRET}")
    put(home.browser_profiles / "annabelle/Default/History", f"visited {SECRET}")
    put(home.browser_profiles / "annabelle/Default/Preferences", "nothing")
    put(home.data / "mail/filters.json", f'{{"from": "{SECRET}"}}')
    put(home.data / "codexec/scripts/sum.py", f"# {SECRET}")
    put(home.connections / "mail.json", f'{{"address": "{SECRET}"}}')
    return home


@pytest.mark.req("TRU-09")
def test_every_file_is_treated_after_its_kind_and_a_persons_own_are_named_only(full: Home):
    places = HomeFiles(full)
    expected = {"logs": 3, "traces": 1, "terminal history": 1, "sessions": 1, "exports": 2, "backups": 3}
    expected |= {"results": 1, "browser": 1}
    assert sweep_files(places, NEEDLE, apply=False) == expected
    assert sweep_files(places, NEEDLE, apply=True) == expected
    assert sweep_files(places, NEEDLE, apply=True) == {}

    own = {full.workspace / "notes.md", full.settings_file, full.agent("annabelle") / "instructions.md"}
    own |= {full.playbooks / "banking.md", full.playbooks / "draft.txt"}
    own |= {full.data / "mail/filters.json", full.data / "codexec/scripts/sum.py", full.connections / "mail.json"}
    assert {Path(path) for path in find_personal_files(places, NEEDLE)} == own
    holding = {path for path in full.root.rglob("*") if path.is_file() and NEEDLE.found_in_bytes(path.read_bytes())}
    assert holding == own
    assert (full.memory_export / "facts.md").read_text() == "# Facts\n- Ada likes tea\n"
    assert json.loads((full.memory_export / "memory.json").read_text()) == {"facts": [{"id": 2, "fact": "tea"}]}
    assert [path.name for path in full.browser_profiles.rglob("*") if path.is_file()] == ["Preferences"]
    assert [path.name for path in full.backups.iterdir()] == ["memory-1-3.db"]


def test_what_links_lead_to_is_not_ours(full: Home, tmp_path: Path):
    outside = put(tmp_path / "outside.log", SECRET)
    (full.logs / "linked.log").symlink_to(outside)
    sweep_files(HomeFiles(full), NEEDLE, apply=True)
    assert outside.read_text() == SECRET


def test_remains_of_deleted_rows_are_seen_in_the_databases(home: Home):
    assert count_database_remains(HomeFiles(home), NEEDLE) == 0
    put(home.database_file, f"free page {SECRET}")
    put(home.flows_file.with_name("flows.db-wal"), SECRET)
    put(home.flows_file, "")
    assert count_database_remains(HomeFiles(home), NEEDLE) == 2


def test_the_marker_survives_and_is_overwritten_before_it_goes(home: Home):
    marker, asked = (
        PendingForgetFile(home.forgetting_file),
        ForgetRequest(texts=(SECRET,), user_id="owner", agent_id="annabelle"),
    )
    assert marker.read() is None
    marker.write(asked)
    assert home.forgetting_file.stat().st_mode & 0o777 == 0o600
    assert marker.read() == asked
    with home.forgetting_file.open("rb") as kept:  # whoever has it open sees zeros
        marker.remove()
        assert set(kept.read()) == {0}
    assert marker.read() is None
    shred_file(home.forgetting_file)


def test_half_a_marker_says_that_nothing_was_begun(home: Home):
    home.forgetting_file.write_text('{"texts": ["Zür')
    assert PendingForgetFile(home.forgetting_file).read() is None
    assert not home.forgetting_file.exists()
    assert SECRET not in repr(ForgetRequest(texts=(SECRET,), user_id="owner", agent_id="annabelle"))


@pytest.mark.req("TRU-09")
def test_the_audit_keeps_a_keyed_hash_and_no_text(home: Home):
    asked = ForgetRequest(texts=(SECRET,), user_id="owner", agent_id="annabelle")
    forget_journal.record_forgotten(home, asked, {"facts": 2})
    forget_journal.record_forgotten(home, asked.model_copy(update={"texts": (SECRET.upper(),)}), {"facts": 0})
    first, second = (json.loads(line) for line in home.forgotten_file.read_text().splitlines())
    assert first["hashes"] == second["hashes"]
    assert (first["by"], first["places"]) == ("owner", {"facts": 2})
    assert home.audit_key_file.stat().st_mode & 0o777 == 0o600
    assert not NEEDLE.found_in(home.forgotten_file.read_text())
    os.unlink(home.audit_key_file)
    forget_journal.record_forgotten(home, asked, {})
    assert json.loads(home.forgotten_file.read_text().splitlines()[-1])["hashes"] != first["hashes"]
