"""A failpoint kills exactly one process, and only when a test armed it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from annabelle.core.failpoints import VARIABLE, failpoint


@pytest.fixture
def deaths() -> list[tuple[int, int]]:
    return []


def test_nothing_happens_where_nothing_is_armed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: list[tuple[int, int]]
):
    failpoint("hub.somewhere", lambda pid, sign: deaths.append((pid, sign)))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    failpoint("hub.somewhere", lambda pid, sign: deaths.append((pid, sign)))
    assert deaths == []


def test_an_armed_point_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: list[tuple[int, int]]):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "hub.somewhere").touch()
    for _ in range(3):
        failpoint("hub.somewhere", lambda pid, sign: deaths.append((pid, sign)))
    assert deaths == [(os.getpid(), signal.SIGKILL)]
    assert [path.name for path in tmp_path.iterdir()] == [f"hub.somewhere.hit-{os.getpid()}"]
