"""What is allowed, by whom, and what is remembered of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annabelle.core.errors import AnnabelleError, ConfigMistake, InvalidArguments, NotAllowed
from annabelle.core.ids import new_id
from annabelle.core.trace import use_trace
from annabelle.servers.filer.operations import FileAuditLog
from annabelle.servers.filer.server import build
from annabelle.servers.kit import Call
from annabelle.servers.kit.call import enter_call
from annabelle.servers.kit.files.config import FilesConfig
from servers.speaking import CallTool, WriteGrants

pytestmark = pytest.mark.req("SRV-FIL")


async def test_an_absolute_path_needs_a_grant(call: CallTool, outside: Path, grant: WriteGrants) -> None:
    with pytest.raises(NotAllowed, match="not granted"):
        await call("read_file", path=f"{outside}/secret.txt")
    grant({outside: "read"})
    assert (await call("read_file", path=f"{outside}/secret.txt")).content == "the secret"
    with pytest.raises(NotAllowed, match="reading only"):
        await call("update_file", path=f"{outside}/secret.txt", content="x")
    with pytest.raises(NotAllowed, match="reading only"):
        await call("delete_file", path=f"{outside}/secret.txt")
    with pytest.raises(NotAllowed, match="reading only"):
        await call("move_file", source=f"{outside}/secret.txt", destination="mine.txt")
    grant({outside: "read-write"})
    await call("update_file", path=f"{outside}/secret.txt", content="new")
    assert (outside / "secret.txt").read_text() == "new"


async def test_a_workspace_path_may_be_written_in_full(call: CallTool, workspace: Path) -> None:
    await call("create_file", path=f"{workspace}/Notes/a.txt", content="x")
    assert (await call("read_file", path="Notes/a.txt")).path == "Notes/a.txt"


async def test_one_file_can_be_granted(call: CallTool, outside: Path, grant: WriteGrants) -> None:
    (outside / "other.txt").write_text("x")
    grant({outside / "secret.txt": "read"})
    assert (await call("read_file", path=f"{outside}/secret.txt")).content == "the secret"
    for path in (f"{outside}/other.txt", f"{outside}/secret.txt.bak"):
        with pytest.raises(NotAllowed):
            await call("read_file", path=path)


async def test_the_closest_grant_decides(call: CallTool, outside: Path, grant: WriteGrants) -> None:
    (outside / "inner").mkdir()
    grant({outside: "read-write", outside / "inner": "read"})
    await call("create_file", path=f"{outside}/a.txt", content="x")
    with pytest.raises(NotAllowed, match="reading only"):
        await call("create_file", path=f"{outside}/inner/a.txt", content="x")


async def test_a_grant_through_a_link_the_user_made_works(
    call: CallTool, outside: Path, tmp_path: Path, grant: WriteGrants
) -> None:
    (tmp_path / "shortcut").symlink_to(outside)
    grant({tmp_path / "shortcut": "read"})
    assert (await call("read_file", path=f"{tmp_path}/shortcut/secret.txt")).content == "the secret"


async def test_tilde_is_the_users_home(call: CallTool, config: FilesConfig, grant: WriteGrants) -> None:
    (config.user_home / "docs").mkdir()
    (config.user_home / "docs/a.txt").write_text("x")
    grant({config.user_home / "docs": "read"})
    assert (await call("read_file", path="~/docs/a.txt")).content == "x"


PROTECTED = ["/etc/passwd", "/var/log", "/proc/self/environ", "/sys/kernel", "/dev/null", "/etc", "/ETC/passwd"]


@pytest.mark.parametrize("path", PROTECTED)
async def test_protected_places_stay_closed_even_when_granted(call: CallTool, grant: WriteGrants, path: str) -> None:
    grant({Path("/"): "read-write", Path(path): "read-write"})
    for tool, arguments in (
        ("read_file", {"path": path}),
        ("list_files", {"path": path}),
        ("create_file", {"path": f"{path}/x", "content": "x"}),
        ("copy_file", {"source": path, "destination": "mine"}),
    ):
        with pytest.raises(NotAllowed, match="protected"):
            await call(tool, **arguments)
    assert (await call("request_grant", path=path, permission="read", reason="r")).status == "denied"
    assert (await call("check_grant", path=path)).access == "none"


@pytest.mark.parametrize("name", [".ssh", ".gnupg", ".aws", ".config"])
async def test_keys_in_the_users_home_stay_closed(
    call: CallTool, config: FilesConfig, grant: WriteGrants, name: str
) -> None:
    place = config.user_home / name
    place.mkdir()
    (place / "key").write_text("private")
    grant({config.user_home: "read-write"})
    (config.user_home / "renamed").mkdir()
    for path in (f"~/{name}/key", f"{place}/key", f"{config.user_home}/./{name}//key"):
        with pytest.raises(NotAllowed, match="protected"):
            await call("read_file", path=path)
    with pytest.raises(NotAllowed):
        await call("move_file", source=f"~/{name}", destination="~/renamed/x")
    listed = await call("list_files", path=str(config.user_home), recursive=True)
    assert name not in {Path(entry.path).name for entry in listed.entries}
    assert not (await call("search_files", query="private", search_type="content", search_in="all")).matches


async def test_a_protected_place_can_not_be_reached_under_another_name(
    call: CallTool, config: FilesConfig, tmp_path: Path, grant: WriteGrants
) -> None:
    (config.user_home / ".ssh").mkdir()
    (config.user_home / ".ssh/key").write_text("private")
    (tmp_path / "alias").symlink_to(config.user_home)
    grant({tmp_path / "alias": "read-write"})
    with pytest.raises(NotAllowed):
        await call("read_file", path=f"{tmp_path}/alias/.ssh/key")
    grant({tmp_path / "alias/.ssh": "read-write"})
    with pytest.raises(NotAllowed):
        await call("read_file", path=f"{tmp_path}/alias/.ssh/key")
    assert "protected" in (await call("list_grants")).notices[0]


async def test_own_data_stays_closed(call: CallTool, config: FilesConfig, grant: WriteGrants) -> None:
    config.home.token_file.write_text("token")
    grant({config.home.root.parent: "read-write", config.home.root: "read-write"})
    for path in (config.home.token_file, config.grants_file, config.audit_file, config.home.data / "x"):
        for tool, arguments in (
            ("read_file", {"path": str(path)}),
            ("create_file", {"path": str(path), "content": "{}", "overwrite": True}),
            ("delete_file", {"path": str(path)}),
        ):
            with pytest.raises(NotAllowed):
                await call(tool, **arguments)
    with pytest.raises(NotAllowed, match="protected"):
        await call("move_file", source=str(config.home.root), destination=f"{config.home.root.parent}/moved")
    await call("create_file", path=f"{config.workspace}/fine.txt", content="x")


@pytest.mark.req("TRU-07")
@pytest.mark.incident("I-09")
async def test_no_tool_writes_which_servers_run_or_which_were_accepted(
    call: CallTool, config: FilesConfig, grant: WriteGrants
) -> None:
    home = config.home
    grant({home.root.parent: "read-write", home.root: "read-write", home.config: "read-write"})
    await call("create_file", path="entries.json", content="{}")
    for path in (home.config / "external-mcps.json", home.pins_file, home.pins_file.with_name("pins-key.json")):
        for tool, arguments in (
            ("create_file", {"path": str(path), "content": "{}", "overwrite": True}),
            ("copy_file", {"source": "entries.json", "destination": str(path)}),
            ("move_file", {"source": "entries.json", "destination": str(path)}),
        ):
            with pytest.raises(NotAllowed, match="protected"):
                await call(tool, **arguments)
        assert not path.exists()


async def test_what_holds_a_protected_place_is_not_moved(
    call: CallTool, config: FilesConfig, tmp_path: Path, grant: WriteGrants
) -> None:
    grant({tmp_path.parent: "read-write"})
    with pytest.raises(NotAllowed, match="holds a protected"):
        await call("move_file", source=str(tmp_path), destination=f"{tmp_path.parent}/elsewhere")
    assert config.home.root.exists()


async def test_grants_and_log_outside_the_home_are_protected_too(config: FilesConfig, outside: Path) -> None:
    moved = {name: getattr(config, name) for name in config.__slots__}
    moved |= {"grants_file": outside / "grants.json", "audit_file": outside / "audit.jsonl"}
    (outside / "grants.json").write_text(json.dumps({"grants": [{"path": str(outside), "permission": "read-write"}]}))
    tools = build(FilesConfig(**moved)).tools
    await tools["create_file"].call({"path": f"{outside}/fine.txt", "content": "x"})
    for name in ("grants.json", "GRANTS.json", "audit.jsonl", "audit.jsonl.1"):
        with pytest.raises(NotAllowed):
            await tools["create_file"].call({"path": f"{outside}/{name}", "content": "{}", "overwrite": True})


@pytest.mark.parametrize("field", ["grants_file", "audit_file"])
def test_grants_and_log_may_not_lie_in_the_workspace(config: FilesConfig, field: str) -> None:
    changed = {name: getattr(config, name) for name in config.__slots__} | {field: config.workspace / "file.json"}
    with pytest.raises(ConfigMistake, match="inside the workspace"):
        build(FilesConfig(**changed))


@pytest.mark.parametrize("place", ["/etc", "/proc/self", "{home}/data"])
def test_a_protected_place_can_not_be_the_workspace(config: FilesConfig, place: str) -> None:
    values = {name: getattr(config, name) for name in config.__slots__}
    with pytest.raises(ConfigMistake, match="WORKSPACE_PATH"):
        build(FilesConfig(**{**values, "workspace": Path(place.format(home=config.home.root))}))


async def test_a_bad_grants_file_keeps_the_last_good_grants(
    call: CallTool, config: FilesConfig, outside: Path, grant: WriteGrants
) -> None:
    grant({outside: "read"})
    await call("read_file", path=f"{outside}/secret.txt")
    for number, bad in enumerate(
        ["{broken", '{"grants": [{"path": "/x", "permission": "admin"}]}', "[]", "\x00", "[" * 100_000]
    ):
        config.grants_file.write_text(bad + " " * number)
        assert (await call("read_file", path=f"{outside}/secret.txt")).content == "the secret"
        assert "last good grants" in (await call("list_grants")).notices[0]
    config.grants_file.unlink()
    with pytest.raises(NotAllowed):
        await call("read_file", path=f"{outside}/secret.txt")
    assert (await call("list_grants")).notices == []


async def test_a_bad_grants_file_at_the_start_grants_nothing(
    call: CallTool, config: FilesConfig, outside: Path
) -> None:
    config.grants_file.write_bytes(b"\xff\xfe")
    with pytest.raises(NotAllowed):
        await call("read_file", path=f"{outside}/secret.txt")
    assert (await call("check_grant", path=str(outside))).notices


async def test_a_relative_grant_is_ignored_and_told(call: CallTool, config: FilesConfig) -> None:
    config.grants_file.write_text('{"grants": [{"path": "docs", "permission": "read"}]}')
    result = await call("list_grants")
    assert result.grants == []
    assert "not absolute" in result.notices[0]


@pytest.mark.incident("I-02")
async def test_asking_for_a_grant_never_gives_one(
    call: CallTool, config: FilesConfig, outside: Path, grant: WriteGrants
) -> None:
    answer = await call("request_grant", path=str(outside), permission="read", reason="to help")
    assert answer.status == "configure_required"
    assert str(config.grants_file) in answer.message
    assert not config.grants_file.exists()
    with pytest.raises(NotAllowed):
        await call("read_file", path=f"{outside}/secret.txt")

    line = answer.message[answer.message.index("{") : answer.message.index("}") + 1]
    config.grants_file.write_text(json.dumps({"grants": [json.loads(line)]}))
    assert (await call("read_file", path=f"{outside}/secret.txt")).content == "the secret"
    assert (await call("request_grant", path=str(outside), permission="read", reason="r")).status == "granted"
    more = await call("request_grant", path=str(outside), permission="read-write", reason="r")
    assert more.status == "configure_required"


async def test_checks_tell_what_is_possible(call: CallTool, outside: Path, grant: WriteGrants) -> None:
    grant({outside: "read"})
    assert (await call("check_grant", path="Notes/a.txt")).access == "read-write"
    assert (await call("check_grant", path=f"{outside}/secret.txt")).access == "read"
    assert (await call("check_grant", path="/opt/x")).access == "none"
    assert [(g.path, g.permission) for g in (await call("list_grants")).grants] == [(str(outside), "read")]


async def test_every_operation_is_in_the_log_with_who_and_how(call: CallTool, outside: Path) -> None:
    trace = new_id("tr")
    with use_trace(trace):
        enter_call(Call(agent_id="annabelle", user_id="owner", call_id="m:1:0"))
        await call("create_file", path="a.txt", content="x")
        with pytest.raises(NotAllowed):
            await call("read_file", path=f"{outside}/secret.txt")
        with pytest.raises(AnnabelleError):
            await call("read_file", path="bad\x00\n\x1b[2Jname")
        await call("move_file", source="a.txt", destination="b.txt")
        entries = (await call("get_audit_log")).entries
    assert [(entry.operation, entry.result) for entry in entries] == [
        ("move_file", "ok"),
        ("read_file", "invalid_arguments"),
        ("read_file", "not_allowed"),
        ("create_file", "ok"),
    ]
    assert entries[0].destination == "b.txt"
    assert entries[1].path.isprintable()
    assert {(entry.agent, entry.user, entry.trace, entry.call) for entry in entries} == {
        ("annabelle", "owner", trace, "m:1:0")
    }


async def test_every_tool_leaves_a_line(call: CallTool, config: FilesConfig) -> None:
    calls = {
        "create_file": {"path": "a.txt", "content": "x"},
        "read_file": {"path": "a.txt"},
        "list_files": {},
        "update_file": {"path": "a.txt", "content": "y"},
        "copy_file": {"source": "a.txt", "destination": "b.txt"},
        "move_file": {"source": "b.txt", "destination": "c.txt"},
        "delete_file": {"path": "c.txt"},
        "search_files": {"query": "a"},
        "check_grant": {"path": "a"},
        "request_grant": {"path": "/opt/x", "permission": "read", "reason": "r"},
        "list_grants": {},
        "get_workspace_info": {},
        "get_audit_log": {},
    }
    for tool, arguments in calls.items():
        await call(tool, **arguments)
    written = [json.loads(line)["operation"] for line in config.audit_file.read_text().splitlines()]
    assert written == list(calls)


async def test_the_log_is_filtered(call: CallTool) -> None:
    for name in ("a.txt", "b.md"):
        await call("create_file", path=name, content="x")
    await call("read_file", path="a.txt")

    async def ask(**filters: object) -> list[tuple[str, str]]:
        entries = (await call("get_audit_log", **filters)).entries
        return [(entry.operation, entry.path) for entry in entries if entry.operation != "get_audit_log"]

    assert await ask(path_filter="B.m") == [("create_file", "b.md")]
    assert await ask(path_filter="*.txt") == [("read_file", "a.txt"), ("create_file", "a.txt")]
    assert await ask(operation_filter="read_file") == [("read_file", "a.txt")]
    assert await ask(date_from="2999-01-01") == []
    assert len(await ask(date_from="2020-01-01T00:00:00+02:00")) == 3
    assert (await call("get_audit_log", limit=1)).truncated
    for bad in ({"date_from": "yesterday"}, {"limit": 0}, {"limit": 100_000}):
        with pytest.raises(InvalidArguments):
            await call("get_audit_log", **bad)


@pytest.mark.incident("I-30")
async def test_the_log_shows_a_person_only_their_own_lines(call: CallTool) -> None:
    enter_call(Call(user_id="anna"))
    await call("create_file", path="a.txt", content="x")
    enter_call(Call(user_id="bert"))
    assert (await call("get_audit_log", operation_filter="create_file")).entries == []
    enter_call(Call(user_id="anna"))
    assert len((await call("get_audit_log", operation_filter="create_file")).entries) == 1


def test_the_log_is_rotated_and_still_read_whole(tmp_path: Path) -> None:
    audit = FileAuditLog(tmp_path / "audit.jsonl", max_bytes=2000)
    for number in range(60):
        audit.record("read_file", f"{number:03}.txt", None, "ok", None)
    entries, more = audit.search(None, None, None, None, 1000)
    names = [entry.path for entry in entries]
    assert names == sorted(names, reverse=True)
    assert names[0] == "059.txt"
    assert not more
    assert 2 <= len(list(tmp_path.iterdir())) <= 6
    assert all(file.stat().st_size < 3000 for file in tmp_path.iterdir())


def test_a_torn_line_in_the_log_is_passed_over(tmp_path: Path) -> None:
    audit = FileAuditLog(tmp_path / "audit.jsonl")
    audit.record("read_file", "a.txt", None, "ok", None)
    with (tmp_path / "audit.jsonl").open("a") as file:
        file.write('{"time": "2026-')
    audit.record("read_file", "b.txt", None, "ok", None)
    assert [entry.path for entry in audit.search(None, None, None, None, 10)[0]] == ["b.txt", "a.txt"]


async def test_an_unwritable_log_does_not_hide_what_happened(
    call: CallTool, config: FilesConfig, caplog: pytest.LogCaptureFixture
) -> None:
    config.audit_file.mkdir()
    await call("create_file", path="a.txt", content="x")
    assert "audit log could not be written" in caplog.text
    assert (config.workspace / "a.txt").read_text() == "x"


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKSPACE_PATH", str(tmp_path / "ws"))
    monkeypatch.setenv("FILER_GRANTS_PATH", str(tmp_path / "g.json"))
    monkeypatch.setenv("AUDIT_LOG_PATH", str(tmp_path / "a.jsonl"))
    monkeypatch.setenv("TEMP_CLEANUP_DAYS", "3")
    config = FilesConfig.from_environment()
    assert (config.workspace, config.grants_file) == (tmp_path / "ws", tmp_path / "g.json")
    assert (config.audit_file, config.cleanup_days) == (tmp_path / "a.jsonl", 3)
    for bad in ("never", "0", "-1", "nan"):
        monkeypatch.setenv("TEMP_CLEANUP_DAYS", bad)
        with pytest.raises(ConfigMistake) as caught:
            FilesConfig.from_environment()
        assert caught.value.field == "TEMP_CLEANUP_DAYS"


async def test_a_grant_of_the_whole_home_opens_no_hidden_file(
    call: CallTool, config: FilesConfig, grant: WriteGrants
) -> None:
    person = config.user_home
    for name in (".ssh/id", ".netrc", ".mozilla/cookies", "project/.env", "project/main.py"):
        (person / name).parent.mkdir(parents=True, exist_ok=True)
        (person / name).write_text("matcher")
    for granted in (person, person.parent):
        grant({granted: "read-write"})
        assert (await call("read_file", path=f"{person}/project/main.py")).content == "matcher"
        for name in (".ssh/id", ".netrc", ".mozilla/cookies", "project/.env"):
            with pytest.raises(NotAllowed):
                await call("read_file", path=f"{person}/{name}")
            with pytest.raises(NotAllowed):
                await call("copy_file", source=f"{person}/{name}", destination="mine.txt")
        with pytest.raises(NotAllowed):
            await call("create_file", path=f"{person}/.bashrc", content="x")
        with pytest.raises(NotAllowed):  # a folder takes what is hidden in it along
            await call("move_file", source=f"{person}/project", destination="project")
        listed = await call("list_files", path=str(person), recursive=True)
        assert not [entry.path for entry in listed.entries if "/." in entry.path.removeprefix(str(person.parent))]
        found = await call("search_files", query="matcher", search_in="granted", search_type="content")
        assert not [one for one in found.matches if "/." in one.path.removeprefix(str(person.parent))]
    grant({person: "read", person / "project": "read"})
    assert (await call("read_file", path=f"{person}/project/.env")).content == "matcher"  # granted by itself
