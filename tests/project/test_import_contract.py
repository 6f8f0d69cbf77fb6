"""The import contract bites: each wall is pushed once, and holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(sys.executable).parent / "lint-imports"


@pytest.fixture
def house(root: Path, tmp_path: Path) -> Path:
    """A copy of the package to do damage to."""
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def check(house: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, "--no-cache"],
        cwd=house,
        env={"PYTHONPATH": str(house / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("core/wrong.py", "import annabelle.store", "Imports point down"),
        ("hub/wrong.py", "import annabelle.thinker", "Hub and thinker"),
        ("toolbox/wrong.py", "import annabelle.servers.filer.server", "Nobody imports a server"),
        ("servers/filer/wrong.py", "import annabelle.toolbox", "A server stands on"),
        ("servers/kit/wrong.py", "import annabelle.servers.filer", "Servers do not know each other"),
        ("attic/__init__.py", "", "Imports point down, and every room has its place"),
    ],
)
def test_a_wrong_import_or_an_unplaced_room_is_found(house: Path, file: str, line: str, broken: str):
    path = house / "src" / "annabelle" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line + "\n")
    done = check(house)
    assert done.returncode == 1, done.stdout + done.stderr
    assert any(broken in text and "BROKEN" in text for text in done.stdout.splitlines()), done.stdout
