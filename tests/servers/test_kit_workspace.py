"""The workspace for servers: read, keep, write, without a way out of it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from annabelle.core.errors import AnnabelleError, Conflict, NotAllowed, NotFound, OperatorMistake, TooLarge
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.paths import WORKSPACE_FOLDERS
from annabelle.servers.kit.files.workspace import Workspace, clean_name
from servers.speaking import WriteGrants

pytestmark = pytest.mark.req("SRV-ALL", "SRV-FIL")


@pytest.fixture
def made(workspace: Path) -> Path:
    """The workspace, empty."""
    workspace.mkdir(parents=True)
    return workspace


@pytest.fixture
def files(config: FilesConfig) -> Workspace:
    return Workspace(config)


async def test_what_is_kept_can_be_read(files: Workspace, workspace: Path) -> None:
    kept = await files.keep("Downloads", "a b.txt", b"data")
    assert (kept.path, kept.size) == ("Downloads/a b.txt", 4)
    assert (await files.read(kept.path)).data == b"data"
    assert all((workspace / folder).is_dir() for folder in WORKSPACE_FOLDERS)


async def test_nothing_that_was_kept_is_replaced(files: Workspace, workspace: Path) -> None:
    kept = await asyncio.gather(*(files.keep("Downloads", "x.txt", bytes([65 + number])) for number in range(5)))
    assert len({file.path for file in kept}) == 5
    assert sorted(path.read_bytes() for path in (workspace / "Downloads").iterdir()) == [b"A", b"B", b"C", b"D", b"E"]
    assert {file.path for file in kept} >= {"Downloads/x.txt", "Downloads/x (5).txt"}


async def test_a_written_file_is_replaced_only_when_asked(files: Workspace, workspace: Path) -> None:
    await files.write("Notes/new/a.txt", b"one")
    with pytest.raises(Conflict, match="already exists"):
        await files.write("Notes/new/a.txt", b"two")
    assert (workspace / "Notes/new/a.txt").read_bytes() == b"one"
    await files.write("Notes/new/a.txt", b"two", replace=True)
    assert (workspace / "Notes/new/a.txt").read_bytes() == b"two"
    with pytest.raises(Conflict, match="folder"):
        await files.write("Notes/new", b"x", replace=True)


@pytest.mark.parametrize(
    "path", ["../x.txt", "Notes/../../x", "/etc/passwd", "%2e%2e/x", "~/.ssh/id_rsa", "a\x00b", ""]
)
async def test_no_path_leads_out(files: Workspace, path: str) -> None:
    for action in (
        files.read(path),
        files.write(path, b"x"),
        files.folder(path, make=True),
        files.keep(path, "x", b""),
    ):
        if path == "" and action.__name__ in ("folder", "keep"):
            action.close()  # an empty path is the workspace itself where a folder is asked for
            continue
        with pytest.raises(AnnabelleError):
            await action


async def test_a_link_is_not_followed(files: Workspace, made: Path, outside: Path) -> None:
    (made / "way").symlink_to(outside)
    (made / "file.txt").symlink_to(outside / "secret.txt")
    os.link(outside / "secret.txt", made / "second.txt")
    for action in (
        files.read("file.txt"),
        files.read("way/secret.txt"),
        files.read("second.txt"),
        files.write("file.txt", b"x", replace=True),
        files.write("way/new.txt", b"x"),
        files.keep("way", "new.txt", b"x"),
        files.folder("way"),
    ):
        with pytest.raises(NotAllowed):
            await action
    assert os.listdir(outside) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "the secret"


async def test_a_granted_folder_is_used_as_far_as_it_was_granted(
    files: Workspace, outside: Path, grant: WriteGrants
) -> None:
    grant({outside: "read"})
    assert (await files.read(str(outside / "secret.txt"))).data == b"the secret"
    with pytest.raises(NotAllowed):
        await files.write(str(outside / "new.txt"), b"x")
    grant({outside: "read-write"})
    await files.write(str(outside / "new.txt"), b"x")
    assert await files.folder(str(outside), "write") == outside


async def test_a_folder_with_a_protected_place_in_it_is_not_handed_on(
    files: Workspace, config: FilesConfig, grant: WriteGrants
) -> None:
    """Whoever gets the path, such as code that runs there, would reach the keys."""
    grant({config.user_home: "read-write"})
    (config.user_home / "Documents").mkdir()
    with pytest.raises(NotAllowed, match="protected place"):
        await files.folder(str(config.user_home), "write")
    with pytest.raises(NotAllowed) as refused:  # it may hold hidden files, which a grant of the home leaves out
        await files.folder(str(config.user_home / "Documents"), "write")
    assert "granted by itself" in str(refused.value.hint)
    grant({config.user_home: "read-write", config.user_home / "Documents": "read-write"})
    assert await files.folder(str(config.user_home / "Documents"), "write") == config.user_home / "Documents"


@pytest.mark.parametrize("name", ["run.EXE", "run.bat. ", "x.ps1", "x.sh", "x.scr", "x.desktop", "x.lnk", "x.cmd"])
async def test_no_program_is_made_from_outside(files: Workspace, workspace: Path, name: str) -> None:
    with pytest.raises(NotAllowed):
        await files.keep("Downloads", name, b"x")
    with pytest.raises(NotAllowed):
        await files.write(f"Downloads/{name}", b"x")
    assert list((workspace / "Downloads").iterdir()) == []


async def test_a_file_larger_than_asked_for_is_not_read(files: Workspace) -> None:
    await files.write("big.bin", b"12345")
    assert (await files.read("big.bin", max_bytes=5)).data == b"12345"
    with pytest.raises(TooLarge, match="5 bytes; at most 4"):
        await files.read("big.bin", max_bytes=4)
    with pytest.raises(NotFound):
        await files.read("none.bin")


async def test_a_name_from_outside_does_not_reach_a_message_raw(files: Workspace, made: Path) -> None:
    (made / "Downloads").write_text("in the way")
    with pytest.raises(Conflict) as caught:
        await files.keep("Downloads", "a\x1b[31m\n" + "b" * 5000, b"x")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500


async def test_a_workspace_that_can_not_be_made_is_the_operators_matter(config: FilesConfig, outside: Path) -> None:
    files = Workspace(replace(config, workspace=outside / "secret.txt"))
    with pytest.raises(OperatorMistake, match="can not be made"):
        await files.keep("Downloads", "x.txt", b"x")


@settings(deadline=None)
@given(name=st.text(max_size=300))
@example("../../etc/passwd")
@example("..\\..\\boot.ini")
@example("photo\u202egnp.exe.txt")
@example("CON")
@example("nul.tar.gz")
@example("é" * 300 + ".jpeg")
@example(".bashrc")
@example("a.b.c." + "d" * 200)
def test_every_name_becomes_a_plain_file_name(name: str) -> None:
    clean = clean_name(name)
    assert clean
    assert len(clean.encode()) <= 200
    assert not clean.startswith((".", " "))
    assert not clean.endswith((".", " "))
    assert not set(clean) & set('<>:"/\\|?*\x00\n\u202e\u2066')
    assert clean.partition(".")[0].upper() not in {"CON", "NUL", "AUX", "PRN", "COM1", "LPT1"}
    assert clean_name(clean) == clean, "cleaning what is clean changes nothing"
