"""A searcher in this process, with the services it asks on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.host_access import AllowedPrivateHosts
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.server import build
from servers.searcher.doubles import KEY, BraveDouble, SearXNGDouble
from servers.searcher.local_web import LocalWeb, Reply, local_web
from servers.speaking import CallTool

Configure = Callable[..., SearcherConfig]


@pytest.fixture
def configure(config: FilesConfig) -> Configure:
    """A configuration that asks nobody unless the test says so."""

    def make(**changes: object) -> SearcherConfig:
        return replace(SearcherConfig(files=config, brave_spacing=0, without_key=False), **changes)  # type: ignore[arg-type]

    return make


def caller(server: ToolServer) -> CallTool:
    async def call(name: str, **arguments: object):
        return await server.tools[name].call(arguments)

    return call


@pytest.fixture
async def brave() -> AsyncIterator[BraveDouble]:
    async with local_web() as web:
        yield BraveDouble(web)


@pytest.fixture
async def searxng() -> AsyncIterator[SearXNGDouble]:
    async with local_web() as web:
        yield SearXNGDouble(web)


@pytest.fixture
def with_brave(configure: Configure, brave: BraveDouble) -> CallTool:
    return caller(build(configure(brave_key=KEY, brave_url=brave.web.url(""))))


@pytest.fixture
def with_searxng(configure: Configure, searxng: SearXNGDouble) -> CallTool:
    return caller(build(configure(searxng_url=searxng.web.url(""))))


@pytest.fixture
async def site() -> AsyncIterator[LocalWeb]:
    """A site the searcher may reach on this address and no other; it has no robots.txt."""
    async with local_web() as web:
        web.pages["/robots.txt"] = Reply(b"", 404)
        yield web


@pytest.fixture
async def searcher_with(configure: Configure, site: LocalWeb) -> AsyncIterator[Callable[..., CallTool]]:
    """Searchers that take the site for a public one, each closed when the test ends."""
    async with AsyncExitStack() as stack:

        def make(**changes: object) -> CallTool:
            allowed = AllowedPrivateHosts.parse(f"127.0.0.1:{site.port}")
            server = build(configure(private_hosts=allowed, **changes))
            stack.push_async_callback(server.close)
            return caller(server)

        yield make


@pytest.fixture
def fetch(searcher_with: Callable[..., CallTool], site: LocalWeb) -> CallTool:
    """web_fetch of such a searcher."""
    call = searcher_with()

    async def do(path: str, **arguments: object):
        url = site.url(path) if path.startswith("/") else path
        return await call("web_fetch", url=url, **{"timeout": 30_000, **arguments})

    return do
