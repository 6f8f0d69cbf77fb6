"""Which playbooks a message calls for: by whole words, by priority, and from files as they are now."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from annabelle.skills.playbook_folder import PlaybookFolder


def write(folder: Path, name: str, *keywords: str, priority: int = 0, body: str = "Do it.") -> Path:
    listed = "".join(f'\n  - "{keyword}"' for keyword in keywords)
    path = folder / f"{name}.md"
    path.write_text(f"---\npriority: {priority}\nkeywords:{listed}\n---\n{body}\n")
    return path


def names(library: PlaybookFolder, text: str) -> list[str]:
    return [playbook.name for playbook in library.matching(text, ())]


@pytest.mark.req("PLB-02")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Check EMAIL now", True),
        ("e-mail? email!", True),
        ("please check\n my   Email.", True),
        ("What’s new", True),
        ("what's new?", True),
        ("Ada's email", True),
        ("emails", False),
        ("voicemail emailer", False),
        ("checkmy email_address", False),
        ("what is new", False),
        ("", False),
        ("ÉTÉ", True),
        ("été", True),
        ("étés", False),
    ],
)
def test_a_keyword_is_found_as_whole_words_in_any_case(tmp_path: Path, text: str, found: bool) -> None:
    write(tmp_path, "one", "email", "check my email", "what's new", "'s email", "été")
    assert bool(names(PlaybookFolder(tmp_path), text)) == found


@pytest.mark.req("PLB-02")
def test_the_most_important_come_first_and_no_more_than_three(tmp_path: Path) -> None:
    for name, priority in (("zeta", 10), ("alpha", 10), ("low", 1), ("high", 50), ("other", 99)):
        write(tmp_path, name, "tea" if name != "other" else "coffee", priority=priority)
    library = PlaybookFolder(tmp_path)
    assert names(library, "a cup of tea") == ["high", "alpha", "zeta"]
    assert names(library, "tea or coffee") == ["other", "high", "alpha"]
    assert names(library, "water") == []


@pytest.mark.req("PLB-02")
def test_an_edit_holds_from_the_next_message_on_and_nothing_else_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write(tmp_path, "first", "tea"), write(tmp_path, "second", "tea")
    library = PlaybookFolder(tmp_path)
    assert names(library, "tea") == ["first", "second"]
    opened: list[str] = []
    whole = Path.open

    def noted(path: Path, *args: object, **kwargs: object) -> object:
        opened.append(path.name)
        return whole(path, *args, **kwargs)  # type: ignore[arg-type]  # pyright: ignore

    monkeypatch.setattr(Path, "open", noted)
    assert names(library, "tea") == ["first", "second"]
    assert opened == []
    state = first.stat()
    write(tmp_path, "first", "ale")  # as long as before
    os.utime(first, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    opened.clear()
    assert names(library, "tea") == ["second"]
    assert names(library, "ale") == ["first"]
    assert opened == ["first.md"]
    second.unlink()
    write(tmp_path, "third", "tea")
    assert names(library, "tea") == ["third"]


@pytest.mark.req("PLB-02")
def test_a_broken_file_is_named_once_and_the_others_work(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "good", "tea")
    broken = tmp_path / "broken.md"
    broken.write_text("---\nkeywords: [tea\n---\nx")
    (tmp_path / "binary.md").write_bytes(b"---\nname: \xff\n---\n")
    (tmp_path / "huge.md").write_text("x" * 100_000)
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "notes.txt").write_text("no playbook")
    library = PlaybookFolder(tmp_path)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert names(library, "tea") == ["good"]
    said = sorted(record.getMessage() for record in caplog.records)
    assert len(said) == 4
    assert said[0] == "The playbook binary.md is passed over: it is not UTF-8"
    assert "broken.md is passed over: line 2: the list is not closed" in said[1]
    broken.write_text("---\nkeywords: [tea]\n---\nx")
    assert names(library, "tea") == ["broken", "good"]


@pytest.mark.req("PLB-02")
def test_a_folder_that_is_not_there_has_no_playbooks_until_it_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = PlaybookFolder(tmp_path / "playbooks")
    assert [names(library, "tea") for _ in range(3)] == [[], [], []]
    assert len(caplog.records) == 1
    (tmp_path / "playbooks").mkdir()
    write(tmp_path / "playbooks", "first", "tea")
    assert names(library, "tea") == ["first"]


@pytest.mark.req("PLB-02")
def test_of_an_endless_message_the_beginning_is_looked_at(tmp_path: Path) -> None:
    write(tmp_path, "first", "tea")
    library = PlaybookFolder(tmp_path)
    assert names(library, "tea " + "x " * 1_000_000) == ["first"]
    assert names(library, "x " * 1_000_000 + "tea") == []


@pytest.mark.req("PLB-02")
def test_a_pipe_or_a_folder_among_the_playbooks_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, "mail", "email")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    assert names(PlaybookFolder(tmp_path), "check my email") == ["mail"]
