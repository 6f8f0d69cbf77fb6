"""Everything is killed, and nothing is lost or doubled, on PostgreSQL. Each engine has its file: they run at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.run import POINTS
from crash.short_form import kill_everything


@pytest.mark.timeout(600)
@pytest.mark.req("DUR-02", "DUR-03", "TRU-02")
@pytest.mark.incident("I-20", "I-25")
def test_killing_any_process_after_any_step_loses_and_doubles_nothing(tmp_path: Path, postgres_url: str) -> None:
    """SQLite has every point; just before a step, a database holds what it held after the one before."""
    after = [point for point in POINTS if ".after_" in point]
    kill_everything(tmp_path, 10, "--engine", "postgres", "--database", postgres_url, points=after)
