"""One tool call through the hub's API beside the same server called directly over stdio with the SDK."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from measure import Hub, Report, median, running_hub, wait_until

Call = Callable[[], Awaitable[None]]
TOOL = "list_grants"


class Connection:
    """A keep-alive HTTP connection with as little client as possible, so that only the hub is measured."""

    def __init__(
        self, hub: Hub, name: str = f"filer_{TOOL}", arguments: dict[str, object] | None = None, fails: bool = False
    ) -> None:
        """`fails`: the tool lacks something here, and its refusal is what is measured."""
        self._fails = fails
        where = urlsplit(hub.url)
        self._host, self._port = where.hostname or "127.0.0.1", where.port or 80
        body = json.dumps({"name": name, "arguments": arguments or {}}).encode()
        self._request = (
            f"POST /tools/call HTTP/1.1\r\nHost: {where.netloc}\r\nX-Annabelle-Token: {hub.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def call(self) -> None:
        self._writer.write(self._request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        answer = await self._reader.readexactly(length)
        if " 200 " not in head.splitlines()[0] or json.loads(answer)["is_error"] is not self._fails:
            raise SystemExit(f"the hub answered {head.splitlines()[0]}: {answer[:300]!r}")


async def p50(call: Call, count: int) -> float:
    times: list[float] = []
    for _ in range(count):
        started = time.perf_counter()
        await call()
        times.append(time.perf_counter() - started)
    return median(times) * 1000


async def throughput(calls: list[Call], count: int) -> float:
    """Calls per second with one caller per entry of `calls`."""
    each = count // len(calls)

    async def caller(call: Call) -> None:
        for _ in range(each):
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(caller(call) for call in calls))
    return each * len(calls) / (time.perf_counter() - started)


async def measure(hub: Hub, count: int) -> Report:
    report = Report("tool_call")
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ANNABELLE_HOME": str(hub.home / "direct")}
    server = StdioServerParameters(command=sys.executable, args=["-m", "annabelle.servers.filer"], env=environment)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def direct() -> None:
            result = await session.call_tool(TOOL, {})
            if result.is_error:
                raise SystemExit(f"the direct call failed: {result}")

        connections = [await Connection(hub).open() for _ in range(32)]
        through_hub: list[Call] = [connection.call for connection in connections]
        await p50(direct, 50)
        await p50(through_hub[0], 50)
        direct_rounds, hub_rounds = [], []
        for _ in range(5):  # alternating, so that a busy moment of the machine hits both
            direct_rounds.append(await p50(direct, count // 5))
            hub_rounds.append(await p50(through_hub[0], count // 5))
        report.figures = {"direct_p50_ms": median(direct_rounds), "hub_p50_ms": median(hub_rounds)}
        report.ratios["p50"] = report.figures["hub_p50_ms"] / report.figures["direct_p50_ms"]
        added = report.figures["hub_p50_ms"] - report.figures["direct_p50_ms"]
        report.figures["added_p50_ms"] = added
        report.within("added to the p50 at concurrency 1, ms", added, 2.0)
        for width in (8, 32):
            alone = median([await throughput([direct] * width, count) for _ in range(3)])
            ours = median([await throughput(through_hub[:width], count) for _ in range(3)])
            report.figures |= {f"direct_per_s_{width}": alone, f"hub_per_s_{width}": ours}
            report.ratios[f"throughput_{width}"] = ours / alone
            report.within(f"throughput at {width}, ratio to direct", ours / alone, 0.5, at_least=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    count = parser.parse_args().calls
    environment = {"ANNABELLE_RATE_LIMIT_PER_MINUTE": "100000000", "THINKER_WARM_SPARE": "false"}
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder) / "home", environment) as hub:
        wait_until(lambda: len(hub.get("/tools/list")["tools"]) >= 13, 60, "the tool list")  # type: ignore[arg-type]
        asyncio.run(measure(hub, count)).print()


if __name__ == "__main__":
    main()
