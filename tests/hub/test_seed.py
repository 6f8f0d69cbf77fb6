"""A new home is furnished; what is there is left alone."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
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
