"""Checks of the tools: whether some went missing, and whether what they return can be scanned."""

from __future__ import annotations

from typing import Final

from annabelle.hub.diagnosis.check import Check, DiagnosisContext, Problem
from annabelle.toolbox.external.servers import KnownServers

DRIFT: Final = 3


def measure_drift(context: DiagnosisContext) -> int | None:
    """How many tools there are more than the servers had when they last ran; None if that is not known."""
    known = KnownServers(context.home.known_servers_file).tool_counts()
    if known is None:
        return None
    return sum(server.tools for server in context.running.servers if server.available) - sum(known.values())


async def check_drift(context: DiagnosisContext) -> list[Problem]:
    drift = measure_drift(context)
    if drift is None or abs(drift) < DRIFT:
        return []
    text = f"There are {abs(drift)} tools {'more' if drift > 0 else 'fewer'} than before."
    action = "/status shows the servers. If it is meant so, restart Annabelle: then this is what it knows."
    return [Problem("warning", text, action)]


async def check_guardian(context: DiagnosisContext) -> list[Problem]:
    if not context.running.guardian_down:
        return []
    if context.running.fail_mode == "closed":
        text = "The guardian does not run, so what it would have scanned is blocked."
        return [Problem("critical", text, "/logs guardian says why.")]
    text = "The guardian does not run, and content passes unscanned."
    return [Problem("warning", text, "/logs guardian says why.")]


CHECKS: Final = (
    Check(
        "tool-count-drift",
        "tools",
        ("warning",),
        f"there are {DRIFT} or more tools more or fewer than in `last-known-mcps.json`",
        check_drift,
        needs_hub=True,
    ),
    Check(
        "guardian-availability",
        "tools",
        ("critical", "warning"),
        "the guardian is switched on and does not run (warning: `GUARDIAN_FAIL_MODE=open`)",
        check_guardian,
        needs_hub=True,
    ),
)
