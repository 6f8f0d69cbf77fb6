"""Reading, listing and searching."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path

import anyio
import pytest

from annabelle.core.errors import Conflict, InvalidArguments, NotFound, TooLarge
from annabelle.servers.filer import folder_walk, read, search
from annabelle.servers.kit import Call
from annabelle.servers.kit.call import enter_call
from annabelle.servers.kit.tools import success
from servers.speaking import CallTool, WriteGrants

pytestmark = pytest.mark.req("SRV-FIL")


@pytest.fixture(autouse=True)
async def made(call: CallTool) -> None:
    await call("list_files")


async def test_text_comes_back_as_it_is(call: CallTool, workspace: Path) -> None:
    (workspace / "a.txt").write_text("grüße\r\n\tTab", newline="")
    result = await call("read_file", path="a.txt")
    assert (result.content, result.encoding, result.truncated) == ("grüße\r\n\tTab", "utf-8", False)
    assert result.to_text() == "grüße\r\n\tTab"


async def test_an_empty_file_is_text(call: CallTool, workspace: Path) -> None:
    (workspace / "a.txt").touch()
    result = await call("read_file", path="a.txt")
    assert (result.kind, result.content) == ("text", "")
    assert result.to_text() == "a.txt is empty."


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("grüße".encode("latin-1"), "grüße", "latin-1"),
        (b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", "grüße", "utf-8"),
        ("grüße".encode("utf-16"), "grüße", "utf-16"),
    ],
)
async def test_other_encodings_are_read(call: CallTool, workspace: Path, data: bytes, text: str, encoding: str) -> None:
    (workspace / "a.txt").write_bytes(data)
    result = await call("read_file", path="a.txt")
    assert (result.content, result.encoding) == (text, encoding)
    assert ("Latin-1" in (result.notice or "")) == (encoding == "latin-1")


async def test_a_long_text_is_cut_with_a_notice_between_characters(
    call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "SHOWN_TEXT_BYTES", 11)
    (workspace / "a.txt").write_text("ü" * 50)
    result = await call("read_file", path="a.txt")
    assert result.truncated
    assert result.content == "ü" * 5
    assert result.encoding == "utf-8"
    assert "first 11 of 100 bytes" in result.to_text()


async def test_files_over_the_limits_are_refused(
    call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (read.MAX_TEXT_BYTES, read.MAX_BINARY_BYTES) == (50_000_000, 10_000_000)
    (workspace / "big.txt").write_bytes(b"text" * 10)
    os.truncate(workspace / "big.txt", 50_000_001)
    (workspace / "big.bin").write_bytes(b"\0")
    os.truncate(workspace / "big.bin", 10_000_001)
    monkeypatch.setattr(read, "SHOWN_TEXT_BYTES", 40)
    for path in ("big.txt", "big.bin"):
        with pytest.raises(TooLarge):
            await call("read_file", path=path)


async def test_a_binary_file_is_described_and_given_as_base64(call: CallTool, workspace: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    (workspace / "a.png").write_bytes(data)
    result = await call("read_file", path="a.png")
    assert (result.kind, result.media_type, result.size) == ("binary", "image/png", len(data))
    assert base64.b64decode(result.content) == data
    assert "image/png" in result.to_text()
    assert len(result.to_text()) < 300


async def test_a_large_binary_file_is_only_described(call: CallTool, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"\0" * 1_000_000)
    result = await call("read_file", path="a.bin")
    assert result.content is None
    assert result.truncated
    assert result.sha256


async def test_what_is_no_file_is_named_and_never_waited_for(call: CallTool, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(workspace)  # the path of a socket must be short
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
        for path, word in (("pipe", "pipe"), ("sock", "socket"), ("Notes", "folder")):
            for tool, arguments in (
                ("read_file", {"path": path}),
                ("update_file", {"path": path, "content": "x"}),
                ("create_file", {"path": path, "content": "x", "overwrite": True}),
                ("copy_file", {"source": path, "destination": "copy"}),
            ):
                with anyio.fail_after(5), pytest.raises(Conflict, match=f"is a {word}"):
                    await call(tool, **arguments)


async def test_missing_files_and_files_as_folders_are_told_apart(call: CallTool, workspace: Path) -> None:
    (workspace / "a.txt").touch()
    with pytest.raises(NotFound, match=r"nope/b\.txt does not exist"):
        await call("read_file", path="nope/b.txt")
    with pytest.raises(Conflict, match="a file, not a folder"):
        await call("read_file", path="a.txt/b.txt")
    with pytest.raises(Conflict, match="not a folder"):
        await call("list_files", path="a.txt")
    with pytest.raises(NotFound):
        await call("list_files", path="nope")


async def test_a_decomposed_name_is_found_by_its_usual_spelling(call: CallTool, workspace: Path) -> None:
    (workspace / "Über").mkdir()
    (workspace / "Über" / "Café.txt").write_text("x")
    assert (await call("read_file", path="Über/Café.txt")).content == "x"
    await call("create_file", path="Café2.txt", content="y")
    assert (workspace / "Café2.txt").read_text() == "y", "a new name is stored in the usual spelling"


async def test_a_folder_is_listed_with_kinds_and_sizes(call: CallTool, workspace: Path, outside: Path) -> None:
    (workspace / "Notes/a.txt").write_text("12345")
    (workspace / "Notes/sub").mkdir()
    (workspace / "Notes/link").symlink_to(outside)
    result = await call("list_files", path="Notes")
    assert [(entry.path, entry.kind, entry.size) for entry in result.entries] == [
        ("Notes/a.txt", "file", 5),
        ("Notes/link", "link", None),
        ("Notes/sub", "folder", None),
    ]
    assert not result.truncated


async def test_a_recursive_list_follows_no_link_and_leaves_temp_out(
    call: CallTool, workspace: Path, outside: Path
) -> None:
    (workspace / "a/b").mkdir(parents=True)
    (workspace / "a/b/c.txt").touch()
    (workspace / "a/out").symlink_to(outside)
    (workspace / "temp/t.txt").touch()
    listed = {entry.path for entry in (await call("list_files", recursive=True)).entries}
    assert {"a/b/c.txt", "a/out", "temp"} <= listed
    assert not listed & {"temp/t.txt", "a/out/secret.txt"}
    assert {entry.path for entry in (await call("list_files", path="temp", recursive=True)).entries} == {"temp/t.txt"}


async def test_a_long_list_is_cut_and_says_so(call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_LISTED", 5)
    for number in range(9):
        (workspace / f"Notes/{number}.txt").touch()
    result = await call("list_files", path="Notes")
    assert result.truncated
    assert len(result.entries) == 5
    assert "first 5" in result.to_text()


async def test_a_walk_ends_at_its_limit(call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_walk, "MAX_SEEN", 3)
    result = await call("search_files", query="*.txt")
    assert result.truncated
    assert "ended after" in result.notice


async def test_names_that_are_no_text_are_left_out(call: CallTool, workspace: Path) -> None:
    os.mknod(os.fsencode(workspace) + b"/Notes/bad-\xff.txt")
    (workspace / "Notes/good.txt").touch()
    result = await call("list_files", path="Notes")
    assert [entry.path for entry in result.entries] == ["Notes/good.txt"]
    result.model_dump_json()


async def test_files_are_found_by_name(call: CallTool, workspace: Path) -> None:
    for name in ("Report.MD", "report.txt", "other.md"):
        (workspace / "Documents" / name).write_text("x")
    found = {match.path for match in (await call("search_files", query="REPORT")).matches}
    assert found == {"Documents/Report.MD", "Documents/report.txt"}
    found = {match.path for match in (await call("search_files", query="*.md")).matches}
    assert found == {"Documents/Report.MD", "Documents/other.md"}
    found = {match.path for match in (await call("search_files", query="report", file_types=["md"])).matches}
    assert found == {"Documents/Report.MD"}
    found = {match.path for match in (await call("search_files", query="documents/*.txt")).matches}
    assert found == {"Documents/report.txt"}


async def test_lines_are_found_by_content(call: CallTool, workspace: Path, outside: Path) -> None:
    (workspace / "a.txt").write_text("one\nThe Grüße are here\nthree")
    (workspace / "b.bin").write_bytes(b"\0are")
    (workspace / "big.txt").write_text("grüße " * 200_000)
    (workspace / "link.txt").symlink_to(outside / "secret.txt")
    result = await call("search_files", query="GRÜSSE are", search_type="content")
    assert [(match.path, match.line) for match in result.matches] == [("a.txt", 2)]
    assert result.matches[0].snippet == "The Grüße are here"
    assert not (await call("search_files", query="the secret", search_type="content")).matches


async def test_matches_are_bounded(call: CallTool, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_MATCHES", 3)
    for number in range(9):
        (workspace / f"Notes/{number}.txt").write_text("matcher\n" * 50)
    for kind, query in (("filename", "*.txt"), ("content", "matcher")):
        result = await call("search_files", query=query, search_type=kind)
        assert result.truncated
        assert len(result.matches) == 3


async def test_search_stays_where_it_was_told(
    call: CallTool, workspace: Path, outside: Path, grant: WriteGrants
) -> None:
    (workspace / "here.txt").touch()
    (outside / "there.txt").touch()

    async def found(where: str) -> set[str]:
        return {Path(m.path).name for m in (await call("search_files", query="*here.txt", search_in=where)).matches}

    assert await found("all") == {"here.txt"}, "nothing is granted yet"
    grant({outside: "read"})
    assert await found("workspace") == {"here.txt"}
    assert await found("granted") == {"there.txt"}
    assert await found("all") == {"here.txt", "there.txt"}


async def test_an_empty_file_type_is_refused(call: CallTool) -> None:
    with pytest.raises(InvalidArguments):
        await call("search_files", query="x", file_types=["."])


async def test_a_walk_reports_how_far_it_is(call: CallTool, workspace: Path) -> None:
    seen: list[str | None] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    enter_call(Call(_progress=note))
    await call("search_files", query="nothing")
    assert seen
    assert "entries seen" in str(seen[-1])


async def test_the_workspace_is_summed_up(call: CallTool, workspace: Path) -> None:
    (workspace / "Notes/a.txt").write_text("12345")
    (workspace / "top.txt").write_text("1")
    result = await call("get_workspace_info")
    assert (result.files, result.bytes, result.path) == (2, 6, str(workspace))
    assert {folder.name: folder.files for folder in result.folders}["Notes"] == 1
    assert result.free_bytes > 0


@pytest.mark.req("FST-05")
async def test_a_name_with_a_line_break_is_one_line_for_a_person(call: CallTool, workspace: Path) -> None:
    (workspace / "a\nb.txt").write_text("two\nlines")
    (workspace / "\n").touch()
    listed = success(await call("list_files"), 10_000)
    shown = [block.text for block in listed.content][1].splitlines()
    assert {"\\n  0 bytes", "a\\nb.txt  9 bytes"} <= set(shown)
    assert len(shown) == len(listed.structured_content["entries"])
    assert {"\n", "a\nb.txt"} <= {entry["path"] for entry in listed.structured_content["entries"]}
