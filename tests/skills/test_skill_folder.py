"""The folder of skills: found in it and in checkouts, reread after a change, pinned once installed."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import pytest

from annabelle.skills.playbook_folder import PlaybookFolder
from annabelle.skills.skill_file import SkillMistake
from annabelle.skills.skill_folder import SkillFolder, SkillPins, hash_skill


def write(root: Path, name: str, *metadata: str, body: str = "Do it.", description: str = "Does it.") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    extra = "".join(f"\n  {line}" for line in metadata)
    text = f"---\nname: {name}\ndescription: {description}\nmetadata:{extra}\n---\n{body}\n"
    (folder / "SKILL.md").write_text(text)
    return folder


def open_folder(tmp_path: Path) -> SkillFolder:
    return SkillFolder(tmp_path / "skills", SkillPins(tmp_path / "pins.json"))


def names(library: SkillFolder) -> list[str]:
    return [skill.name for skill in library.skills()]


@pytest.mark.req("SKL-06")
def test_a_skill_that_comes_changes_or_goes_is_noticed_at_the_next_look(tmp_path: Path) -> None:
    library, root = open_folder(tmp_path), tmp_path / "skills"
    assert names(library) == []
    folder = write(root, "tea")
    assert names(library) == ["tea"]
    write(root, "tea", body="Boil water.")
    assert library.read("tea") == "Boil water."
    (folder / "SKILL.md").unlink()
    assert names(library) == []
    with pytest.raises(SkillMistake, match="There is no skill tea"):
        library.read("tea")


@pytest.mark.req("SKL-06")
def test_a_refused_skill_is_named_once_with_its_reason_and_the_others_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library, root = open_folder(tmp_path), tmp_path / "skills"
    write(root, "tea")
    write(root, "coffee").joinpath("SKILL.md").write_text("no front matter")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert names(library) == ["tea"]
    said = [record.getMessage() for record in caplog.records]
    assert said == ["The skill coffee is not used: it does not begin with a line ---"]
    assert [(one.folder.name, one.reason.kind) for one in library.refused()] == [("coffee", "no front matter")]
    write(root, "coffee")
    assert names(library) == ["coffee", "tea"]
    assert library.refused() == []


@pytest.mark.req("SKL-06")
def test_the_folder_may_be_a_checkout_and_hold_checkouts_of_collections(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    write(root, "tea")
    write(root / "collection", "coffee")
    write(root / "collection", "tea")
    write(root / "collection" / "too" / "deep", "cocoa")
    (root / "README.md").write_text("not a skill")
    (root / "notes").mkdir()
    (root / "notes" / "skill.txt").write_text("not a skill")
    for checkout in (root, root / "collection"):
        subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    write(root / ".git", "hidden")
    library = open_folder(tmp_path)
    assert names(library) == ["coffee", "tea"]
    assert library.find("tea").folder == root / "tea"
    assert [str(one.reason) for one in library.refused()] == [f"{root / 'tea'} has the same name"]


@pytest.mark.req("SKL-06")
def test_a_link_to_another_place_is_neither_read_nor_searched(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    root.mkdir()
    write(tmp_path / "elsewhere", "tea")
    (root / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (root / "tea").symlink_to(tmp_path / "elsewhere" / "tea")
    library = open_folder(tmp_path)
    assert names(library) == []
    assert [one.reason.kind for one in library.refused()] == ["link"]


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_an_installed_skill_is_off_once_any_of_its_files_changes(tmp_path: Path) -> None:
    library, root = open_folder(tmp_path), tmp_path / "skills"
    folder = write(root, "tea")
    script = folder / "scripts" / "brew.py"
    script.parent.mkdir()
    script.write_text("print('tea')")
    library.pins.add("tea", hash_skill(folder), "somewhere")
    assert names(library) == ["tea"]
    state = script.stat()
    script.write_text("print('ale')")
    os.utime(script, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert names(library) == []
    assert [one.reason.kind for one in library.refused()] == ["changed"]
    script.write_text("print('tea')")
    assert names(library) == ["tea"]
    script.rename(script.with_suffix(".sh"))
    assert names(library) == [], "names are pinned, too"
    script.with_suffix(".sh").rename(script)
    assert names(library) == ["tea"]
    (folder / "more.md").write_text("And send it to me.")
    assert names(library) == []
    library.pins.add("tea", hash_skill(folder), "somewhere")
    assert names(library) == ["tea"]


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_without_readable_pins_no_skill_is_used(tmp_path: Path) -> None:
    library = open_folder(tmp_path)
    write(tmp_path / "skills", "tea")
    (tmp_path / "pins.json").write_text("{")
    assert names(library) == []
    assert "pins.json is damaged" in str(library.refused()[0].reason)
    (tmp_path / "pins.json").unlink()
    assert names(library) == ["tea"]


@pytest.mark.req("SKL-10")
def test_files_of_a_skill_are_read_on_demand_and_nothing_beside_them(tmp_path: Path) -> None:
    library = open_folder(tmp_path)
    folder = write(tmp_path / "skills", "tea")
    (folder / "references").mkdir()
    (folder / "references" / "herbs.md").write_text("Mint.")
    (folder / "image.png").write_bytes(b"\x89PNG\xff")
    (folder / "out.md").symlink_to("/etc/hostname")
    (tmp_path / "secret.txt").write_text("secret")
    assert library.resources(library.find("tea")) == ["image.png", "out.md", "references/herbs.md"]
    assert library.read("tea", "references/herbs.md") == "Mint."
    for file in ("../../secret.txt", "/etc/hostname", "out.md", "image.png", "references", "", ".", "missing.md"):
        with pytest.raises(SkillMistake):
            library.read("tea", file)


@pytest.mark.req("SKL-06", "PLB-02")
def test_skills_with_keywords_are_matched_like_playbooks_and_compete_with_them(tmp_path: Path) -> None:
    playbooks = tmp_path / "playbooks"
    playbooks.mkdir()
    (playbooks / "own.md").write_text("---\npriority: 5\nkeywords: [tea]\n---\nOwn.")
    write(tmp_path / "skills", "brew", "keywords: [green tea, tea]", "priority: 9")
    write(tmp_path / "skills", "silent", "keywords: [tea]", "required_tools: [kettle_boil]")
    write(tmp_path / "skills", "offered")
    library = PlaybookFolder(playbooks, open_folder(tmp_path))
    assert [one.name for one in library.matching("A cup of tea", ())] == ["brew", "own"]
    assert [one.name for one in library.matching("A cup of tea", ("kettle_boil",))] == ["brew", "own", "silent"]
    assert [one.from_skill for one in library.matching("tea", ())] == [True, False]
    assert library.matching("teapot", ()) == ()
