"""Making, changing, moving, copying and deleting files."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import anyio
import pytest

from annabelle.core.errors import Conflict, InvalidArguments, NotAllowed, NotFound, StorageTrouble, TooLarge
from annabelle.servers.filer import write
from annabelle.servers.filer.server import build
from annabelle.servers.kit.files import atomic_write
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.paths import WORKSPACE_FOLDERS
from servers.speaking import CallTool, WriteGrants

pytestmark = pytest.mark.req("SRV-FIL")


async def test_the_workspace_is_made_at_first_use(call: CallTool, workspace: Path) -> None:
    assert not await anyio.Path(workspace).exists()
    await call("create_file", path="Notes/a.txt", content="grüße\n")
    assert (workspace / "Notes/a.txt").read_text() == "grüße\n"
    assert all((workspace / folder).is_dir() for folder in WORKSPACE_FOLDERS)
    assert len(WORKSPACE_FOLDERS) == 11


async def test_create_makes_the_folders_it_needs(call: CallTool, workspace: Path) -> None:
    result = await call("create_file", path="a/b/c/d.txt", content="x")
    assert (workspace / "a/b/c/d.txt").read_text() == "x"
    assert (result.path, result.size, result.outcome) == ("a/b/c/d.txt", 1, "created")


async def test_create_does_not_overwrite_unasked(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    with pytest.raises(Conflict, match="already exists"):
        await call("create_file", path="a.txt", content="two")
    assert (workspace / "a.txt").read_text() == "one"


async def test_a_repeated_create_or_update_changes_nothing_more(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    assert (await call("create_file", path="a.txt", content="one")).outcome == "unchanged"
    assert (await call("update_file", path="a.txt", content="one")).outcome == "unchanged"
    assert not (workspace / "temp/backups").exists()


async def test_an_overwrite_can_be_undone(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    result = await call("create_file", path="a.txt", content="two", overwrite=True)
    assert (workspace / "a.txt").read_text() == "two"
    assert (workspace / result.backup).read_text() == "one"


async def test_an_update_can_be_undone_with_the_tools_at_hand(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    result = await call("update_file", path="a.txt", content="two")
    assert result.backup in result.to_text()
    await call("delete_file", path="a.txt")
    await call("move_file", source=result.backup, destination="a.txt")
    assert (workspace / "a.txt").read_text() == "one"


async def test_an_update_without_backup_keeps_none(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    result = await call("update_file", path="a.txt", content="two", create_backup=False)
    assert result.backup is None
    assert not (workspace / "temp/backups").exists()


async def test_an_update_keeps_the_permissions(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    (workspace / "a.txt").chmod(0o600)
    await call("update_file", path="a.txt", content="two")
    assert stat.S_IMODE((workspace / "a.txt").stat().st_mode) == 0o600


async def test_an_update_of_nothing_is_told(call: CallTool) -> None:
    with pytest.raises(NotFound, match=r"a\.txt does not exist"):
        await call("update_file", path="a.txt", content="two")


@pytest.mark.parametrize("path", ["a.exe", "a.EXE", "b.Bat", "c.ps1", "a.exe.", "a.exe ", "a.sh", "Code/x/bash/a.sh"])
async def test_programs_are_not_made(call: CallTool, workspace: Path, path: str) -> None:
    with pytest.raises(NotAllowed):
        await call("create_file", path=path, content="x")
    await call("create_file", path="plain.txt", content="x")
    for verb in ("move_file", "copy_file"):
        with pytest.raises(NotAllowed):
            await call(verb, source="plain.txt", destination=path)
    assert not (workspace / path).exists()


async def test_shell_scripts_have_their_folder(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="Code/bash/run.sh", content="echo")
    assert not os.access(workspace / "Code/bash/run.sh", os.X_OK)


async def test_a_program_the_user_has_may_be_moved(call: CallTool, workspace: Path) -> None:
    await call("list_files")
    (workspace / "Downloads/setup.exe").write_bytes(b"MZ")
    await call("move_file", source="Downloads/setup.exe", destination="Data/setup.exe")
    assert (workspace / "Data/setup.exe").exists()


async def test_a_deleted_file_can_be_taken_back(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    result = await call("delete_file", path="a.txt")
    assert not (workspace / "a.txt").exists()
    await call("move_file", source=result.trash, destination="a.txt")
    assert (workspace / "a.txt").read_text() == "one"


async def test_deleting_from_the_trash_is_for_good(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    trash = (await call("delete_file", path="a.txt")).trash
    assert (await call("delete_file", path=trash)).trash is None
    assert not (workspace / trash).exists()


async def test_delete_takes_a_link_and_not_its_target(call: CallTool, workspace: Path, outside: Path) -> None:
    await call("list_files")
    (workspace / "link").symlink_to(outside / "secret.txt")
    await call("delete_file", path="link")
    assert (outside / "secret.txt").read_text() == "the secret"
    assert not (workspace / "link").is_symlink()


async def test_folders_are_not_deleted(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a/b.txt", content="one")
    with pytest.raises(Conflict, match="is a folder"):
        await call("delete_file", path="a")
    with pytest.raises(Conflict, match="is a folder"):
        await call("delete_file", path=".")
    assert (workspace / "a/b.txt").exists()


async def test_move_and_copy_never_overwrite(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    await call("create_file", path="b.txt", content="two")
    for verb in ("move_file", "copy_file"):
        with pytest.raises(Conflict, match=r"b\.txt already exists"):
            await call(verb, source="a.txt", destination="b.txt")
        with pytest.raises(Conflict, match="Documents is a folder"):
            await call(verb, source="a.txt", destination="Documents")
    assert (workspace / "a.txt").read_text() == "one"
    assert (workspace / "b.txt").read_text() == "two"


async def test_a_file_moved_or_copied_to_its_own_place_stays_as_it_is(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    for verb in ("move_file", "copy_file"):
        result = await call(verb, source="a.txt", destination="./a.txt")
        assert result.outcome == "unchanged"
        assert result.to_text() == "a.txt stays as it is: its old and its new place are the same."
    assert (workspace / "a.txt").read_text() == "one"


async def test_a_repeated_copy_is_unchanged(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="one")
    assert (await call("copy_file", source="a.txt", destination="x/b.txt")).outcome == "copied"
    assert (await call("copy_file", source="a.txt", destination="x/b.txt")).outcome == "unchanged"
    assert (workspace / "x/b.txt").read_text() == "one"


async def test_a_folder_moves_with_what_is_in_it(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a/b.txt", content="one")
    await call("move_file", source="a", destination="c/d")
    assert (workspace / "c/d/b.txt").read_text() == "one"
    with pytest.raises(Conflict, match="into itself"):
        await call("move_file", source="c", destination="c/d/e")
    with pytest.raises(Conflict):
        await call("move_file", source=".", destination="x")


async def test_files_move_between_the_workspace_and_granted_folders(
    call: CallTool, workspace: Path, outside: Path, grant: WriteGrants
) -> None:
    grant({outside: "read-write"})
    await call("move_file", source=f"{outside}/secret.txt", destination="Notes/s.txt")
    await call("copy_file", source="Notes/s.txt", destination=f"{outside}/back/s.txt")
    assert (workspace / "Notes/s.txt").read_text() == (outside / "back/s.txt").read_text() == "the secret"
    assert not (outside / "secret.txt").exists()


async def test_what_lies_on_another_disk_is_carried_whole(
    call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def across(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    await call("create_file", path="a.txt", content="one")
    monkeypatch.setattr(write, "rename_new", across)  # the finished copy, in parts, still gets its name by a rename
    await call("move_file", source="a.txt", destination="b.txt")
    assert (workspace / "b.txt").read_text() == "one"
    assert not (workspace / "a.txt").exists()
    trash = (await call("delete_file", path="b.txt")).trash
    assert (workspace / trash).read_text() == "one"


async def test_a_full_disk_leaves_the_old_file(
    call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call("create_file", path="a.txt", content="one")

    def full(descriptor: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write, "_write_all", full)
    for verb, path in (("update_file", "a.txt"), ("create_file", "new.txt")):
        with pytest.raises(StorageTrouble, match="disk is full"):
            await call(verb, path=path, content="two")
    assert (workspace / "a.txt").read_text() == "one"
    assert not (workspace / "new.txt").exists()
    assert [path.name for path in (workspace / "temp").iterdir() if path.is_file()] == []


async def test_content_that_is_too_large_is_refused(call: CallTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "MAX_TEXT_BYTES", 10)
    with pytest.raises(TooLarge):
        await call("create_file", path="a.txt", content="ä" * 6)


async def test_half_a_character_is_refused(call: CallTool, workspace: Path) -> None:
    with pytest.raises(InvalidArguments) as caught:
        await call("create_file", path="a.txt", content="a\ud800")
    assert caught.value.field == "content"
    assert not (workspace / "a.txt").exists()


async def test_of_two_creations_at_once_one_wins_and_none_is_lost(call: CallTool, workspace: Path) -> None:
    outcomes: list[str] = []

    async def create(number: int) -> None:
        try:
            outcomes.append((await call("create_file", path="a.txt", content=f"{number}" * 100_000)).outcome)
        except Conflict:
            outcomes.append("refused")

    async with anyio.create_task_group() as tg:
        for number in range(8):
            tg.start_soon(create, number)
    assert sorted(outcomes) == ["created", *["refused"] * 7]
    assert len(set((workspace / "a.txt").read_text())) == 1


async def test_updates_at_once_leave_one_whole_text(call: CallTool, workspace: Path) -> None:
    await call("create_file", path="a.txt", content="start")
    async with anyio.create_task_group() as tg:
        for number in range(8):
            tg.start_soon(lambda n=number: call("update_file", path="a.txt", content=f"{n}" * 100_000))
    text = (workspace / "a.txt").read_text()
    assert len(text) == 100_000
    assert len(set(text)) == 1


async def test_old_trash_is_cleaned_and_new_is_kept(config: FilesConfig) -> None:
    first = build(config)
    await first.tools["create_file"].call({"path": "a.txt", "content": "x"})
    (config.workspace / "a.txt").touch()
    long_ago = time.time() - 30 * 86_400
    os.utime(config.workspace / "a.txt", (long_ago, long_ago))
    kept = config.workspace / (await first.tools["delete_file"].call({"path": "a.txt"})).trash
    (config.workspace / "temp/.part-999999999-ab12").write_text("of a dead process")
    mine = config.workspace / f"temp/.part-{os.getpid()}-ab12"
    mine.write_text("of a living process")

    await build(config).tools["list_files"].call({})
    assert kept.exists(), "an old file that was deleted today stays for its days"
    assert mine.exists()
    assert not (config.workspace / "temp/.part-999999999-ab12").exists()

    short = FilesConfig(**{**{name: getattr(config, name) for name in config.__slots__}, "cleanup_days": 1e-9})
    await build(short).tools["list_files"].call({})
    assert not kept.exists()
    assert (config.workspace / "temp/trash").is_dir()
