"""The guardian in this process: one scanner for all tests, because its weights are loaded once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.judges import ContentJudges, EmbeddedScanner
from annabelle.servers.guardian.scan import ScanTools
from annabelle.servers.guardian.verdicts import ScanVerdict

Scan = Callable[..., Awaitable[ScanVerdict]]


@pytest.fixture(scope="session")
def scanner() -> EmbeddedScanner:
    return EmbeddedScanner()


@pytest.fixture
def tools(scanner: EmbeddedScanner) -> ScanTools:
    config = GuardianConfig()
    return ScanTools(ContentJudges(config, scanner), config)


@pytest.fixture
def scan(tools: ScanTools) -> Scan:
    async def scanned(content: object, context: str = "tool output", source: str = "test") -> ScanVerdict:
        return await tools.scan_content(content, source, context)  # pyright: ignore[reportArgumentType]

    return scanned
