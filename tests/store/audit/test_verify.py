"""Whatever is done to the files of the audit behind its back, `verify` names the first record it was done to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from annabelle.core.errors import AlreadyRunning, StorageTrouble
from annabelle.core.home import Home
from annabelle.store.audit.chain import AuditLimits, AuditNote, timestamp_now
from annabelle.store.audit.records import AuditPaths, AuditQuery, read_latest
from annabelle.store.audit.verification import AuditVerification, verify_audit
from store.audit.conftest import chain_at, write

Lines = list[bytes]


def rewrite(places: AuditPaths, change: Callable[[Lines], Lines]) -> AuditVerification:
    lines = places.active.read_bytes().splitlines(keepends=True)
    places.active.write_bytes(b"".join(change(lines)))
    return verify_audit(places)


def found(verdict: AuditVerification) -> tuple[str, int | None, int | None]:
    assert verdict.problem is not None
    return verdict.problem.fault, verdict.problem.line, verdict.problem.n


@pytest.mark.req("TRU-08")
def test_an_untouched_audit_is_good_and_says_how_far_it_goes(ten: AuditPaths) -> None:
    verdict = verify_audit(ten)
    assert verdict.is_intact
    assert (verdict.records, verdict.first, verdict.last and verdict.last.n) == (10, 1, 10)


@pytest.mark.req("TRU-08")
@pytest.mark.parametrize(
    ("change", "fault", "line", "n"),
    [
        pytest.param(lambda all: [*all[:4], *all[5:]], "missing", 5, 6, id="cut in the middle"),
        pytest.param(lambda all: all[:7], "missing", 7, 8, id="cut tail"),
        pytest.param(lambda all: all[3:], "missing", 1, 4, id="cut beginning"),
        pytest.param(lambda all: [*all[:2], all[3], all[2], *all[4:]], "reordered", 3, 4, id="reordered"),
        pytest.param(lambda all: [*all[:5], all[1], *all[5:]], "reordered", 6, 2, id="an old one again"),
        pytest.param(lambda all: [*all[:5], all[4], *all[5:]], "duplicated", 6, 5, id="duplicated"),
        pytest.param(lambda all: [*all[:5], b"{}\n", *all[6:]], "altered", 6, None, id="replaced"),
        pytest.param(lambda all: [*all[:5], b"\n", *all[5:]], "altered", 6, None, id="a blank line"),
        pytest.param(lambda all: [], "missing", 0, 1, id="emptied"),
    ],
)
def test_the_first_record_that_does_not_fit_is_named_with_its_line(
    ten: AuditPaths, change: Callable[[Lines], Lines], fault: str, line: int, n: int | None
) -> None:
    verdict = rewrite(ten, change)
    assert found(verdict) == (fault, line, n)
    assert verdict.problem is not None
    assert verdict.problem.file == "audit.jsonl"


@pytest.mark.req("TRU-08")
def test_no_byte_of_any_record_can_be_edited_unseen(places: AuditPaths) -> None:
    write(places, 2)
    whole = places.active.read_bytes()
    for position in range(len(whole)):
        edited = whole[position] ^ 1
        places.active.write_bytes(whole[:position] + bytes([edited]) + whole[position + 1 :])
        verdict = verify_audit(places)
        assert not verdict.is_intact, f"byte {position} was edited"


@pytest.mark.req("TRU-08")
def test_records_made_anew_with_another_key_are_not_taken_for_ours(ten: AuditPaths) -> None:
    ten.key.write_bytes(b"0" * 64)
    ten.head.unlink()
    assert found(verify_audit(ten)) == ("altered", 1, 1)
    ten.key.unlink()
    assert found(verify_audit(ten)) == ("no_key", None, None)


@pytest.mark.req("TRU-08")
def test_a_head_that_is_gone_or_altered_is_told_also_after_the_next_start(ten: AuditPaths) -> None:
    head = ten.head.read_bytes()
    ten.head.write_bytes(head.replace(b'"n": 10', b'"n": 09'))
    assert found(verify_audit(ten))[0] == "head"
    ten.head.unlink()
    assert found(verify_audit(ten))[0] == "head"
    write(ten, 1)
    assert found(verify_audit(ten)) == ("head", 11, 11)


@pytest.mark.req("TRU-08")
def test_an_audit_that_is_gone_altogether_is_missed_also_after_the_next_start(ten: AuditPaths) -> None:
    ten.active.unlink()
    ten.head.unlink()
    assert found(verify_audit(ten))[0] == "head"
    write(ten, 3)
    assert found(verify_audit(ten)) == ("head", 1, 1)


@pytest.mark.req("TRU-08")
def test_a_first_start_on_a_full_disk_is_no_tampering(places: AuditPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("annabelle.store.audit.records.write_atomically", full)
        with pytest.raises(StorageTrouble):
            chain_at(places)
    write(places, 3)
    assert verify_audit(places).is_intact


@pytest.mark.req("TRU-08")
def test_a_file_deleted_while_it_is_written_is_missed_and_what_comes_then_is_not_lost(places: AuditPaths) -> None:
    chain = chain_at(places)
    chain.append([AuditNote("tool", {"tool": "first"}, timestamp_now())])
    places.active.unlink()
    chain.sync()
    chain.append([AuditNote("tool", {"tool": "second"}, timestamp_now())])
    chain.close()
    assert found(verify_audit(places)) == ("missing", 1, 2)
    assert [record.facts["tool"] for record in read_latest(places, AuditQuery())] == ["second"]


@pytest.mark.req("TRU-08")
def test_a_cut_tail_stays_visible_after_the_hub_went_on_writing(ten: AuditPaths) -> None:
    rewrite(ten, lambda lines: lines[:7])
    write(ten, 3)
    assert found(verify_audit(ten)) == ("missing", 8, 11)


@pytest.mark.req("TRU-08")
def test_a_deleted_file_is_missed(places: AuditPaths) -> None:
    write(places, 200, AuditLimits(max_bytes=10_000))
    assert verify_audit(places).is_intact
    rotated = places.rotated()
    assert len(rotated) >= 3
    kept = rotated[1].read_bytes()
    rotated[1].unlink()
    verdict = verify_audit(places)
    assert found(verdict)[:2] == ("missing", 1)
    assert verdict.problem is not None
    assert verdict.problem.file == rotated[2].name
    rotated[1].write_bytes(kept)
    rotated[0].unlink()
    assert found(verify_audit(places))[0] == "missing"


@pytest.mark.req("GRD-08", "TRU-08")
def test_what_rotation_dropped_is_not_missed(places: AuditPaths) -> None:
    write(places, 300, AuditLimits(max_bytes=10_000, keep_files=2))
    assert len(places.rotated()) == 2
    assert all(path.stat().st_size < 12_000 for path in places.files())
    verdict = verify_audit(places)
    assert verdict.is_intact, verdict.problem
    assert verdict.first is not None
    assert verdict.first > 1
    assert verdict.dropped == verdict.first - 1
    assert verdict.last is not None
    assert verdict.last.n >= 300


@pytest.mark.req("TRU-08")
def test_a_record_changed_before_rotation_dropped_it_is_still_told(places: AuditPaths) -> None:
    limits = AuditLimits(max_bytes=10_000, keep_files=1)
    write(places, 60, limits)
    (oldest,) = places.rotated()
    *kept, last = oldest.read_bytes().splitlines(keepends=True)
    digest = str(json.loads(last)["hash"]).encode()
    oldest.write_bytes(b"".join([*kept, last.replace(digest, digest[::-1])]))
    write(places, 30, limits)
    assert not oldest.exists()
    assert found(verify_audit(places)) == ("altered", 1, len(kept) + 2)


@pytest.mark.req("TRU-08")
def test_a_record_of_another_history_of_the_same_home_does_not_fit(ten: AuditPaths) -> None:
    """A backup that is put back makes two histories under one key, and every record of both is genuine."""
    backup = {path: path.read_bytes() for path in (ten.active, ten.head)}

    def go_on(tool: str) -> Lines:
        chain = chain_at(ten)
        chain.append([AuditNote("tool", {"tool": tool}, timestamp_now())] * 3)
        chain.close()
        return ten.active.read_bytes().splitlines(keepends=True)

    other = go_on("before")
    for path, blob in backup.items():
        path.write_bytes(blob)
    go_on("after")
    assert verify_audit(ten).is_intact
    assert found(rewrite(ten, lambda lines: [*lines[:10], other[10], *lines[11:]])) == ("altered", 12, 12)


@pytest.mark.req("TRU-08")
def test_a_line_torn_by_a_kill_is_repaired_at_the_next_start_and_no_tampering(ten: AuditPaths) -> None:
    with ten.active.open("ab") as file:
        file.write(b'{"at":"2026-01-01T00:0')
    torn = verify_audit(ten)
    assert torn.is_intact
    assert torn.torn == 22
    write(ten, 1)
    assert verify_audit(ten).is_intact
    assert ten.torn.read_bytes() == b'{"at":"2026-01-01T00:0\n'
    assert [record.facts for record in read_latest(ten, AuditQuery(kind="audit"))] == [
        {"event": "repaired", "bytes": 22}
    ]


@pytest.mark.req("TRU-08")
def test_half_of_a_record_that_was_there_is_missed(ten: AuditPaths) -> None:
    whole = ten.active.read_bytes()
    ten.active.write_bytes(whole[:-20])
    assert found(verify_audit(ten)) == ("missing", 9, 10)
    write(ten, 1)
    assert found(verify_audit(ten))[0] == "missing"


@pytest.mark.req("TRU-08")
def test_two_processes_can_not_write_one_audit(home: Home, places: AuditPaths) -> None:
    code = (
        "import sys; from annabelle.core.home import Home; from annabelle.core.secrets.redactor import Redactor;"
        "from annabelle.store.audit.chain import AuditChain, AuditLimits;"
        "from annabelle.store.audit.records import AuditPaths;"
        "AuditChain(AuditPaths.from_home(Home.from_environment()), AuditLimits(), Redactor()).open();"
        "print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(AlreadyRunning):
        chain_at(places)
    other.communicate(timeout=20)
    chain_at(places).close()


@pytest.mark.req("TRU-08")
def test_an_audit_can_be_verified_while_it_is_written_and_rotated(places: AuditPaths) -> None:
    chain = chain_at(places, AuditLimits(max_bytes=10_000, keep_files=3))
    for number in range(300):
        chain.append([AuditNote("tool", {"tool": f"t{number}"}, timestamp_now())])
        if number % 10 == 0:
            verdict = verify_audit(places)
            assert verdict.is_intact, verdict.problem
    chain.close()


@pytest.mark.parametrize("at", ["once upon a time", "2026-11-15T08:30:00"])
def test_a_record_whose_time_was_edited_is_passed_over_and_named(ten: AuditPaths, at: str) -> None:
    lines = ten.active.read_bytes().splitlines(keepends=True)
    lines[4] = json.dumps({**json.loads(lines[4]), "at": at}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    ten.active.write_bytes(b"".join(lines))
    shown = read_latest(ten, AuditQuery(since=datetime(2020, 1, 1, tzinfo=UTC)))
    assert [record.n for record in shown] == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert found(verify_audit(ten)) == ("altered", 5, None)


def test_nothing_at_all_is_good(places: AuditPaths) -> None:
    verdict = verify_audit(places)
    assert verdict.is_intact
    assert verdict.records == 0
