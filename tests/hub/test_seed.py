"""A new home is furnished; what is there is left alone."""

from __future__ import annotations

import errno
import io

import pytest

from annabelle.core.errors import OperatorMistake
from annabelle.core.home import Home
from annabelle.hub import seed
from annabelle.hub.seed import seed_agent, seed_home


@pytest.mark.req("HUB-07")
def test_a_new_home_gets_persona_skills_folder_and_guide(home: Home) -> None:
    seed_home(home)
    seed_agent(home, "annabelle")
    assert "Annabelle" in (home.agent("annabelle") / "instructions.md").read_text()
    assert home.skills.is_dir()
    assert home.workspace.is_dir()
    assert "agents.json" in (home.root / "README.md").read_text()


@pytest.mark.req("HUB-07")
def test_what_a_person_wrote_is_never_overwritten(home: Home) -> None:
    home.agent("annabelle").mkdir(parents=True)
    persona, guide = home.agent("annabelle") / "instructions.md", home.root / "README.md"
    persona.write_text("mine")
    guide.write_text("")
    seed_home(home)
    seed_agent(home, "annabelle")
    assert persona.read_text() == "mine"
    assert guide.read_text() == ""


class FullDisk(io.FileIO):
    """A file that can be made, and not be written."""

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.req("HUB-07")
def test_a_disk_that_fills_up_leaves_no_half_made_file_behind(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full.setattr(seed.os, "fdopen", FullDisk)
        with pytest.raises(OperatorMistake, match="No space left"):
            seed_home(home)
    seed_home(home)
    assert "agents.json" in (home.root / "README.md").read_text()
