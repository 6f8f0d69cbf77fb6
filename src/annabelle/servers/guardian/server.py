"""Builds the guardian. The first scan loads the heavy modules."""

from __future__ import annotations

from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.judges import ContentJudges, EmbeddedScanner
from annabelle.servers.guardian.scan import ScanTools
from annabelle.servers.kit import ToolServer

INSTRUCTIONS = "Scans content for orders that it must not give. Only the hub calls it."


def build(config: GuardianConfig | None = None) -> ToolServer:
    config = config or GuardianConfig.from_environment()
    judges = ContentJudges(config, EmbeddedScanner())
    return ToolServer("guardian", [ScanTools(judges, config)], instructions=INSTRUCTIONS, on_close=judges.close)
