"""The short form of `make crash`: everything is killed at every named point, and the verdict is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.timing import seconds

TESTS = Path(__file__).resolve().parent.parent


def kill_everything(engine: str, folder: Path) -> None:
    """The harness runs in a process of its own: it adopts orphans, which a test runner should not."""
    command = [sys.executable, "-m", "crash.run", "--turns", "20", "--per-failpoint", "1", "--random", "4"]
    finished = subprocess.run(
        [*command, "--engine", engine, "--keep", str(folder / "run")],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=seconds(580),
        check=False,
    )
    assert finished.stdout, finished.stderr[-3000:]
    summary = json.loads(finished.stdout.splitlines()[-1])
    assert summary["faults"] == {}, f"{summary['faults']}\n{finished.stderr[-2000:]}"
    assert summary["kills"] >= 20
    assert finished.returncode == 0
