"""Every tool with hostile arguments, on a real page."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import AnnabelleError
from annabelle.servers.kit.tools import success
from servers.hostile_arguments import cases
from servers.web.browsing import Web
from servers.web.pages import Site
from support.timing import seconds


@pytest.mark.req("SRV-ALL", "SRV-BRW")
async def test_no_argument_breaks_a_tool_or_the_browser(web: Web, site: Site) -> None:
    site.pages["/"] = "<title>Page</title><form><input aria-label=Field><button type=button>Go</button></form>"
    await web("navigate", url=f"{site.url}/")
    await web("snapshot")
    wrong: list[str] = []
    async with web.hasty(action=0.5, navigation=0.5, settle=0.1):
        for tool in web.server.tools.values():
            for arguments in cases(tool.input_schema(), "/etc/passwd"):
                if tool.name in ("browser_close", "browser_wait_for", "readiness"):
                    continue
                try:
                    async with asyncio.timeout(seconds(30)):
                        success(await tool.call(arguments), 1_000_000)
                except AnnabelleError as error:
                    if len(error.message) > 1000:
                        wrong.append(f"{tool.name}: a refusal of {len(error.message)} characters")
                except Exception as error:
                    wrong.append(f"{tool.name}({str(arguments)[:200]}): {error!r:.300}")
    assert not wrong, "\n".join(wrong)
    await web.fresh()
    assert (await web("navigate", url=f"{site.url}/")).title == "Page"
