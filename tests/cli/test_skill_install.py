"""`annabelle skills install`: nothing is installed unasked, unscanned or under a name that is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from annabelle.cli import skills
from annabelle.core.errors import CallerMistake, Conflict, SecurityBlocked
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.skills.skill_folder import SkillFolder, hash_skill
from skills.test_skill_folder import write


class Guardian:
    """Stands for the hub: says what it was told to say of the folder it is asked about."""

    def __init__(self, home: Home, risk: str = "none") -> None:
        self._home, self.risk = home, risk
        self.asked: list[str] = []

    def post(self, path: str, body: JsonObject, _seconds: float) -> JsonObject:
        assert path == "/skill-files/scan"
        folder = self._home.skills / str(body["folder"])
        self.asked.append(folder.name)
        found = {"file": "SKILL.md", "risk": self.risk, "threats": ["prompt_injection"], "unscanned": False}
        return {"hash": hash_skill(folder), "texts": 1, "found": [found] if self.risk != "none" else []}


@pytest.fixture
def guardian(home: Home, monkeypatch: pytest.MonkeyPatch) -> Guardian:
    made = Guardian(home)
    monkeypatch.setattr(skills, "post_json", made.post)
    return made


@pytest.fixture
def offered(tmp_path: Path) -> Path:
    folder = write(tmp_path / "offered", "brew", "required_tools: [kettle_boil]", description="Makes tea.")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "brew.py").write_text("print('tea')")
    return folder


def in_use(home: Home) -> list[str]:
    return [skill.name for skill in SkillFolder.open_home(home).skills()]


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_a_skill_is_shown_scanned_and_installed_after_a_yes(
    home: Home, guardian: Guardian, offered: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(skills, "confirm", asked.append)
    skills.install(str(offered))
    said = capsys.readouterr().out
    for words in ("brew: Makes tea.", "Tools: kettle_boil", "Scripts: scripts/brew.py", "2 files", hash_skill(offered)):
        assert words in said
    assert "the guardian found nothing" in said
    assert asked == ["Use this skill?"]
    assert guardian.asked == ["brew"]
    assert in_use(home) == ["brew"]
    assert sorted(path.name for path in home.skills.iterdir()) == ["brew"]


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_without_a_yes_nothing_is_left(
    home: Home, guardian: Guardian, offered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_question: str) -> None:
        raise typer.Abort

    monkeypatch.setattr(skills, "confirm", refuse)
    with pytest.raises(typer.Abort):
        skills.install(str(offered))
    assert list(home.skills.iterdir()) == []
    assert not home.skill_pins_file.exists()


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_a_yes_in_advance_is_none_to_an_attack(home: Home, guardian: Guardian, offered: Path) -> None:
    guardian.risk = "high"
    with pytest.raises(SecurityBlocked, match="prompt_injection in SKILL"):
        skills.install(str(offered), yes=True)
    assert in_use(home) == []
    guardian.risk = "medium"
    skills.install(str(offered), yes=True)
    assert in_use(home) == ["brew"]


@pytest.mark.req("BEY-04")
def test_the_same_skill_twice_is_said_and_another_of_that_name_needs_force(
    home: Home, guardian: Guardian, offered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skills.install(str(offered), yes=True, json=True)
    first = json.loads(capsys.readouterr().out)
    assert (first["name"], first["installed"], first["changed"]) == ("brew", True, True)
    skills.install(str(offered), yes=True)
    assert "is installed already" in capsys.readouterr().out
    (offered / "more.md").write_text("More.")
    with pytest.raises(Conflict, match="another skill called brew"):
        skills.install(str(offered), yes=True)
    assert not (home.skills / "brew" / "more.md").exists()
    skills.install(str(offered), force=True, yes=True)
    assert (home.skills / "brew" / "more.md").exists()
    assert in_use(home) == ["brew"]
    assert sorted(path.name for path in home.skills.iterdir()) == ["brew"]


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_a_changed_skill_is_listed_as_off_until_it_is_accepted(
    home: Home, guardian: Guardian, offered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skills.install(str(offered), yes=True)
    (home.skills / "brew" / "scripts" / "brew.py").write_text("print('ale')")
    assert in_use(home) == []
    capsys.readouterr()
    skills.files()
    assert "its files are not those you installed; see annabelle skills accept brew" in capsys.readouterr().out
    skills.accept("brew", yes=True)
    assert in_use(home) == ["brew"]
    assert guardian.asked == ["brew", "brew"]


@pytest.mark.req("SKL-06")
def test_the_list_names_what_is_used_and_why_the_rest_is_not(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    skills.files()
    assert "There are no skills" in capsys.readouterr().out
    write(home.skills, "tea")
    write(home.skills, "coffee").joinpath("SKILL.md").write_text("none")
    skills.files(json=True)
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["skills"]] == ["tea"]
    assert [(one["kind"], one["reason"]) for one in found["refused"]] == [
        ("no front matter", "it does not begin with a line ---")
    ]


@pytest.mark.req("BEY-04")
@pytest.mark.parametrize("source", ["/nowhere/at/all", "ext::sh -c x"])
def test_a_source_that_is_none_is_one_sentence(home: Home, guardian: Guardian, source: str) -> None:
    with pytest.raises(CallerMistake, match="The skill is not installed: "):
        skills.install(source, yes=True)
    assert guardian.asked == []


@pytest.mark.req("BEY-04")
@pytest.mark.parametrize("name", ["..", "../elsewhere", "/etc", ""])
def test_only_a_skill_in_the_folder_can_be_accepted(home: Home, guardian: Guardian, name: str) -> None:
    home.skills.mkdir()
    write(home.root, "elsewhere")
    with pytest.raises(CallerMistake):
        skills.accept(name, yes=True)
    assert not home.skill_pins_file.exists()
