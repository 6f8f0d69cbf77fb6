"""The searcher as the hub runs it: from its manifest, with the variables it asks for and no others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import annabelle.servers.searcher
from annabelle.core.home import Home
from annabelle.core.tools import CallContext
from annabelle.toolbox.config import ManifestFolder, ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from servers.searcher.documents import ARTICLE
from servers.searcher.local_web import LocalWeb, Reply
from support.timing import seconds
from support.toolbox import QUICK, MemoryJournal

pytestmark = pytest.mark.req("SRV-SRC", "SRV-ALL")


@pytest.fixture
async def toolbox(home: Home, site: LocalWeb, tmp_path: Path) -> AsyncIterator[Toolbox]:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "searcher").symlink_to(Path(annabelle.servers.searcher.__file__).parent)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ANNABELLE_HOME": str(home.root),
        "PRIVATE_HOSTS_ALLOWED": f"127.0.0.1:{site.port}",
        "SEARCH_WITHOUT_KEY": "false",
    }
    config = ToolboxConfig(
        home=home,
        environment=environment,
        external_file=home.config / "external-mcps.json",
        manifest_folders=(ManifestFolder(folder, "annabelle.servers"),),
        limits=QUICK,
    )
    toolbox = Toolbox(ToolServers(config, MemoryJournal()))
    await asyncio.wait_for(toolbox.start(), seconds(60))
    yield toolbox
    await toolbox.stop()


async def test_pages_are_read_while_search_waits_for_a_key(toolbox: Toolbox, site: LocalWeb) -> None:
    site.pages["/iron"] = Reply(ARTICLE.encode())
    [status] = toolbox.servers()
    assert status.missing is not None
    assert "annabelle config set BRAVE_API_KEY" in status.missing
    person = CallContext(caller="api", user_id="owner", trace_id="tr_test")
    page = await toolbox.call("searcher_web_fetch", {"url": site.url("/iron")}, person)
    assert not page.is_error
    assert "Iron is a metal" in str(page)
    refused = await toolbox.call("searcher_web_search", {"query": "iron"}, person)
    assert refused.is_error
    assert "not connected" in str(refused)
