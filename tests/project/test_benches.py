"""Every benchmark can still be started: they share helpers with the tests, which change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_IMPORT_ALL = """
import importlib, sys
failed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        if error.name != "chromadb":  # compared with in an environment of its own
            failed.append(f"{name}: {error}")
sys.exit("\\n".join(failed) or 0)
"""


def test_every_benchmark_finds_what_it_imports(root: Path) -> None:
    names = sorted(file.stem for file in (root / "bench").glob("*.py"))
    assert len(names) > 20
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL, *names],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(root / part) for part in ("src", "tests", "bench"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
