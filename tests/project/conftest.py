"""What tests of the project itself share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parent.parent.parent
