"""Search without a key: the library's own requests, answered by a double of the engines behind a proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from ddgs import DDGS
from ddgs.exceptions import RatelimitException

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderRateLimited
from annabelle.servers.searcher.provider_chain import KeylessProvider, MetaSearch, ProviderChain
from annabelle.servers.searcher.server import build
from servers.searcher.certificates import Authority
from servers.searcher.conftest import Configure, caller
from servers.searcher.doubles import EnginesDouble, engines
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-SRC")

FOUND = """<html><body>
<div class="result__body"><h2><a href="https://one.example/">One &amp; only</a></h2>
<a class="result__snippet" href="https://one.example/">All about <b>one</b></a></div>
<div class="result__body"><h2><a href="https://two.example/">Two</a></h2><a href="https://two.example/">two</a></div>
</body></html>"""
HOSTS = (
    "duckduckgo.com",
    "html.duckduckgo.com",
    "en.wikipedia.org",
    "search.brave.com",
    "www.mojeek.com",
    "www.startpage.com",
    "search.yahoo.com",
    "www.bing.com",
    "news.search.yahoo.com",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture
async def double(authority: Authority) -> AsyncIterator[EnginesDouble]:
    async with engines(authority.for_servers(*HOSTS)) as double:
        yield double


@pytest.fixture
def search(double: EnginesDouble, authority: Authority, configure: Configure) -> CallTool:
    def make() -> MetaSearch:
        return DDGS(proxy=f"http://127.0.0.1:{double.port}", timeout=5, verify=str(authority.file))

    return caller(build(configure(), chain=ProviderChain([KeylessProvider(make)])))


async def test_pages_are_found_without_a_key(search: CallTool, double: EnginesDouble) -> None:
    double.text = FOUND
    answer = await search("web_search", query="one", count=2, freshness="pw")
    assert [(found.title, found.url) for found in answer.results] == [
        ("One & only", "https://one.example/"),
        ("Two", "https://two.example/"),
    ]
    assert answer.provider == "keyless search"
    [form] = [asked.form for host, asked in double.asked if host == "html.duckduckgo.com"]
    assert (form["q"], form["df"]) == ("one", "w")


async def test_news_and_images_are_found_without_a_key(search: CallTool, double: EnginesDouble) -> None:
    double.news = [
        {
            "date": 1767312000,
            "title": "Today",
            "excerpt": "news",
            "url": "https://n.example/",
            "source": "N",
            "image": "",
        }
    ]
    double.images = [
        {
            "title": "Cat",
            "image": "https://i.example/cat.png",
            "thumbnail": "https://i.example/t.png",
            "url": "https://i.example/",
            "height": 10,
            "width": 20,
            "source": "I",
        }
    ]
    news = await search("news_search", query="today", count=1)
    assert [(found.title, found.source, found.age) for found in news.results] == [
        ("Today", "N", "2026-01-02T00:00:00+00:00")
    ]
    images = await search("image_search", query="cat", count=1)
    assert [(found.image_url, found.width) for found in images.results] == [("https://i.example/cat.png", 20)]
    [asked] = [asked for _, asked in double.asked if asked.path == "/i.js"]
    assert (asked.query["q"], asked.query["p"]) == ("cat", "1")


async def test_engines_that_are_down_are_a_sentence(search: CallTool, double: EnginesDouble) -> None:
    double.down = True
    with pytest.raises(ProviderDown) as caught:
        await search("image_search", query="x", count=1)
    assert "BRAVE_API_KEY" in (caught.value.hint or "")
    assert "duckduckgo" not in caught.value.message


async def test_nothing_found_is_no_error(search: CallTool, double: EnginesDouble) -> None:
    answer = await search("web_search", query="zxqw", count=1)
    assert answer.results == []
    assert "Nothing was found" in answer.to_text()


class Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def text(self, query: str, **options: object) -> list[dict[str, object]]:
        raise self._error

    news = images = text


async def test_a_limit_and_a_changed_page_are_told_apart(configure: Configure) -> None:

    for error, expected in ((RatelimitException("202"), ProviderRateLimited), (KeyError("x"), ProviderFailed)):
        call = caller(build(configure(), chain=ProviderChain([KeylessProvider(lambda error=error: Failing(error))])))
        with pytest.raises(expected):
            await call("web_search", query="x")
