"""A local server that makes vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.vector_server import VectorServer


@pytest.fixture
def server() -> Iterator[VectorServer]:
    with VectorServer() as running:
        yield running
