"""One browser for all tests that do not end it, a site it may reach, and one it may not."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
import pytest_asyncio

from annabelle.core.home import Home
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess, resolve_by_system
from annabelle.servers.web.browser_pool import BrowserPool
from annabelle.servers.web.config import BrowserConfig, BrowserTimeouts
from annabelle.servers.web.server import assemble
from servers.web.browsing import Web
from servers.web.pages import Site
from support.timing import seconds

# Read once, perhaps in a quiet moment: what is meant to take too long is given less by `Web.hasty`.
PATIENCE = BrowserTimeouts(action=seconds(40), navigation=seconds(60), settle=2)

Names = dict[str, list[str]]
MakeConfig = Callable[..., BrowserConfig]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser is made once and lives in one loop, so its tests do too."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here) and isinstance(item, pytest.Function) and iscoroutinefunction(item.function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def names() -> Names:
    """What the resolver answers for a name: the first entry, which goes away if there is another behind it."""
    return {}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def open_site() -> AsyncIterator[Site]:
    site = await Site().start()
    yield site
    await site.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def closed_site() -> AsyncIterator[Site]:
    site = await Site().start()
    yield site
    await site.stop()


@pytest.fixture
def site(open_site: Site) -> Site:
    """The user has opened this machine and port."""
    open_site.clear()
    return open_site


@pytest.fixture
def private(closed_site: Site) -> Site:
    """The same machine, another port, which nobody has opened."""
    closed_site.clear()
    closed_site.pages["/"] = "<title>Private</title>private"
    return closed_site


@pytest.fixture(scope="session")
def make_config(open_site: Site) -> MakeConfig:
    def make(root: Path, **changes: object) -> BrowserConfig:
        home = Home(root).prepare()
        files = FilesConfig(
            home=home,
            user_home=root,
            workspace=home.workspace,
            grants_file=home.config / "filer-grants.json",
            audit_file=home.logs / "filer-audit.jsonl",
        )
        opened = f"127.0.0.1:{open_site.port},site.test:{open_site.port}"
        config = BrowserConfig(
            profiles=home.data / "browser", files=files, exceptions=AllowedPrivateHosts.parse(opened), timeouts=PATIENCE
        )
        return replace(config, **changes)

    return make


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(make_config: MakeConfig, names: Names, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async def resolve(host: str, port: int) -> list[str]:
        answers = names.get(host)
        if answers is None:
            return await resolve_by_system(host, port)
        return [answers.pop(0) if len(answers) > 1 else answers[0]]

    config = make_config(tmp_path_factory.mktemp("web"))
    house = BrowserPool(config, HostAccess(config.exceptions, resolve))
    web = Web(house, assemble(house), config.files.workspace)
    await web("tabs", action="list")  # started here, so that it belongs to no single test
    yield web
    await web.server.close()


@pytest_asyncio.fixture(loop_scope="session")
async def web(shared: Web, site: Site, names: Names) -> Web:
    names.clear()
    names["site.test"] = ["127.0.0.1"]
    await shared.fresh()
    return shared


@pytest_asyncio.fixture(loop_scope="session")
async def make_web(make_config: MakeConfig, tmp_path: Path) -> AsyncIterator[Callable[..., Web]]:
    """A browser of a test's own, for tests that end it."""
    made: list[Web] = []

    def make(**changes: object) -> Web:
        config = make_config(tmp_path / "own-home", **changes)
        house = BrowserPool(config)
        made.append(Web(house, assemble(house), config.files.workspace))
        return made[-1]

    yield make
    for web in made:
        await web.server.close()
