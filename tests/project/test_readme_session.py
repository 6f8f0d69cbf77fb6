"""The session on the first screen of the README is what a newcomer sees."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    sys.path.append(str(Path(__file__).parents[2] / "scripts"))
    return importlib.import_module("record_session")


@pytest.mark.req("FST-01", "UX-01")
@pytest.mark.timeout(600)
def test_the_session_in_the_readme_is_what_happens(recorder: ModuleType, tmp_path: Path, root: Path) -> None:
    recorded = recorder.read_recorded((root / "README.md").read_text(encoding="utf-8"))
    assert recorder.comparable(recorder.record(tmp_path)) == recorder.comparable(recorded), (
        "scripts/record_session.py writes it anew"
    )


def test_what_was_erased_is_not_on_the_screen(recorder: ModuleType) -> None:
    shown = "Starting …\r\x1b[K\x1b[2mdim\x1b[0m\nfirst\nsecond\r\x1b[1A\x1b[Jthird\nlast"
    assert recorder.render(shown) == "dim\nthird\nlast"
