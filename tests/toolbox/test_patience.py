"""When a server is restarted, and when no more."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from annabelle.core.tools import JsonObject
from annabelle.toolbox.config import ToolboxLimits
from annabelle.toolbox.manifest import ServerProfile
from annabelle.toolbox.mcp.connection import Connection
from annabelle.toolbox.supervisor.restart_backoff import RestartBackoff
from annabelle.toolbox.supervisor.server import ManagedServer, ServerListeners
from support.toolbox import eventually


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.incident("I-18")
def test_waits_double_up_to_the_cap_and_then_it_is_over() -> None:
    clock = Clock()
    patience = RestartBackoff(base=1, cap=5, limit=5, window=600, clock=clock)
    assert [patience.next_wait() for _ in range(7)] == [1, 2, 4, 5, 5, None, None]


def test_restarts_long_ago_do_not_count() -> None:
    clock = Clock()
    patience = RestartBackoff(base=1, cap=5, limit=2, window=600, clock=clock)
    assert [patience.next_wait(), patience.next_wait(), patience.next_wait()] == [1, 2, None]
    clock.now += 601
    assert patience.next_wait() == 1


def test_a_calm_time_makes_the_next_wait_short_again() -> None:
    clock = Clock()
    patience = RestartBackoff(base=1, cap=5, limit=50, window=600, clock=clock)
    for _ in range(4):
        patience.next_wait()
    clock.now += 60
    assert patience.next_wait() == 1


def test_a_reset_begins_anew() -> None:
    patience = RestartBackoff(base=1, cap=5, limit=1, window=600, clock=Clock())
    assert [patience.next_wait(), patience.next_wait()] == [1, None]
    patience.reset()
    assert patience.next_wait() == 1


class DeafConnection:
    """A connection without tools that answers its pings as told, and then every one."""

    def __init__(self, *answers: bool) -> None:
        self.answers, self.pings = list(answers), 0
        self.missed: list[int] = []
        """How many pings in a row the server counted as missed, at each ping."""
        self.server: ManagedServer | None = None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.pid = self.protocol = self.exit_reason = None
        self.garbage_lines = 0

    async def list_tools(self) -> list[JsonObject]:
        return []

    async def ping(self) -> None:
        assert self.server is not None
        self.pings += 1
        self.missed.append(self.server.status().missed_pings)
        if self.answers and not self.answers.pop(0):
            await asyncio.Event().wait()

    async def close(self, grace: float) -> None:
        pass


async def watched(*connections: DeafConnection) -> ManagedServer:
    """A server that runs on these connections, one after the other, with the limits in force but for their pace."""
    left = list(connections)

    async def connect(_on_tools_changed: Callable[[], None]) -> Connection:
        return cast("Connection", left.pop(0))

    def ignore(*_told: Any) -> None:
        pass

    limits = ToolboxLimits(ping_every_seconds=0.01, ping_seconds=0.01, restart_base_seconds=0.01)
    profile = ServerProfile("deaf", "Deaf", "builtin", timeout_seconds=1)
    server = ManagedServer(profile, connect, limits, ServerListeners(ignore, ignore, ignore, ignore), 1_000)
    for connection in connections:
        connection.server = server
    await server.start()
    return server


@pytest.mark.req("HUB-04")
async def test_two_missed_pings_are_forgiven() -> None:
    connection = DeafConnection(False, False, True, False, False, True)
    server = await watched(connection)
    await eventually(lambda: connection.pings > 6)
    assert connection.missed[:7] == [0, 1, 2, 0, 1, 2, 0], "an answer starts the count again"
    assert (server.status().restarts, server.status().available) == (0, True)
    await server.stop()


@pytest.mark.req("HUB-04")
async def test_the_third_missed_ping_in_a_row_restarts_the_server() -> None:
    deaf, second = DeafConnection(False, False, False), DeafConnection()
    server = await watched(deaf, second)
    await eventually(lambda: second.pings > 0)
    assert (deaf.pings, deaf.missed) == (3, [0, 1, 2])
    status = server.status()
    assert (status.restarts, status.missed_pings, status.available) == (1, 0, True)
    assert status.last_error == "it missed 3 health checks in a row"
    await server.stop()
