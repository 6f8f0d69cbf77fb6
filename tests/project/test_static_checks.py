"""Format, lint, types and import contract hold; `make check` runs the same programs one by one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(sys.executable).parent


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "command",
    [["ruff", "format", "--check", "."], ["ruff", "check", "."], ["basedpyright"], ["lint-imports", "--no-cache"]],
    ids=" ".join,
)
def test_the_whole_project_passes(root: Path, command: list[str]):
    done = subprocess.run([TOOLS / command[0], *command[1:]], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
