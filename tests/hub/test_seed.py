"""A new home is furnished; what is there is left alone."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from annabelle.core.errors import OperatorMistake
from annabelle.core.home import Home
from annabelle.hub import home_setup
from annabelle.hub.home_setup import ServerPlaybooks, seed_agent, seed_home
from annabelle.skills.playbook_folder import MANIFEST
from hub.hubs import HubProcess, wait_for

TESTS = Path(__file__).parents[1]


@pytest.mark.req("HUB-07")
def test_a_new_home_gets_persona_skills_folder_and_guide(home: Home) -> None:
    seed_home(home)
    seed_agent(home, "annabelle")
    assert "Annabelle" in (home.agent("annabelle") / "instructions.md").read_text()
    assert home.skills.is_dir()
    assert home.workspace.is_dir()
    assert "agents.json" in (home.root / "README.md").read_text()


@pytest.mark.req("HUB-07")
def test_the_documentation_is_copied_and_brought_up_to_date_where_nobody_changed_it(home: Home) -> None:
    seed_home(home)
    pages = {page.name for page in (TESTS.parent / "docs").glob("*.md")}
    assert {page.name for page in home.documentation.glob("*.md")} == pages
    page, own, gone = (home.documentation / name for name in ("skills.md", "memory.md", "mail.md"))
    current = page.read_text()
    _make_outdated(page)
    own.write_text("mine")
    gone.unlink()
    seed_home(home)
    assert page.read_text() == current
    assert own.read_text() == "mine"
    assert not gone.exists()


def _make_outdated(page: Path) -> None:
    """As an earlier version has written it."""
    page.write_text("as it was")
    manifest = page.parent / MANIFEST
    recorded = json.loads(manifest.read_bytes()) | {page.name: hashlib.sha256(page.read_bytes()).hexdigest()}
    manifest.write_text(json.dumps(recorded))


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
        full.setattr(home_setup.os, "fdopen", FullDisk)
        with pytest.raises(OperatorMistake, match="No space left"):
            seed_home(home)
    seed_home(home)
    assert "agents.json" in (home.root / "README.md").read_text()


@pytest.mark.req("PLB-01")
def test_playbooks_are_there_after_the_first_start_and_an_edited_one_stays(home: Home) -> None:
    seed_home(home)
    playbook = home.playbooks / "email-triage.md"
    assert len(list(home.playbooks.glob("*.md"))) == 15
    playbook.write_text("mine")
    seed_home(home)
    assert playbook.read_text() == "mine"


@pytest.mark.req("PLB-01")
def test_a_server_that_appears_brings_its_playbooks_once(home: Home) -> None:
    seed_home(home)
    servers = ["filer"]
    playbooks = ServerPlaybooks(home, lambda: servers)
    playbooks.seed_new_servers()
    assert not (home.playbooks / "vercel-deployments.md").exists()
    servers += ["vercel", "github"]
    playbooks.seed_new_servers()
    assert (home.playbooks / "vercel-deployments.md").exists()
    (home.playbooks / "project-source-linking.md").unlink()
    ServerPlaybooks(home, lambda: servers).seed_new_servers()
    assert not (home.playbooks / "project-source-linking.md").exists()


@pytest.mark.req("PLB-01")
def test_playbooks_that_can_not_be_written_stop_a_start_and_nothing_that_runs(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.playbooks.write_text("in the way")
    with pytest.raises(OperatorMistake, match="playbooks"):
        seed_home(home)
    ServerPlaybooks(home, lambda: ["vercel"]).seed_new_servers()
    assert "can not be written" in caplog.text


@pytest.mark.req("PLB-01")
def test_a_running_hub_seeds_playbooks_when_their_server_is_added(
    home: Home, make_hub: Callable[..., HubProcess]
) -> None:
    make_hub().start()
    assert len(list(home.playbooks.glob("*.md"))) == 15
    echo = {"command": sys.executable, "args": ["-m", "support.servers.echo"], "env": {"PYTHONPATH": str(TESTS)}}
    (home.config / "external-mcps.json").write_text(json.dumps({"mcpServers": {"vercel": echo}}))
    wait_for((home.playbooks / "vercel-deployments.md").exists, "the playbook of the new server")
    assert (home.playbooks / "project-source-linking.md").exists()
