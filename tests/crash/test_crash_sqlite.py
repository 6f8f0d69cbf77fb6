"""Everything is killed, and nothing is lost or doubled, on SQLite. Each engine has a file, so that both run at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.short_form import kill_everything


@pytest.mark.timeout(600)
@pytest.mark.req("DUR-02", "DUR-03", "TRU-02")
@pytest.mark.incident("I-20", "I-25")
def test_killing_any_process_at_any_named_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    kill_everything(tmp_path, 20, "--engine", "sqlite")
