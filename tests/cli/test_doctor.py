"""`annabelle doctor`: with a hub, without one, and where none can start."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.home import Home
from annabelle.hub.diagnosis import installation
from annabelle.hub.diagnosis.installation import ALWAYS, WHILE_STOPPED
from annabelle.hub.diagnosis.report import CHECKS
from annabelle.store.file_lock import FileLock
from cli.terminal import environment, json_only, run
from cli.typed import Keyboard
from hub.hubs import HubProcess


class Doctor:
    """Runs the command in this process on this test's home."""

    def __init__(self, home: Home, patch: pytest.MonkeyPatch) -> None:
        self._type = Keyboard(environment(home), patch)

    def __call__(self, *options: str) -> dict[str, Any]:
        typed = self._type("doctor", "--json", *options)
        assert typed.err == ""
        found = json_only(typed.out)
        assert typed.code == (1 if found["worst"] in ("critical", "warning") else 0)
        return found

    def find(self, check: str) -> list[dict[str, str]]:
        return [one for one in self()["findings"] if one["check"] == check and one["severity"] != "ok"]


@pytest.fixture
def doctor(home: Home, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    home.root.chmod(0o700)
    return Doctor(home, monkeypatch)


@pytest.mark.req("DIA-04")
def test_without_a_home_it_says_so_and_makes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "nowhere")
    found = Doctor(home, monkeypatch)()
    assert found["worst"] == "info"
    assert any("There is no home" in one["text"] for one in found["findings"])
    assert not home.root.exists()


@pytest.mark.req("DIA-04")
def test_a_fresh_home_is_fine_and_what_needs_a_hub_is_named(doctor: Doctor) -> None:
    found = doctor()
    assert found["running"] is False
    assert found["worst"] == "info"
    assert set(found["notChecked"]) == {check.id for check in CHECKS if check.needs_hub}
    here = {check.id for check in (*ALWAYS, *WHILE_STOPPED, *CHECKS) if not check.needs_hub}
    assert {one["check"] for one in found["findings"]} == here


@pytest.mark.req("DIA-04")
def test_a_setting_that_is_not_valid_is_named_with_its_line_and_the_rest_is_checked(doctor: Doctor, home: Home) -> None:
    home.settings_file.parent.mkdir(exist_ok=True)
    home.settings_file.write_text("# mine\nUSER_NAME=Ada\nBUDGET_DAY_USD=soon\n")
    home.settings_file.chmod(0o600)
    (found,) = doctor.find("settings-file")
    assert found["severity"] == "critical"
    assert found["text"].startswith("settings.env, line 3: BUDGET_DAY_USD is not valid")
    assert "soon" not in found["text"]
    assert len(doctor()["findings"]) > 20


