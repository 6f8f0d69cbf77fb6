"""The short form of `make crash`, on both engines: everything is killed, and nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.timeout(600)
@pytest.mark.req("DUR-02", "DUR-03", "TRU-02")
@pytest.mark.incident("I-20", "I-25")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_killing_any_process_at_any_named_point_loses_and_doubles_nothing(engine: str, tmp_path: Path) -> None:
    """The harness runs in a process of its own: it adopts orphans, which a test runner should not."""
    command = [sys.executable, "-m", "crash.run", "--turns", "20", "--per-failpoint", "1", "--random", "4"]
    finished = subprocess.run(
        [*command, "--engine", engine, "--keep", str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert finished.stdout, finished.stderr[-3000:]
    summary = json.loads(finished.stdout.splitlines()[-1])
    assert summary["faults"] == {}, finished.stderr[-2000:]
    assert summary["kills"] >= 20
    assert finished.returncode == 0
