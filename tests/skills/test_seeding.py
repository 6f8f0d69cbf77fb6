"""The default playbooks come into a home once, stay up to date, and never over what a person did."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from annabelle.skills.playbook import read_playbook
from annabelle.skills.playbook_folder import (
    DEFAULTS,
    MANIFEST,
    SERVERS_WITH_PLAYBOOKS,
    PlaybookFolder,
    default_playbooks,
    seed_playbooks,
)

EXTRA = ["project-source-linking.md", "vercel-deployments.md"]
_PLAYBOOK = "---\nkeywords: [{keyword}]\n---\n{body}\n"


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    folder = tmp_path / "packaged"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}.md").write_text(_PLAYBOOK.format(keyword=name, body="As packaged."))
    return folder


@pytest.mark.req("PLB-01")
def test_fifteen_are_seeded_and_two_more_when_their_servers_are_there(tmp_path: Path) -> None:
    folder = tmp_path / "playbooks"
    assert len(seed_playbooks(folder, ())) == 15
    assert not any((folder / name).exists() for name in EXTRA)
    assert seed_playbooks(folder, {"filer", "memory"}) == []
    assert seed_playbooks(folder, {"neon"}) == ["project-source-linking.md"]
    assert seed_playbooks(folder, {"vercel", "neon"}) == ["vercel-deployments.md"]
    assert seed_playbooks(folder, ()) == []
    assert (folder / "vercel-deployments.md").exists()
    needed = {server for path in DEFAULTS.glob("*.md") for server in read_playbook(path).servers}
    assert needed == SERVERS_WITH_PLAYBOOKS


@pytest.mark.req("PLB-01")
@pytest.mark.parametrize("path", sorted(DEFAULTS.glob("*.md")), ids=lambda path: path.stem)
def test_every_default_says_how_when_and_with_what(path: Path) -> None:
    playbook = read_playbook(path)
    lines = playbook.instructions.splitlines()
    assert playbook.name == path.stem
    assert playbook.description
    assert playbook.keywords
    assert playbook.required_tools
    assert 5 <= len(lines) <= 10
    assert len(playbook.instructions.encode()) / 4 <= 200, "three of them fit the budget of their layer"
    assert not re.search(r'[<>&"]', playbook.instructions), "these signs would be escaped in the prompt"


@pytest.mark.req("PLB-01")
@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("Send an email to Ada", "email-compose", "Never send without confirmation"),
        ("put a meeting into my calendar", "schedule-meeting", "wait for a yes"),
        ("any news?", "research-and-share", "last 24 hours"),
        ("look up the opening hours", "research-and-share", "list the address of every source"),
        ("delete messages in the test chat", "message-cleanup", "Delete only after a yes"),
        ("delete skill backup", "skill-management", "wait for a yes"),
        ("remind me at noon", "cron-scheduling", "once, or again and again"),
        ("What's broken?", "system-health-check", "Ask for the status once"),
        ("what files do I have?", "file-operations", "one listing is the answer"),
    ],
)
def test_a_message_finds_the_rules_that_hold_for_it(tmp_path: Path, text: str, name: str, said: str) -> None:
    seed_playbooks(tmp_path, ())
    found = {playbook.name: playbook for playbook in PlaybookFolder(tmp_path).matching(text, _tools(tmp_path))}
    assert name in found
    assert said in found[name].instructions


def _tools(folder: Path) -> set[str]:
    """Every tool that some playbook requires."""
    return {tool for path in folder.glob("*.md") for tool in read_playbook(path).required_tools}


@pytest.mark.req("PLB-02")
@pytest.mark.parametrize(
    ("text", "name"), [("delete skill backup", "skill-management"), ("remind me at noon", "cron-scheduling")]
)
def test_a_playbook_stays_silent_while_nobody_serves_its_tools(tmp_path: Path, text: str, name: str) -> None:
    seed_playbooks(tmp_path, ())
    served = {tool for tool in _tools(tmp_path) if not re.fullmatch("memory_[a-z]+_skills?", tool)}
    folder = PlaybookFolder(tmp_path)
    assert name not in [playbook.name for playbook in folder.matching(text, served)]
    assert name in [playbook.name for playbook in folder.matching(text, _tools(tmp_path))]


@pytest.mark.req("PLB-02")
def test_a_playbook_speaks_while_half_of_its_tools_are_there(tmp_path: Path) -> None:
    for name, missing in (("a", 1), ("b", 2), ("c", 3), ("d", 0)):
        tools = ["here_1", "here_2", *(f"gone_{n}" for n in range(missing))]
        listed = "".join(f"\n  - {tool}" for tool in tools)
        (tmp_path / f"{name}.md").write_text(f"---\nkeywords: [tea]\nrequired_tools:{listed}\n---\nDo it.\n")
    found = PlaybookFolder(tmp_path).matching("tea", {"here_1", "here_2"})
    assert [playbook.name for playbook in found] == ["a", "b", "d"]


@pytest.mark.req("PLB-01")
def test_an_upgrade_replaces_the_untouched_keeps_the_edited_and_brings_back_nothing(
    tmp_path: Path, packaged: Path
) -> None:
    folder = tmp_path / "playbooks"
    assert seed_playbooks(folder, (), packaged) == ["one.md", "three.md", "two.md"]
    (folder / "two.md").write_text("mine")
    (folder / "three.md").unlink()
    for name in ("one", "two", "three", "four"):
        (packaged / f"{name}.md").write_text(_PLAYBOOK.format(keyword=name, body="Better."))
    (folder / "four.md").write_text("my own four")
    assert seed_playbooks(folder, (), packaged) == ["one.md"]
    assert "Better." in (folder / "one.md").read_text()
    assert (folder / "two.md").read_text() == "mine"
    assert (folder / "four.md").read_text() == "my own four"
    assert not (folder / "three.md").exists()
    # An edit that was taken back makes it Annabelle's again.
    (folder / "two.md").write_text((packaged / "two.md").read_text())
    seed_playbooks(folder, (), packaged)
    (packaged / "two.md").write_text(_PLAYBOOK.format(keyword="two", body="Best."))
    assert seed_playbooks(folder, (), packaged) == ["two.md"]


@pytest.mark.req("PLB-01")
def test_a_start_that_was_killed_before_it_noted_what_it_wrote_goes_on(tmp_path: Path, packaged: Path) -> None:
    folder = tmp_path / "playbooks"
    seed_playbooks(folder, (), packaged)
    (folder / MANIFEST).unlink()
    (folder / "two.md").unlink()
    assert seed_playbooks(folder, (), packaged) == ["two.md"]
    (packaged / "one.md").write_text(_PLAYBOOK.format(keyword="one", body="Better."))
    assert seed_playbooks(folder, (), packaged) == ["one.md"]


@pytest.mark.req("PLB-01")
@pytest.mark.parametrize("damage", ["", "{", "[1]", '"x"', "{\x00}"])
def test_a_damaged_note_costs_no_file_of_a_person(tmp_path: Path, packaged: Path, damage: str) -> None:
    folder = tmp_path / "playbooks"
    seed_playbooks(folder, (), packaged)
    (folder / "one.md").write_text("mine")
    (folder / MANIFEST).write_text(damage)
    assert seed_playbooks(folder, (), packaged) == []
    assert (folder / "one.md").read_text() == "mine"


@pytest.mark.req("PLB-01")
def test_a_link_or_a_folder_in_the_place_of_a_default_is_left_alone(tmp_path: Path, packaged: Path) -> None:
    folder, elsewhere = tmp_path / "playbooks", tmp_path / "elsewhere.md"
    folder.mkdir()
    elsewhere.write_text("mine")
    (folder / "one.md").symlink_to(elsewhere)
    (folder / "two.md").symlink_to(tmp_path / "nowhere.md")
    (folder / "three.md").mkdir()
    assert seed_playbooks(folder, (), packaged) == []
    assert elsewhere.read_text() == "mine"
    assert len(default_playbooks((), packaged)) == 3