@pytest.mark.req("DIA-04")
def test_a_hub_that_was_killed_leaves_a_run_file_that_is_removed(
    home: Home, known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = HubProcess(home).start()
    hub.kill()
    doctor = Doctor(home, monkeypatch)
    (found,) = doctor.find("hub-process")
    assert (found["severity"], found["subject"]) == ("warning", "stale")
    fixed = doctor("--fix")
    assert any("hub.json" in text for text in fixed["fixed"])
    assert not home.hub_file.exists()
    assert fixed["worst"] == "info", fixed
    assert doctor.find("database-files") == [], "what the kill left is whole"


@pytest.mark.req("DIA-04")
def test_a_port_that_another_program_has_is_critical(
    doctor: Doctor, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor.find("port") == []
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("ANNABELLE_PORT", str(port))
        (found,) = doctor.find("port")
    assert (found["severity"], found["text"]) == ("critical", f"Port {port} on 127.0.0.1 is taken by another program.")


@pytest.mark.req("DIA-04")
def test_while_a_hub_runs_it_is_asked_and_its_surroundings_are_looked_at(running: dict[str, str]) -> None:
    done = run(running, "doctor", "--json")
    found = json.loads(done.stdout)
    assert found["running"] is True
    assert {one["check"] for one in found["findings"]} == {check.id for check in (*CHECKS, *ALWAYS)}
    assert found["notChecked"] == []
    assert found["worst"] in ("ok", "info"), [one for one in found["findings"] if one["severity"] != "ok"]
    assert done.returncode == 0
    fixed = json.loads(run(running, "doctor", "--fix", "--json").stdout)
    assert fixed["fixed"] == []
    assert any("because Annabelle runs" in text for text in fixed["left"])


@pytest.mark.req("DIA-04")
def test_fix_leaves_the_files_of_a_running_hub_alone(running: dict[str, str]) -> None:
    home = Home(Path(running["ANNABELLE_HOME"]))
    log, known = home.logs / "large.log", home.known_servers_file.read_bytes()
    with log.open("wb") as file:
        file.truncate(50_000_000)
    home.known_servers_file.write_text('{"servers": [')
    try:
        assert json.loads(run(running, "doctor", "--fix", "--json").stdout)["fixed"] == []
        assert log.stat().st_size == 50_000_000
        assert home.known_servers_file.read_text() == '{"servers": ['
    finally:
        log.unlink(missing_ok=True)
        home.known_servers_file.write_bytes(known)


@pytest.mark.req("DIA-04")
def test_the_table_has_the_gravest_first_with_what_to_do_in_the_words_of_the_terminal(
    home: Home, doctor: Doctor
) -> None:
    home.halts_file.write_text('{"agents": {"annabelle": {"at": "2026-11-01T00:00:00Z", "by": "owner"}}}')
    home.database_file.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    typed = doctor._type("doctor")
    assert typed.code == 1
    lines = typed.out.splitlines()
    severities = [
        line.split()[0] for line in lines[1:] if line.split()[:1] and line.split()[0] in ("critical", "warning", "info")
    ]
    assert severities == sorted(severities, key=["critical", "warning", "info"].index)
    assert severities[0] == "critical"
    assert "Let it go on with annabelle resume annabelle" in typed.out
    assert lines[-1].endswith("need a running Annabelle.")


def locked(file: Path) -> contextlib.AbstractContextManager[sqlite3.Connection]:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return contextlib.closing(connection)


@pytest.mark.req("DIA-04")
def test_a_database_that_another_process_has_locked_is_critical(
    known: dict[str, str], home: Home, empty_database: Path
) -> None:
    shutil.copy(empty_database, home.database_file)
    with locked(home.database_file):
        found = json.loads(run(known, "doctor", "--json").stdout)
    (one,) = [one for one in found["findings"] if one["check"] == "database-files"]
    assert (one["severity"], one["text"]) == ("critical", "annabelle.db is locked by another program.")


@pytest.mark.req("DIA-04")
def test_a_torn_database_is_critical_and_the_way_back_is_named(
    doctor: Doctor, home: Home, empty_database: Path
) -> None:
    shutil.copy(empty_database, home.database_file)
    assert doctor.find("database-files") == []
    whole = home.database_file.read_bytes()
    home.database_file.write_bytes(whole[: len(whole) // 2])
    (found,) = doctor.find("database-files")
    assert (found["severity"], found["text"]) == ("critical", "annabelle.db is damaged.")
    assert "backup" in found["action"]


def test_a_hub_that_holds_its_home_and_does_not_answer_is_critical(doctor: Doctor, home: Home) -> None:
    lock = FileLock(home.hub_file)
    lock.acquire()
    try:
        (found,) = doctor.find("hub-process")
        assert found["severity"] == "critical"
        assert any("does not answer" in text for text in doctor("--fix")["left"])
    finally:
        lock.release()


@pytest.mark.req("DIA-04")
def test_fix_does_what_is_safe_says_it_and_keeps_every_byte(doctor: Doctor, home: Home) -> None:
    home.token_file.write_text("x" * 32)
    home.token_file.chmod(0o644)
    home.root.chmod(0o755)
    shutil.rmtree(home.logs)
    home.known_servers_file.write_text('{"servers": [')
    home.pins_file.write_text('{"torn')
    home.agents_file.parent.mkdir(exist_ok=True)
    home.agents_file.write_text('{"agents": [')
    checks = {one["check"] for one in doctor()["findings"] if one["severity"] in ("critical", "warning")}
    assert {"home-folder", "secret-files", "state-files", "config-files"} <= checks
    fixed = doctor("--fix")
    assert home.token_file.stat().st_mode & 0o777 == 0o600
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert home.logs.is_dir()
    assert home.known_servers_file.with_name("last-known-mcps.json.bad").read_text() == '{"servers": ['
    assert not home.known_servers_file.exists()
    assert home.pins_file.read_text() == '{"torn', "it says what a person accepted"
    assert home.agents_file.read_text() == '{"agents": [', "a person wrote it"
    assert any("pinned-servers.json" in text for text in fixed["left"])
    assert len(fixed["fixed"]) == 4
    left = {one["check"] for one in fixed["findings"] if one["severity"] in ("critical", "warning")}
    assert left == {"state-files", "config-files"}
    assert doctor("--fix")["fixed"] == [], "there is nothing more to fix"
    home.known_servers_file.write_text('{"again')
    doctor("--fix")
    kept = sorted(home.known_servers_file.parent.glob("last-known-mcps.json.bad*"))
    assert [one.read_text() for one in kept] == ['{"servers": [', '{"again'], "what was put aside before is still there"


@pytest.mark.req("DIA-04")
def test_fix_rotates_a_large_log_and_leaves_the_audit_and_what_is_to_stay_forgotten(doctor: Doctor, home: Home) -> None:
    home.logs.mkdir(exist_ok=True)
    for name in ("hub.log", "audit.jsonl", "forgotten.jsonl"):
        with (home.logs / name).open("wb") as file:
            file.truncate(50_000_000)
    (home.logs / "hub.log.1").write_text("older")
    fixed = doctor("--fix")
    assert fixed["fixed"] == ["Rotated hub.log to hub.log.1."]
    assert fixed["left"] == [f"{name} was left: it rotates by itself." for name in ("audit.jsonl", "forgotten.jsonl")]
    assert not (home.logs / "hub.log").exists()
    assert (home.logs / "hub.log.1").stat().st_size == 50_000_000
    assert (home.logs / "hub.log.2").read_text() == "older"


def test_fix_gives_back_what_a_database_no_longer_needs(doctor: Doctor, home: Home) -> None:
    with contextlib.closing(sqlite3.connect(home.memory_file)) as connection:
        connection.execute("CREATE TABLE large (data BLOB)")
        connection.execute("INSERT INTO large VALUES (zeroblob(12000000))")
        connection.commit()
        connection.execute("DELETE FROM large")
        connection.commit()
    assert any("memory.db" in text for text in doctor("--fix")["fixed"])
    assert home.memory_file.stat().st_size < 1_000_000


@pytest.mark.parametrize(("free", "severity"), [(200_000_000, None), (199_999_999, "warning"), (2_999_999, "critical")])
def test_a_disk_with_little_space_is_noticed(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, free: int, severity: str | None
) -> None:
    monkeypatch.setattr(installation.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(1, 1, free))
    assert [one["severity"] for one in doctor.find("disk-space")] == ([severity] if severity else [])


def test_a_missing_packaged_model_is_noticed(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.find("packaged-models") == []
    monkeypatch.setattr("annabelle.llm.gguf_models.find_packaged_weights", lambda: None)
    assert len(doctor.find("packaged-models")) == 1


def test_a_running_hub_that_refuses_is_a_finding_and_not_the_end(
    home: Home, known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = HubProcess(home).start()
    try:
        home.token_file.write_text("a wrong token of sixteen and more")
        (found,) = Doctor(home, monkeypatch).find("hub-process")
        assert found["severity"] == "critical"
        assert "can not be asked" in found["text"]
    finally:
        hub.stop()


@pytest.mark.req("DIA-04")
def test_a_file_in_the_place_of_a_folder_is_named_and_no_check_shows_a_stack_trace(doctor: Doctor, home: Home) -> None:
    shutil.rmtree(home.data)
    home.data.write_text("no folder")
    (finding,) = doctor.find("home-folder")
    assert (finding["severity"], finding["text"].split()[0]) == ("critical", "data")


@pytest.mark.req("DIA-04")
@pytest.mark.parametrize("content", ["{", '{"users": [{"id": "NOT VALID"}]}'], ids=["torn", "wrong"])
def test_a_file_of_users_that_cannot_be_read_is_named(doctor: Doctor, home: Home, content: str) -> None:
    home.users_file.parent.mkdir(exist_ok=True)
    home.users_file.write_text(content)
    (finding,) = doctor.find("config-files")
    assert "users.json" in finding["text"]
