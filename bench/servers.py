"""One cheap tool of every built-in server: its p50 through the hub's API, beside the same server called directly.

A server that lacks something on a fresh machine (an account, a command) is measured by how it says so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from measure import Hub, Report, median, running_hub, wait_until
from support.cheap_calls import CHEAP, CheapCall
from support.few_servers import EVERY_SERVER, NAMES
from tool_call import Connection, p50

ASKING = {"annabelle": {"agent_id": "annabelle", "user_id": "owner", "caller": "hub", "trust": "trusted"}}
SERVED = tuple(name for name in NAMES if name != "guardian")
"""Nobody but the hub can call the guardian, and what it adds to a call is measured by `tool_call`."""
WARM = 20
ROUNDS = 5


async def one(hub: Hub, name: str, cheap: CheapCall, count: int) -> tuple[float, float]:
    """The p50 through the hub and directly, in alternating rounds, so that a busy moment hits both."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(hub.home), "ANNABELLE_HOME": str(hub.home / "direct")}
    environment["LOG_LEVEL"] = "warning"  # a refusal is told in the log, here a hundred times
    server = StdioServerParameters(command=sys.executable, args=["-m", f"annabelle.servers.{name}"], env=environment)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def direct() -> None:
            result = await session.call_tool(cheap.tool, cheap.arguments, meta=ASKING)  # type: ignore[arg-type]
            if bool(result.is_error) is not (cheap.code is not None):
                raise SystemExit(f"the direct call of {name} went otherwise: {result}")

        fails = cheap.code is not None
        connection = await Connection(hub, f"{name}_{cheap.tool}", cheap.arguments, fails).open()
        await p50(direct, WARM)
        await p50(connection.call, WARM)
        alone: list[float] = []
        through: list[float] = []
        for _ in range(ROUNDS):
            alone.append(await p50(direct, count // ROUNDS))
            through.append(await p50(connection.call, count // ROUNDS))
    return median(through), median(alone)


async def measure(hub: Hub, count: int) -> Report:
    report = Report("servers")
    for name in SERVED:
        through, alone = await one(hub, name, CHEAP[name], count)
        report.figures |= {f"{name}_hub_p50_ms": through, f"{name}_direct_p50_ms": alone}
        report.ratios[name] = through / alone
        report.within_time(f"{name}: added to the p50", through - alone, 2.0)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    count = parser.parse_args().calls
    environment = {"ANNABELLE_RATE_LIMIT_PER_MINUTE": "100000000", "THINKER_WARM_SPARE": "false", **EVERY_SERVER}
    environment["GUARDIAN_ENABLED"] = "false"
    environment["LOG_LEVEL"] = "warning"
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder) / "home", environment) as hub:

        def all_ready() -> bool:
            listed = {str(tool["name"]) for tool in hub.get("/tools/list")["tools"]}  # type: ignore[index,union-attr]
            return all(f"{name}_{CHEAP[name].tool}" in listed for name in SERVED)

        wait_until(all_ready, 60, "the tools of every server")
        asyncio.run(measure(hub, count)).print()


if __name__ == "__main__":
    main()
