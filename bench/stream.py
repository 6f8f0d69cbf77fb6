"""Live events: 200 clients on 50 threads, 20,000 events at 200 a second. None lost, none doubled, in order and soon,
also beside clients that stopped reading; measured beside the same stream without a store (THR-04)."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import uvloop
from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from annabelle.core.clock import SystemClock
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, TurnEvent
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.hub.app import make_app
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.instance import bind_port
from annabelle.hub.server import HttpServer
from annabelle.store import threads
from measure import Report, median, percentile

RATE = 200
WAIT_SECONDS = 120.0
STALLED = 4
"""Clients that read nothing until the end, each of the stream of all threads."""
SETTINGS = {
    "annabelle_port": 0,
    "nursery_enabled": False,
    "thinker_warm_spare": False,
    "guardian_enabled": False,
    "annabelle_rate_limit_per_minute": 1_000_000,
}


class StoredSource:
    """Events through a real hub: written down, then told."""

    def __init__(self, hub: object, thread_ids: Sequence[str]) -> None:
        self._events, self.thread_ids = hub.storage.events, thread_ids  # type: ignore[attr-defined]

    def emit(self, thread: int, number: int) -> None:
        data: dict[str, object] = {"text": "word " * 8, "number": number, "sent": time.monotonic()}
        event = TurnEvent(message_id=f"msg_{thread}", key=f"k{number}", type="text", data=data)
        self._events.add(self.thread_ids[thread], OWNER, event)


class BareSource:
    """The same events to the same clients, with queues and nothing else."""

    def __init__(self, count: int) -> None:
        self.thread_ids = [f"thr_{number}" for number in range(count)]
        self._queues: dict[str, list[asyncio.Queue[bytes]]] = {name: [] for name in self.thread_ids}

    def emit(self, thread: int, number: int) -> None:
        data = {"data": {"text": "word " * 8, "number": number, "sent": time.monotonic()}}
        line = f"id: {number}\nevent: text\ndata: {json.dumps(data)}\n\n".encode()
        for queue in self._queues[self.thread_ids[thread]]:
            queue.put_nowait(line)

    async def stream(self, request: Request) -> StreamingResponse:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._queues[request.path_params["thread"]].append(queue)

        async def lines() -> AsyncGenerator[bytes]:
            yield b"retry: 1000\n\n"
            while True:
                yield await queue.get()

        return StreamingResponse(lines(), media_type="text/event-stream")


@asynccontextmanager
async def stored_server(folder: Path, count: int) -> AsyncGenerator[tuple[StoredSource, str, str]]:
    home = Home(folder / "home")
    home.prepare()
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            start = HubStart(home, Settings.model_validate(SETTINGS), Redactor(), sock, None, SystemClock())
            hub = (await assemble(start, stack)).hub

            def make_threads(conn: Connection) -> list[str]:
                key = {"channel": "api", "user_id": OWNER, "agent_id": "annabelle"}
                return [threads.find_or_create_thread(conn, chat_id=f"c{n}", **key).id for n in range(count)]

            source = StoredSource(hub, await hub.storage.database.write(make_threads))
            server = HttpServer(make_app(hub), sock)
            await server.start()
            hub.base.lifecycle.mark_ready()
            yield source, f"127.0.0.1:{sock.getsockname()[1]}", home.token_file.read_text().strip()
            hub.conversations.fanout.close()
            await server.stop()


@asynccontextmanager
async def bare_server(count: int) -> AsyncGenerator[tuple[BareSource, str, str]]:
    source = BareSource(count)
    with bind_port(0) as sock:
        app = Starlette(routes=[Route("/threads/{thread}/events", source.stream)])
        server = HttpServer(app, sock)
        await server.start()
        yield source, f"127.0.0.1:{sock.getsockname()[1]}", ""


async def serve(kind: str, folder: Path, count: int) -> None:
    """In a process of its own: says where it is, and emits so many events for each line it reads."""
    made = stored_server(folder, count) if kind == "stored" else bare_server(count)
    process, number = psutil.Process(), 0
    async with made as (source, address, token):
        tell({"address": address, "token": token, "threads": list(source.thread_ids)})
        while line := await asyncio.to_thread(sys.stdin.readline):
            cpu, began = process.cpu_times(), time.monotonic()
            for step in range(int(line)):
                await asyncio.sleep(max(0.0, began + step / RATE - time.monotonic()))
                source.emit(number % count, number)
                number += 1
            spent = process.cpu_times()
            used = spent.user + spent.system - cpu.user - cpu.system
            tell({"emitted": number, "cpu": used, "rss": process.memory_info().rss})


def tell(fact: dict[str, object]) -> None:
    print(json.dumps(fact), flush=True)


@dataclass
class Client:
    """One reader of one thread, or of all: the ids and numbers it saw, and how late each came."""

    thread: int | None
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ids: list[int] = field(default_factory=list[int])
    numbers: list[int] = field(default_factory=list[int])
    delays: list[float] = field(default_factory=list[float])

    async def read(self) -> None:
        """Every event is one chunk of whole lines, so the sizes between them need no reading."""
        with contextlib.suppress(ConnectionError):
            while line := await self.reader.readline():
                if line.startswith(b"id: "):
                    self.ids.append(int(line[4:]))
                elif line.startswith(b"data: "):
                    data = json.loads(line[6:])["data"]
                    self.delays.append((time.monotonic() - data["sent"]) * 1000)
                    self.numbers.append(data["number"])

    def check(self, count: int, total: int) -> None:
        """Every event of each of its threads came once and in order. Between threads there is no order."""
        for thread in range(count) if self.thread is None else (self.thread,):
            came = [number for number in self.numbers if number % count == thread]
            if came != list(range(thread, total, count)):
                raise SystemExit(f"In thread {thread} something was lost, doubled or out of order: {came[:20]} …")
        if any(later <= earlier for earlier, later in zip(self.ids, self.ids[1:], strict=False)):
            raise SystemExit("The ids are not in order.")


@dataclass
class Run:
    """A server under measurement and its clients."""

    kind: str
    count: int
    process: asyncio.subprocess.Process
    address: str
    token: str
    thread_ids: list[str]
    clients: list[Client] = field(default_factory=list[Client])
    reading: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    total: int = 0

    @classmethod
    async def start(cls, kind: str, folder: Path, count: int) -> Run:
        command = [sys.executable, __file__, "--serve", kind, "--folder", str(folder), "--threads", str(count)]
        folder.mkdir(parents=True)  # noqa: ASYNC240  nothing else runs yet
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        with (folder / "server.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*command, **pipes, stderr=log, limit=2**20)
        told = await read_fact(process)
        return cls(kind, count, process, str(told["address"]), str(told["token"]), list(told["threads"]))  # type: ignore[call-overload]

    async def connect(self, thread: int | None, *, stalled: bool = False) -> Client:
        path = "/events" if thread is None else f"/threads/{self.thread_ids[thread]}/events"
        host, _, port = self.address.partition(":")
        sock = socket.socket()
        if stalled:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
        # A stalled one takes in no more than the kernel holds for it.
        reader, writer = await asyncio.open_connection(sock=sock, limit=4096 if stalled else 2**16)
        head = f"GET {path}?after=0 HTTP/1.1\r\nHost: {self.address}\r\nX-Annabelle-Token: {self.token}\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        status = await asyncio.wait_for(reader.readline(), WAIT_SECONDS)
        if b" 200 " not in status:
            raise SystemExit(f"A client was not let in: {status.decode().strip()}")
        while await reader.readline() != b"retry: 1000\n":
            pass
        client = Client(thread, reader, writer)
        self.clients.append(client)
        if not stalled:
            self.reading.append(asyncio.create_task(client.read()))
        return client

    async def emit(self, events: int) -> dict[str, float]:
        """Have so many events emitted and wait until the clients that read have them. What it cost the server."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{events}\n".encode())
        told = await read_fact(self.process, events / RATE + WAIT_SECONDS)
        self.total += events
        readers = [one for one, _task in zip(self.clients, self.reading, strict=False)]
        async with asyncio.timeout(WAIT_SECONDS):
            while any(len(one.ids) < self.expected(one) for one in readers):  # noqa: ASYNC110  clients tell nobody
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)  # for one that comes twice
        return {name: float(value) for name, value in told.items()}  # type: ignore[arg-type]

    def expected(self, client: Client) -> int:
        return self.total if client.thread is None else len(range(client.thread, self.total, self.count))

    def take_delays(self) -> list[float]:
        """How late the events came since the last look."""
        taken = [delay for client in self.clients for delay in client.delays]
        for client in self.clients:
            client.delays.clear()
        return taken

    async def stop(self) -> None:
        """Clients leave first, so that the server has nobody to cut off."""
        assert self.process.stdin is not None
        for client in self.clients:
            client.writer.close()
        for task in self.reading:
            task.cancel()
        await asyncio.sleep(0.5)
        self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), 20)
        except TimeoutError:
            self.process.kill()


