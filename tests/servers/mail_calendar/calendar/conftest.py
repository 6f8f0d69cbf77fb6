"""Calendar tools in this process, at a Google of the tests or at a real CalDAV server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.mail_calendar.accounts import Accounts
from annabelle.servers.mail_calendar.config import GoogleApiUrls, MailCalendarConfig
from annabelle.servers.mail_calendar.server import calendar_groups
from servers.mail_calendar.calendar.odd_server import OddServer
from servers.mail_calendar.calendar.worlds import MAIN, CalDavWorld, GoogleWorld, World
from servers.speaking import CallTool
from support.caldav_server import CalDavServer, caldav_server
from support.google_double.calendar import CalendarPart
from support.google_double.server import GoogleDouble

NOW = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
"""A Monday, nine in the morning in Berlin."""


@pytest.fixture(scope="session")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CalDavServer]:
    with caldav_server(tmp_path_factory.mktemp("caldav")) as server:
        yield server


@pytest.fixture(scope="session")
def google_calendar() -> Iterator[GoogleWorld]:
    part = CalendarPart()
    with GoogleDouble(part) as double:
        yield GoogleWorld(double, part)


@pytest.fixture
def google(google_calendar: GoogleWorld, home: Home) -> GoogleWorld:
    google_calendar.part.clear()
    google_calendar.double.app.faults.clear()
    google_calendar.double.app.requests.clear()
    google_calendar.connect(home)
    return google_calendar


@pytest.fixture
def caldav(radicale: CalDavServer, home: Home) -> CalDavWorld:
    radicale.clear()
    radicale.make_calendar(MAIN, "Ada")
    world = CalDavWorld(radicale)
    world.connect(home)
    return world


@pytest.fixture
def odd() -> Iterator[OddServer]:
    with OddServer() as server:
        yield server


@pytest.fixture(params=["google", "caldav"])
def world(request: pytest.FixtureRequest) -> World:
    """Every test that asks for it runs against both."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def gmail_config(config: FilesConfig, google_calendar: GoogleWorld) -> MailCalendarConfig:
    return MailCalendarConfig(
        files=config, google=GoogleApiUrls.from_base(google_calendar.double.url), timezone="Europe/Berlin"
    )


@pytest.fixture
async def calendar_server(gmail_config: MailCalendarConfig) -> AsyncIterator[ToolServer]:
    accounts = Accounts(gmail_config)
    yield ToolServer("gmail", calendar_groups(accounts, gmail_config, lambda: NOW))
    await accounts.close()


@pytest.fixture
def call(calendar_server: ToolServer) -> CallTool:
    async def do(name: str, **arguments: object) -> BaseModel:
        return await calendar_server.tools[name].call(arguments)

    return do
