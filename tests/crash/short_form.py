"""The short form of `make crash`: everything is killed at named points, once at each, and the verdict is read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from crash.run import POINTS
from support.timing import seconds
from support.warm_process import TEMPLATE

TESTS = Path(__file__).resolve().parent.parent


def kill_everything(folder: Path, turns: int, *arguments: str, points: Sequence[str] = POINTS) -> None:
    """The harness runs in a process of its own: it adopts orphans, which a test runner should not."""
    options = ["--turns", str(turns), "--per-failpoint", "1", "--random", "0", "--keep", str(folder / "run")]
    options += ["--failpoints", ",".join(points), *arguments]
    harness = TEMPLATE.spawn("crash.run", {**os.environ, "PYTHONPATH": str(TESTS)}, options)
    output, errors = harness.communicate(seconds(580))
    assert output, errors[-3000:]
    summary = json.loads(output.splitlines()[-1])
    assert summary["faults"] == {}, f"{summary['faults']}\n{errors[-2000:]}"
    assert summary["dealt"] == dict.fromkeys(points, 1)
    assert harness.returncode == 0
