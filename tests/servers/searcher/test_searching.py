"""Searching with Brave and SearXNG: what is asked, what is shown, and what happens when one fails."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import (
    AnnabelleError,
    ConfigMistake,
    InvalidArguments,
    ProviderDown,
    ProviderFailed,
    ProviderRateLimited,
    ProviderRefused,
    Unavailable,
)
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.http_providers import RequestSpacing
from annabelle.servers.searcher.plain_text import one_line, remove_invisible
from annabelle.servers.searcher.search_provider import Freshness
from annabelle.servers.searcher.server import build
from servers.searcher.conftest import Configure, caller
from servers.searcher.doubles import KEY, BraveDouble, SearXNGDouble, as_json
from servers.searcher.local_web import LocalWeb, Reply, redirect
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-SRC", "SRV-ALL")

PAGE = {
    "title": "Rust &amp; <strong>iron</strong>",
    "url": "https://iron.example/rust",
    "description": "About <strong>rust</strong>\u202e\x07 and\n\n iron.",
    "age": "2 days ago",
    "profile": {"name": "Iron"},
}


async def test_a_web_search_gives_short_clean_results(with_brave: CallTool, brave: BraveDouble) -> None:
    brave.results["web"] = [PAGE]
    answer = await with_brave("web_search", query="rust", count=3, freshness="pw", safesearch="strict")
    [found] = answer.results
    assert (found.title, found.url) == ("Rust & iron", "https://iron.example/rust")
    assert (found.snippet, found.age, found.source) == ("About rust and iron.", "2 days ago", "Iron")
    assert answer.provider == "Brave Search"
    [asked] = brave.web.asked
    assert asked.path == "/res/v1/web/search"
    assert (asked.query["q"], asked.query["count"]) == ("rust", "3")
    assert (asked.query["freshness"], asked.query["safesearch"]) == ("pw", "strict")
    assert "1. Rust & iron\n   https://iron.example/rust" in answer.to_text()


async def test_a_query_is_sent_as_it_was_written(with_brave: CallTool, brave: BraveDouble) -> None:
    await with_brave("web_search", query='vector<int> "a &amp; b" -c\n🇩🇪 नमस्ते')
    assert brave.web.asked[0].query["q"] == 'vector<int> "a &amp; b" -c 🇩🇪 नमस्ते'


async def test_the_same_page_is_shown_once_and_only_web_addresses_at_all(
    with_brave: CallTool, brave: BraveDouble
) -> None:
    others = [
        "http://www.iron.example/rust/",
        "https://iron.example/rust#top",
        "javascript:alert(1)",
        "file:///etc",
        None,
        7,
    ]
    brave.results["web"] = [PAGE, *({**PAGE, "url": url} for url in others)]
    answer = await with_brave("web_search", query="rust")
    assert [found.url for found in answer.results] == ["https://iron.example/rust"]


async def test_news_and_images_are_found_with_brave(with_brave: CallTool, brave: BraveDouble) -> None:
    brave.results["news"] = [{**PAGE, "profile": None, "meta_url": {"hostname": "iron.example"}}]
    brave.results["images"] = [
        {
            "title": "A nail",
            "url": "https://iron.example/page",
            "source": "iron.example",
            "thumbnail": {"src": "https://thumbs.example/1"},
            "properties": {"url": "https://iron.example/nail.jpg", "width": 640, "height": "480"},
        },
        {"title": "no picture", "properties": None},
    ]
    news = await with_brave("news_search", query="iron", count=2, freshness="pd")
    assert [(found.title, found.source) for found in news.results] == [("Rust & iron", "iron.example")]
    images = await with_brave("image_search", query="nail")
    [image] = images.results
    assert (image.image_url, image.page_url) == ("https://iron.example/nail.jpg", "https://iron.example/page")
    assert (image.thumbnail, image.width, image.height) == ("https://thumbs.example/1", 640, 480)
    assert "640×480" in images.to_text()
    news_asked, images_asked = brave.web.asked
    assert (news_asked.path, news_asked.query["freshness"]) == ("/res/v1/news/search", "pd")
    assert (images_asked.path, images_asked.query["safesearch"], images_asked.query["count"]) == (
        "/res/v1/images/search",
        "strict",
        "5",
    )


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("pd", "pd"),
        ("PW", "pw"),
        ("month", "pm"),
        ("past year", "py"),
        ("2026-01-01to2026-02-01", "2026-01-01to2026-02-01"),
        ("2026-01-01..2026-02-01", "2026-01-01to2026-02-01"),
        ("", None),
        (None, None),
    ],
)
async def test_freshness_reaches_brave_in_its_words(
    with_brave: CallTool, brave: BraveDouble, text: str | None, sent: str | None
) -> None:
    await with_brave("web_search", query="x", freshness=text)
    assert brave.web.asked[0].query.get("freshness") == sent


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "x", "freshness": "soon"},
        {"query": "x", "freshness": "2026-02-30to2026-03-01"},
        {"query": "x", "freshness": "2026-03-01to2026-02-01"},
        {"query": "x", "count": 0},
        {"query": "x", "count": 21},
        {"query": "x", "safesearch": "none"},
        {"query": ""},
        {"query": "\x00\u202e \n"},
        {"query": "x" * 401},
        {},
    ],
)
async def test_a_wrong_argument_is_named_and_nothing_is_sent(
    with_brave: CallTool, brave: BraveDouble, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidArguments):
        await with_brave("web_search", **arguments)
    assert brave.web.asked == []


async def test_a_wrong_key_is_said_without_the_key(configure: Configure, brave: BraveDouble) -> None:
    config = configure(brave_key="wrong-key-1234567", brave_url=brave.web.url(""))
    assert "wrong-key" not in repr(config)
    with pytest.raises(ProviderRefused, match="does not accept the key") as caught:
        await caller(build(config))("web_search", query="x")
    assert "wrong-key" not in f"{caught.value.message} {caught.value.hint}"
    assert "annabelle config set BRAVE_API_KEY" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (as_json({}, 401), ProviderRefused),
        (as_json({}, 500), ProviderDown),
        (as_json({}, 422), ProviderFailed),
        (Reply(b"<html>", 200), ProviderFailed),
        (Reply(b"[" * 100_000, 200), ProviderFailed),
        (Reply(b"half", broken=True), Unavailable),
        (as_json(["a", 1]), None),
        (as_json({"web": {"results": [1, None, {"url": "https://a.example/"}]}}), None),
    ],
)
async def test_every_bad_answer_of_brave_is_a_sentence(
    with_brave: CallTool, brave: BraveDouble, reply: Reply, error: type[AnnabelleError] | None
) -> None:
    brave.web.pages["/res/v1/web/search"] = reply
    if error is None:
        await with_brave("web_search", query="x")
    else:
        with pytest.raises(error):
            await with_brave("web_search", query="x")


async def test_the_key_does_not_follow_a_redirect(with_brave: CallTool, brave: BraveDouble, site: LocalWeb) -> None:
    brave.web.pages["/res/v1/web/search"] = redirect(site.url("/steal"))
    with pytest.raises(ProviderFailed):
        await with_brave("web_search", query="x")
    assert site.asked == []


async def test_the_next_source_answers_when_brave_has_had_enough(
    configure: Configure, brave: BraveDouble, searxng: SearXNGDouble
) -> None:
    call = caller(build(configure(brave_key=KEY, brave_url=brave.web.url(""), searxng_url=searxng.web.url(""))))
    brave.quota = 1
    searxng.results["general"] = [{"title": "Found", "url": "https://found.example/", "content": "here"}]
    assert (await call("web_search", query="x")).provider == "Brave Search"
    answer = await call("web_search", query="x")
    assert (answer.provider, answer.results[0].title) == ("SearXNG", "Found")
    assert "fewer requests" in answer.note
    assert len(searxng.web.asked) == 1


async def test_when_every_source_fails_each_reason_is_said(
    configure: Configure, brave: BraveDouble, searxng: SearXNGDouble
) -> None:
    brave.quota, searxng.json_on = 0, False
    call = caller(build(configure(brave_key=KEY, brave_url=brave.web.url(""), searxng_url=searxng.web.url(""))))
    with pytest.raises(Unavailable, match=r"Brave Search asks .* SearXNG refuses"):
        await call("web_search", query="x")


async def test_searxng_is_asked_in_its_own_words(with_searxng: CallTool, searxng: SearXNGDouble) -> None:
    entry = {"title": "T", "url": "https://t.example/", "content": "c", "publishedDate": "2026-01-02", "engine": "e"}
    picture = {"title": "P", "url": "https://t.example/", "img_src": "https://t.example/p.png", "thumbnail_src": "x"}
    searxng.results |= {"general": [entry], "news": [entry], "images": [picture]}
    web = await with_searxng("web_search", query="ä b&c", freshness="pm", safesearch="off")
    news = await with_searxng("news_search", query="n")
    images = await with_searxng("image_search", query="p", safesearch="off")
    assert (web.provider, web.results[0].age, news.results[0].source) == ("SearXNG", "2026-01-02", "e")
    assert (images.results[0].image_url, images.results[0].thumbnail) == ("https://t.example/p.png", None)
    asked = [request.query for request in searxng.web.asked]
    assert [query["categories"] for query in asked] == ["general", "news", "images"]
    assert (asked[0]["q"], asked[0]["time_range"], asked[0]["safesearch"]) == ("ä b&c", "month", "0")
    assert "time_range" not in asked[1]


async def test_a_range_of_days_is_widened_where_only_spans_are_known(
    with_searxng: CallTool, searxng: SearXNGDouble
) -> None:
    today = datetime.now(UTC).date()
    answer = await with_searxng("web_search", query="x", freshness=f"{today - timedelta(days=3)}to{today}")
    assert searxng.web.asked[0].query["time_range"] == "week"
    assert "the past week" in answer.note
    assert Freshness.parse("2001-01-01to2001-02-01").shortest_span() is None


async def test_a_password_in_the_address_of_searxng_goes_into_a_header(
    configure: Configure, searxng: SearXNGDouble
) -> None:
    config = configure(searxng_url=searxng.web.url("").replace("//", "//me:p%40ss@"))
    assert "p%40ss" not in repr(config)
    await caller(build(config))("web_search", query="x")
    [asked] = searxng.web.asked
    assert asked.headers["authorization"] == f"Basic {base64.b64encode(b'me:p@ss').decode()}"
    searxng.web.pages["/search"] = Reply(b"", 401)
    with pytest.raises(ProviderRefused, match="password") as caught:
        await caller(build(config))("web_search", query="x")
    assert "p@ss" not in f"{caught.value.message} {caught.value.hint}"


async def test_searxng_without_json_says_what_to_switch_on(with_searxng: CallTool, searxng: SearXNGDouble) -> None:
    searxng.json_on = False
    with pytest.raises(ProviderRefused) as caught:
        await with_searxng("web_search", query="x")
    assert "settings.yml" in (caught.value.hint or "")


async def test_no_source_at_all_is_said_by_tools_and_readiness(configure: Configure) -> None:
    server = build(configure())
    ready = await server.tools["readiness"].call({})
    assert "annabelle config set BRAVE_API_KEY" in ready.missing  # type: ignore[attr-defined]
    with pytest.raises(Unavailable, match="not connected") as caught:
        await caller(server)("image_search", query="x")
    assert "annabelle config set BRAVE_API_KEY" in (caught.value.hint or "")
    free = await build(configure(without_key=True)).tools["readiness"].call({})
    assert free.ready  # type: ignore[attr-defined]


class Clock:
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0
        self.turns: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.turns.append(self.now + seconds)


async def test_requests_at_once_are_kept_apart() -> None:
    clock = Clock()
    spacing = RequestSpacing(1.1, lambda: clock.now, clock.sleep)
    await asyncio.gather(*(spacing.wait_for_turn() for _ in range(4)))
    assert clock.turns == pytest.approx([101.1, 102.2, 103.3])
    clock.now = 200.0
    await spacing.wait_for_turn()
    assert len(clock.turns) == 3, "after a pause nobody waits"
    spacing.pause(10)
    await spacing.wait_for_turn()
    assert clock.turns[-1] == pytest.approx(210.0)
    spacing.pause(100)
    with pytest.raises(ProviderRateLimited, match="waiting for their turn"):
        await spacing.wait_for_turn()


async def test_a_source_that_is_asked_too_often_says_how_long_to_wait(configure: Configure, brave: BraveDouble) -> None:
    brave.quota = 0
    call = caller(build(configure(brave_key=KEY, brave_url=brave.web.url(""))))
    with pytest.raises(ProviderRateLimited, match="fewer requests") as caught:
        await call("web_search", query="x")
    assert "7 seconds" in (caught.value.hint or "")


@pytest.mark.parametrize("address", ["ftp://x", "nonsense", "http://", "http://[::1", "http://h:99999"])
def test_a_searxng_address_that_is_none_is_a_mistake_of_the_settings(
    config: FilesConfig, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("SEARXNG_URL", address)
    with pytest.raises(ConfigMistake, match="SEARXNG_URL"):
        SearcherConfig.from_settings(own_settings(), config)


@settings(deadline=None, max_examples=60)
@given(text=st.text(), limit=st.integers(5, 50))
def test_words_from_outside_become_one_short_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.replace("\u200c", "").replace("\u200d", "").isprintable()
    assert remove_invisible(line) == line
