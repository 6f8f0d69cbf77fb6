"""Notes: written by tools, read and changed by people, and nothing of it lost."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, TooLarge
from annabelle.core.messages import now
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.notes.markdown import Note, parse_note
from annabelle.servers.notes.notes_folder import MarkdownFile
from annabelle.servers.notes.server import build
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


async def test_a_note_is_a_markdown_file_a_person_can_read(ask: CallTool, workspace: Path) -> None:
    kept = await ask("create_note", title="Trip to Kraków", content="Book the train.", tags=["Travel", "#poland"])
    assert kept.path == "Notes/Trip to Kraków.md"
    text = (workspace / kept.path).read_text()
    assert text.startswith(f"---\nid: {kept.id}\ntitle: Trip to Kraków\ntags: [travel, poland]\ncreated: ")
    assert text.endswith("---\n\nBook the train.\n")
    shown = await ask("get_note", note=kept.id)
    assert (shown.title, shown.content, shown.tags) == ("Trip to Kraków", "Book the train.", ["travel", "poland"])


async def test_a_note_is_found_by_id_title_and_path(ask: CallTool) -> None:
    kept = await ask("create_note", title="Ideas", content="x")
    for which in (kept.id, "ideas", "Notes/Ideas.md", "Ideas.md"):
        assert (await ask("get_note", note=which)).id == kept.id
    with pytest.raises(NotFound, match="no note 'nothing'"):
        await ask("get_note", note="nothing")


async def test_notes_of_one_title_are_told_apart(ask: CallTool, workspace: Path) -> None:
    one = await ask("create_note", title="Same", content="1")
    two = await ask("create_note", title="Same", content="2")
    assert (one.path, two.path) == ("Notes/Same.md", "Notes/Same (2).md")
    with pytest.raises(Conflict, match="Several notes") as caught:
        await ask("get_note", note="same")
    assert two.id in str(caught.value.hint)
    assert (await ask("get_note", note=two.id)).content == "2"


async def test_a_note_whose_title_is_only_dots_is_found_again(ask: CallTool) -> None:
    kept = await ask("create_note", title="...", content="x")
    assert kept.path.endswith(".md")
    assert (await ask("get_note", note=kept.id)).content == "x"


async def test_text_is_added_or_replaced_and_the_text_before_is_kept(ask: CallTool, workspace: Path) -> None:
    kept = await ask("create_note", title="Log", content="one")
    added = await ask("update_note", note=kept.id, content="two")
    assert (await ask("get_note", note=kept.id)).content == "one\n\ntwo"
    assert "one\n" in (workspace / added.backup).read_text()
    await ask("update_note", note=kept.id, content="three", mode="replace", tags=["x"], title="New")
    shown = await ask("get_note", note=kept.id)
    assert (shown.content, shown.tags, shown.title) == ("three", ["x"], "New")
    same = await ask("update_note", note=kept.id, content="three", mode="replace")
    assert same.backup is None
    with pytest.raises(InvalidArguments, match="Nothing is to be changed"):
        await ask("update_note", note=kept.id)


async def test_what_a_person_wrote_is_kept(ask: CallTool, workspace: Path) -> None:
    kept = await ask("create_note", title="Shared", content="mine")
    file = workspace / kept.path
    file.chmod(0o600)
    file.write_text(file.read_text().replace("---\n\nmine", "mood: good\n# a comment\n---\n\nmine and yours"))
    await ask("update_note", note=kept.id, content="more")
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "mood: good\n# a comment\n---" in text
    assert text.endswith("mine and yours\n\nmore\n")


async def test_files_without_a_head_are_notes_too(ask: CallTool, workspace: Path) -> None:
    await ask("create_note", title="First")
    (workspace / "Notes/plain.md").write_text("# A heading\n\nBy hand.\n")
    (workspace / "Notes/rule.md").write_text("---\n\nJust a line above\n\n---\nand below\n")
    (workspace / "Notes/old.md").write_bytes("grün".encode("latin-1"))
    (workspace / "Notes/torn.md").write_text("---\nid: n-0123456789\ntitle: To")
    titles = {note.title: note for note in (await ask("list_notes")).notes}
    assert titles.keys() == {"First", "A heading", "rule", "old", "torn"}
    assert (await ask("get_note", note="rule")).content.startswith("---\n\nJust a line")
    before = titles["A heading"].id
    await ask("update_note", note="A heading", content="By tool.")
    shown = await ask("get_note", note=before)
    assert shown.content == "# A heading\n\nBy hand.\n\nBy tool."
    assert (await ask("get_note", note="old")).content == "grün"


async def test_links_and_strange_files_are_left_alone(ask: CallTool, workspace: Path, outside: Path) -> None:
    await ask("create_note", title="Real")
    (workspace / "Notes/link.md").symlink_to(outside / "secret.txt")
    os.link(outside / "secret.txt", workspace / "Notes/hard.md")
    os.mkfifo(workspace / "Notes/pipe.md")
    (workspace / "Notes/folder.md").mkdir()
    (workspace / "Notes/huge.md").write_bytes(b"x" * 2_000_001)
    assert [note.title for note in (await ask("list_notes")).notes] == ["Real"]
    assert (await ask("search_notes", query="secret")).hits == []


async def test_a_folder_that_is_a_link_is_refused(ask: CallTool, workspace: Path, outside: Path) -> None:
    await ask("create_note", title="Real")
    (workspace / "Notes").rename(workspace / "Before")
    (workspace / "Notes").symlink_to(outside)
    with pytest.raises(NotAllowed):
        await ask("create_note", title="Escaped")
    assert os.listdir(outside) == ["secret.txt"]


async def test_a_deleted_note_can_be_brought_back(ask: CallTool, workspace: Path) -> None:
    kept = await ask("create_note", title="Gone", content="precious")
    gone = await ask("delete_note", note="gone")
    assert not (workspace / kept.path).exists()
    assert gone.backup in gone.message
    (workspace / gone.backup).rename(workspace / kept.path)
    assert (await ask("get_note", note=kept.id)).content == "precious"


async def test_notes_are_listed_by_tag_and_title_page_by_page(ask: CallTool) -> None:
    for number in range(5):
        await ask("create_note", title=f"Note {number}", tags=["even"] if number % 2 == 0 else [])
    assert (await ask("list_notes", tag="#Even")).total == 3
    assert [note.title for note in (await ask("list_notes", query="NOTE 3")).notes] == ["Note 3"]
    seen: list[str] = []
    page = await ask("list_notes", limit=2)
    while True:
        seen += [note.id for note in page.notes]
        if page.next_page is None:
            break
        page = await ask("list_notes", limit=2, page_token=page.next_page)
    assert len(set(seen)) == len(seen) == 5


async def test_words_are_found_with_their_lines(ask: CallTool) -> None:
    await ask("create_note", title="Recipe", content="Flour\nTwo eggs\nMilk", tags=["kitchen"])
    await ask("create_note", title="Other", content="Milk alone")
    hits = (await ask("search_notes", query="MILK eggs")).hits
    assert [(hit.title, hit.lines) for hit in hits] == [("Recipe", ["2: Two eggs", "3: Milk"])]
    assert [hit.title for hit in (await ask("search_notes", query="kitchen")).hits] == ["Recipe"]


async def test_a_long_note_is_cut_and_kept_whole(ask: CallTool, workspace: Path) -> None:
    await ask("create_note", title="Long", content="word " * 10_000)
    shown = await ask("get_note", note="Long")
    assert len(shown.content) == 20_000
    assert (workspace / shown.rest).read_text().split() == ["word"] * 10_000


async def test_a_note_does_not_grow_without_an_end(ask: CallTool, workspace: Path) -> None:
    await ask("create_note", title="Long")
    (workspace / "Notes/Long.md").write_text("x" * 1_900_000)
    with pytest.raises(TooLarge, match="at most 2000000"):
        await ask("update_note", note="Long", content="x" * 200_000)
    assert (workspace / "Notes/Long.md").read_text() == "x" * 1_900_000


async def test_many_changes_at_once_from_two_servers_lose_nothing(ask: CallTool, config: FilesConfig) -> None:
    kept = await ask("create_note", title="Busy")
    other = build(config)
    await asyncio.gather(
        *(ask("update_note", note=kept.id, content=f"a{number}") for number in range(10)),
        *(other.tools["update_note"].call({"note": kept.id, "content": f"b{number}"}) for number in range(10)),
    )
    words = (await ask("get_note", note=kept.id)).content.split()
    assert sorted(words) == sorted(f"{letter}{number}" for letter in "ab" for number in range(10))


@pytest.mark.parametrize(
    "title", ["../../etc/passwd", "a/b\\c", ".hidden", "x" * 200, "con\u202ename", "new\nline", "😀", "a.exe"]
)
async def test_any_title_stays_in_its_folder(ask: CallTool, workspace: Path, title: str) -> None:
    kept = await ask("create_note", title=title, content="x")
    assert [path.relative_to(workspace).as_posix() for path in (workspace / "Notes").iterdir()] == [kept.path]
    assert (await ask("get_note", note=kept.id)).content == "x"


@pytest.mark.parametrize("title", ["", "\n\t", "\x00"])
async def test_a_title_that_says_nothing_is_refused(ask: CallTool, title: str) -> None:
    with pytest.raises(AnnabelleError):
        await ask("create_note", title=title)


@given(st.text(max_size=300))
def test_any_file_is_a_note(text: str) -> None:
    note = parse_note(MarkdownFile("Notes/a.md", "a.md", text, now()))
    assert note.id
    assert note.title


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_what_is_written_is_read_again(body: str) -> None:
    body = body.replace("\r", "").strip("\n")
    note = Note("n-0123456789", "A title", body, ("one", "two"), now().replace(microsecond=0), ("mood: good",))
    assert parse_note(MarkdownFile("Notes/a.md", "a.md", note.to_markdown(), now())) == note
