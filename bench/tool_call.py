"""One tool call through the hub's API beside the same server called directly over stdio with the SDK, and a call of 200
characters with the guardian reading both ways beside the same call without it."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from measure import Hub, Report, median, running_hub, wait_until
from support.few_servers import only

Call = Callable[[], Awaitable[None]]
TOOL = "list_grants"
ECHO = "echo_say"
PAYLOAD = 200
TALK = (
    "the meeting on Thursday moved to a larger room because more people want to come and bring their notes about "
    "prices delivery dates garden tools weather trains letters from Lisbon a new lamp soup recipes and old photographs"
)
WORDS = tuple(TALK.split())


class Connection:
    """A keep-alive HTTP connection with as little client as possible, so that only the hub is measured."""

    def __init__(
        self, hub: Hub, name: str = f"filer_{TOOL}", arguments: dict[str, object] | None = None, fails: bool = False
    ) -> None:
        """`fails`: the tool lacks something here, and its refusal is what is measured."""
        self._fails, self._name = fails, name
        where = urlsplit(hub.url)
        self._host, self._port = where.hostname or "127.0.0.1", where.port or 80
        self._head = (
            f"POST /tools/call HTTP/1.1\r\nHost: {where.netloc}\r\nX-Annabelle-Token: {hub.token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self._request = self._written(arguments or {})

    def _written(self, arguments: dict[str, object]) -> bytes:
        body = json.dumps({"name": self._name, "arguments": arguments}).encode()
        return f"{self._head}{len(body)}\r\n\r\n".encode() + body

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def call(self) -> None:
        await self._exchange(self._request)

    async def call_with(self, arguments: dict[str, object]) -> None:
        """The same tool with other arguments than the last time."""
        await self._exchange(self._written(arguments))

    async def _exchange(self, request: bytes) -> None:
        self._writer.write(request)
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
        report.within_time("added to the p50 at concurrency 1", added, 2.0)
        for width in (8, 32):
            alone = median([await throughput([direct] * width, count) for _ in range(3)])
            ours = median([await throughput(through_hub[:width], count) for _ in range(3)])
            report.figures |= {f"direct_per_s_{width}": alone, f"hub_per_s_{width}": ours}
            report.ratios[f"throughput_{width}"] = ours / alone
            report.within(f"throughput at {width}, ratio to direct", ours / alone, 0.5, at_least=True)
    return report


async def measure_guard(plain: Hub, guarded: Hub, count: int, report: Report) -> None:
    """What two scans add to a call that takes and gives back 200 characters, never the same twice."""
    number, chance = itertools.count(), random.Random(6)

    def saying(connection: Connection) -> Call:
        async def call() -> None:
            words = " ".join(chance.choices(WORDS, k=60))
            await connection.call_with({"text": f"{next(number)} {words}"[:PAYLOAD]})

        return call

    without, scanned = [saying(await Connection(hub, ECHO).open()) for hub in (plain, guarded)]
    for call in (without, scanned):
        await p50(call, 50)
    rounds = [(await p50(without, count // 5), await p50(scanned, count // 5)) for _ in range(5)]
    unguarded_ms, guarded_ms = (median([each[side] for each in rounds]) for side in (0, 1))
    added = median([both - one for one, both in rounds])
    report.figures |= {"unguarded_p50_ms": unguarded_ms, "guarded_p50_ms": guarded_ms, "guard_added_p50_ms": added}
    report.within_time("added by scanning both directions of 200 characters", added, 6.0)


async def measure_all(plain: Hub, guarded: Hub, count: int) -> Report:
    report = await measure(plain, count)
    await measure_guard(plain, guarded, count, report)
    return report


def home_with_echo(folder: Path) -> Path:
    """A home whose one external server gives back what it is told."""
    tests = Path(__file__).resolve().parent.parent / "tests"
    echo = {"command": sys.executable, "args": ["-m", "support.servers.echo"], "env": {"PYTHONPATH": str(tests)}}
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "external-mcps.json").write_text(json.dumps({"mcpServers": {"echo": echo}}))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    count = parser.parse_args().calls
    common = {
        "ANNABELLE_RATE_LIMIT_PER_MINUTE": "100000000",
        "THINKER_WARM_SPARE": "false",
        "EXTERNAL_SERVERS_NEED_YES": "false",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        running_hub(home_with_echo(Path(folder) / "plain"), common | {"GUARDIAN_ENABLED": "false"}) as plain,
        running_hub(home_with_echo(Path(folder) / "guarded"), common | only("guardian")) as guarded,
    ):
        wait_until(lambda: len(plain.get("/tools/list")["tools"]) >= 13, 60, "the tool list")  # type: ignore[arg-type]
        for hub in (plain, guarded):
            wait_until(lambda hub=hub: ECHO in json.dumps(hub.get("/tools/list")), 60, "the echo")
        asyncio.run(measure_all(plain, guarded, count)).print()


if __name__ == "__main__":
    main()
