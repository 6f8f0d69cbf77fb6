"""Format, lint, types and import contract hold; `make check` runs the same programs one by one."""

from __future__ import annotations

import os
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
    # What the type checker keeps does not fit into the space that Node gives new objects, so it would be copied often.
    environment = os.environ | {"NODE_OPTIONS": "--max-semi-space-size=64"}
    program = TOOLS / command[0]
    done = subprocess.run([program, *command[1:]], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