async def read_fact(process: asyncio.subprocess.Process, seconds: float = WAIT_SECONDS) -> dict[str, object]:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), seconds)
    if not line:
        raise SystemExit("The server stopped.")
    return json.loads(line)


async def measure_bare(folder: Path, count: int, clients: int, events: int) -> tuple[list[float], float]:
    run = await Run.start("bare", folder, count)
    for number in range(clients):
        await run.connect(number % count)
    await run.emit(events // 5)
    run.take_delays()
    cost = await run.emit(events)
    for client in run.clients:
        client.check(count, run.total)
    await run.stop()
    return run.take_delays(), cost["cpu"] / events * 1000


async def measure_stored(report: Report, folder: Path, count: int, clients: int, events: int) -> list[float]:
    """How late events come, without clients that stall, and then beside some."""
    run = await Run.start("stored", folder, count)
    for number in range(clients):
        await run.connect(number % count)
    await run.emit(events // 10)
    run.take_delays()
    first = await run.emit(events // 4)
    alone = run.take_delays()
    stalled = [await run.connect(None, stalled=True) for _ in range(STALLED)]
    rest = events - events // 10 - events // 4
    last = await run.emit(rest)
    beside = run.take_delays()
    late = [asyncio.create_task(client.read()) for client in stalled]
    async with asyncio.timeout(WAIT_SECONDS):
        while any(len(one.ids) < run.total for one in stalled):  # noqa: ASYNC110  clients tell nobody
            await asyncio.sleep(0.02)
    for client in run.clients:
        client.check(count, run.total)
    cpu = {"alone": first["cpu"] / (events // 4), "beside": last["cpu"] / rest}
    report.figures |= {
        "events": float(run.total),
        "told": float(sum(len(client.ids) for client in run.clients)),
        "memory_mb": last["rss"] / 2**20,
        "cpu_ms_an_event": cpu["beside"] * 1000,
        "alone_p95_ms": percentile(alone, 0.95),
        "beside_stalled_p95_ms": percentile(beside, 0.95),
    }
    report.within("memory at the end, ratio to a third of the way", last["rss"] / first["rss"], 1.1)
    # CPU, because the delays of two different minutes differ on a machine that others use, too.
    report.within("CPU of an event beside stalled clients, ratio to without", cpu["beside"] / cpu["alone"], 1.25)
    await run.stop()
    for task in late:
        task.cancel()
    return alone + beside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--threads", type=int, default=50)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true", help="a small run that shows that everything still works")
    parser.add_argument("--serve", choices=("stored", "bare"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        uvloop.run(serve(given.serve, given.folder, given.threads))
        return
    clients, count, events = (20, 5, 600) if given.quick else (given.clients, given.threads, given.events)
    report = Report("stream")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        bare, bare_cpu = uvloop.run(measure_bare(folder / "bare", count, clients, max(events // 10, 200)))
        late = uvloop.run(measure_stored(report, folder / "stored", count, clients, events))
    report.figures |= {
        "p50_ms": median(late),
        "p95_ms": percentile(late, 0.95),
        "bare_p95_ms": percentile(bare, 0.95),
        "bare_cpu_ms_an_event": bare_cpu,
    }
    report.ratios["p50_to_bare"] = median(late) / median(bare)
    report.ratios["cpu_to_bare"] = report.figures["cpu_ms_an_event"] / bare_cpu
    report.within_time("an event reaches its clients, p95", percentile(late, 0.95), 50)
    report.print()


if __name__ == "__main__":
    main()
