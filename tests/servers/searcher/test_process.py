"""The searcher as a real process, spoken to with the official client."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import annabelle.servers.searcher
from annabelle.core.settings import Settings
from annabelle.servers.searcher.__main__ import main
from servers.searcher.documents import ARTICLE
from servers.searcher.doubles import KEY, BraveDouble
from servers.searcher.local_web import LocalWeb, Reply
from servers.speaking import Connect

pytestmark = pytest.mark.req("SRV-SRC", "SRV-ALL")

SEARCHER = ("-m", "annabelle.servers.searcher")
FOLDER = Path(annabelle.servers.searcher.__file__).parent

CATALOGUE = {
    "web_search": {"count": 10, "freshness": None, "safesearch": "moderate"},
    "news_search": {"count": 10, "freshness": None},
    "image_search": {"count": 5, "safesearch": "strict"},
    "web_fetch": {"maxLength": 20_000, "includeLinks": True, "timeout": 10_000},
}


async def test_the_four_tools_are_as_the_catalogue_has_them(as_process: Connect) -> None:
    async with as_process(*SEARCHER) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {*CATALOGUE, "readiness"}
    for name, optional in CATALOGUE.items():
        schema, hints = tools[name].input_schema, tools[name].annotations
        assert schema["required"] == ["url" if name == "web_fetch" else "query"]
        defaults = {key: value.get("default") for key, value in schema["properties"].items()}
        assert {key: defaults[key] for key in defaults.keys() - schema["required"]} == optional
        assert all(value["description"] for value in schema["properties"].values())
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
        assert (hints.idempotent_hint, hints.open_world_hint) == (True, True)
    bounds = tools["web_fetch"].input_schema["properties"]
    assert (bounds["maxLength"]["minimum"], bounds["maxLength"]["maximum"]) == (1000, 100_000)
    assert (bounds["timeout"]["minimum"], bounds["timeout"]["maximum"]) == (1000, 30_000)


@pytest.mark.incident("I-15")
async def test_it_searches_reads_and_refuses_over_the_protocol(
    as_process: Connect, brave: BraveDouble, site: LocalWeb
) -> None:
    brave.results["web"] = [{"title": "Iron", "url": site.url("/iron"), "description": "About iron"}]
    site.pages["/iron"] = Reply(ARTICLE.encode())
    environment = {
        "BRAVE_API_KEY": KEY,
        "BRAVE_BASE_URL": brave.web.url(""),
        "PRIVATE_HOSTS_ALLOWED": f"127.0.0.1:{site.port}",
    }
    async with as_process(*SEARCHER, **environment) as client:
        found = await client.call_tool("web_search", {"query": "iron"})
        page = await client.call_tool("web_fetch", {"url": site.url("/iron")})
        refused = await client.call_tool("web_fetch", {"url": "http://169.254.169.254/latest/meta-data/"})
        wrong = await client.call_tool("web_search", {"query": "iron", "count": 1000})
    assert found.structured_content is not None
    assert found.structured_content["results"][0]["url"] == site.url("/iron")
    assert page.structured_content is not None
    assert "Iron is a metal" in page.structured_content["content"]
    assert (refused.is_error, wrong.is_error) == (True, True)
    assert refused.structured_content is not None
    assert refused.structured_content["error"]["code"] == "not_allowed"
    assert KEY not in f"{found} {page} {refused} {wrong}"


def test_the_manifest_asks_for_what_is_used_and_no_more() -> None:
    manifest = tomllib.loads((FOLDER / "manifest.toml").read_text())
    known = {name.upper() for name in Settings.model_fields} | {"ANNABELLE_HOME", "HOME"}
    assert set(manifest["env"]) <= known
    assert manifest["scan"] == {"input": False, "output": True}
    assert callable(main)
