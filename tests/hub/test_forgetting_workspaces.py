"""What an agent noted in a workspace is forgotten like everything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, ForgetMatcher
from annabelle.hub.forgetting.files import HomeFiles, sweep_files

NEEDLE = ForgetMatcher(["Zürich Vault 4711"])


@pytest.mark.req("TRU-09", "CMP-01")
def test_the_workspaces_of_agents_lose_the_text_and_stay_readable(tmp_path: Path):
    home = Home(tmp_path)
    file = home.agent("tess") / "workspaces" / "thr_1.json"
    file.parent.mkdir(parents=True)
    desk = {"open_files": ["plan.md"], "notes": ["the code is zürich vault 4711", "buy milk"], "tasks": []}
    file.write_text(json.dumps(desk, ensure_ascii=False))
    places = HomeFiles(home)
    assert sweep_files(places, NEEDLE, apply=False) == {"workspaces": 1}
    assert "4711" in file.read_text()
    assert sweep_files(places, NEEDLE, apply=True) == {"workspaces": 1}
    assert json.loads(file.read_text()) == {**desk, "notes": [FORGOTTEN_MASK, "buy milk"]}
    assert sweep_files(places, NEEDLE, apply=True) == {}
