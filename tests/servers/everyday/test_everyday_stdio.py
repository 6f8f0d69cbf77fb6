"""The everyday server as a real process, spoken to with the official client."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import annabelle.servers.everyday
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.servers.everyday.__main__ import main
from servers.everyday.counterparts import Outside
from servers.speaking import Connect

EVERYDAY = ("-m", "annabelle.servers.everyday")
TOOLS = {
    "get_time", "convert_time", "list_time_zones", "date_difference", "add_to_date", "find_date", "convert_units",
    "convert_currency", "list_currencies", "get_weather", "get_forecast", "find_place", "read_feed", "follow_feed",
    "unfollow_feed", "list_feeds", "get_feed_news", "make_qr_code", "read_qr_code",
}  # fmt: skip
CHANGES = {"follow_feed", "unfollow_feed", "get_feed_news", "make_qr_code"}


@pytest.mark.req("SRV-ALL")
async def test_every_tool_is_listed_and_works_over_the_protocol(
    as_process: Connect, home: Home, outside: Outside
) -> None:
    url = outside.publish("/rss", [("1", "One")], "a")
    settings = {
        "USER_TIMEZONE": "Asia/Tokyo", "WEATHER_URL": outside.url, "GEOCODING_URL": outside.url,
        "CURRENCY_URL": outside.url, "PRIVATE_HOSTS_ALLOWED": outside.host,
    }  # fmt: skip
    async with as_process(*EVERYDAY, **settings) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        time = await client.call_tool("get_time", {})
        units = await client.call_tool("convert_units", {"value": 1, "from_unit": "mile", "to_unit": "km"})
        money = await client.call_tool("convert_currency", {"amount": 1, "from_currency": "EUR", "to_currency": "PLN"})
        weather = await client.call_tool("get_weather", {"place": "Paris"})
        await client.call_tool("follow_feed", {"url": url})
        code = await client.call_tool("make_qr_code", {"text": "hello"})
        read = await client.call_tool("read_qr_code", {"path": code.structured_content["path"]})
        wrong = await client.call_tool("get_time", {"zones": ["Nowhere/Land"]})
    assert tools.keys() == TOOLS
    assert {name for name, tool in tools.items() if not tool.annotations.read_only_hint} == CHANGES
    assert time.structured_content["times"][0]["zone"] == "Asia/Tokyo"
    assert units.content[0].text == "1 mile = 1.609344 kilometer."
    assert money.structured_content["result"] == "4.25"
    assert weather.structured_content["now"]["temperature"] == 10.0
    assert "news.example" not in (home.data / "everyday/feeds.json").read_text()
    assert (home.data / "everyday/rates.json").exists()
    assert read.content[0].text == "hello"
    assert wrong.is_error
    assert wrong.structured_content["error"]["code"] == "invalid_arguments"


@pytest.mark.req("EXT-01", "SRV-ALL")
def test_the_manifest_asks_for_settings_that_exist_and_no_secret() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.everyday.__file__).parent / "manifest.toml").read_text())
    known = {name.upper() for name in Settings.model_fields} | {"ANNABELLE_HOME", "HOME", "FILER_GRANTS_PATH"}
    assert set(manifest["env"]) - known <= {"WORKSPACE_PATH", "AUDIT_LOG_PATH", "TEMP_CLEANUP_DAYS"}
    assert not any("KEY" in name or "TOKEN" in name for name in manifest["env"])
    assert (manifest["name"], manifest["group"]) == ("everyday", "everyday")
    assert callable(main)
