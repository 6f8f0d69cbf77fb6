"""The import contract bites: each wall is pushed once, and holds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(sys.executable).parent / "lint-imports"


WRONG = {
    "core/wrong.py": "import annabelle.store",
    "hub/wrong.py": "import annabelle.thinker",
    "toolbox/wrong.py": "import annabelle.servers.filer.server",
    "servers/filer/wrong.py": "import annabelle.toolbox",
    "servers/kit/wrong.py": "import annabelle.servers.filer",
    "attic/__init__.py": "",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said about a copy of the package with every wrong import in it."""
    root, copy = Path(__file__).parents[2], tmp_path_factory.mktemp("contract")
    shutil.copytree(root / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", copy)
    for file, line in WRONG.items():
        path = copy / "src" / "annabelle" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(line + "\n")
    done = subprocess.run(
        [TOOL, "--no-cache"],
        cwd=copy,
        env={"PYTHONPATH": str(copy / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("contract", "found"),
    [
        ("Imports point down", "annabelle.core.wrong -> annabelle.store"),
        ("Hub and thinker", "annabelle.hub.wrong -> annabelle.thinker"),
        ("Nobody imports a server", "annabelle.toolbox.wrong -> annabelle.servers.filer.server"),
        ("A server stands on", "annabelle.servers.filer.wrong -> annabelle.toolbox"),
        ("Servers do not know each other", "annabelle.servers.kit.wrong -> annabelle.servers.filer"),
        ("Imports point down, and every room has its place", "- annabelle.attic"),
    ],
)
def test_a_wrong_import_or_an_unplaced_room_is_found(report: str, contract: str, found: str) -> None:
    broken = re.findall(r"(?ms)^([^\n]+)\n-{9,}\n(.*?)(?=^[^\n]+\n-{9,}\n|\Z)", report)
    assert [found in what for name, what in broken if name.startswith(contract)] == [True], report
