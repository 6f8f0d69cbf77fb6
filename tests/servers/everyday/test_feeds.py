"""Feeds: read as plain words, and each new entry told once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    InvalidArguments,
    NotAllowed,
    NotFound,
    TooLarge,
    Unavailable,
)
from annabelle.servers.everyday import feed_reader, feeds
from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.everyday.feed_reader import html_to_words
from annabelle.servers.everyday.server import build
from annabelle.servers.kit.call import Call, enter_call
from servers.everyday.counterparts import Outside
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")

OLD = [("2", "Two"), ("1", "One")]
NEW = [("4", "Four"), ("3", "Three"), *OLD]


async def test_a_feed_is_read_as_plain_words(ask: CallTool, outside: Outside) -> None:
    result = await ask("read_feed", url=outside.publish("/rss", OLD, "a"))
    assert result.title == "Local news"
    first = result.entries[0]
    assert (first.title, first.link, first.summary) == ("Two", "https://news.example/2", "About Two")
    assert first.published.isoformat() == "2026-11-15T20:00:00+00:00"


async def test_a_limit_and_a_time_narrow_a_feed(ask: CallTool, outside: Outside) -> None:
    url = outside.publish("/rss", NEW, "a")
    few = await ask("read_feed", url=url, limit=1)
    assert ([entry.title for entry in few.entries], few.more) == (["Four"], 3)
    late = await ask("read_feed", url=url, since="2026-11-15T18:30:00Z")
    assert [entry.title for entry in late.entries] == ["Four", "Three"]


async def test_a_feed_that_has_not_changed_is_not_sent_again(ask: CallTool, outside: Outside) -> None:
    url = outside.publish("/rss", OLD, "v1")
    await ask("read_feed", url=url)
    again = await ask("read_feed", url=url)
    assert [entry.title for entry in again.entries] == ["Two", "One"]
    assert outside.asked[1][2]["if-none-match"] == "v1"
    outside.publish("/rss", NEW, "v2")
    assert (await ask("read_feed", url=url)).entries[0].title == "Four"


async def test_each_new_entry_is_told_once_also_after_a_restart(
    ask: CallTool, outside: Outside, everyday_config: EverydayConfig
) -> None:
    url = outside.publish("/rss", OLD, "a")
    followed = await ask("follow_feed", url=url, name="News")
    assert "2 entries" in followed.message
    assert (await ask("get_feed_news")).entries == []
    outside.publish("/rss", NEW, "b")
    news = await ask("get_feed_news")
    assert [(entry.feed, entry.title) for entry in news.entries] == [("News", "Four"), ("News", "Three")]
    assert (await ask("get_feed_news")).entries == []
    assert (await build(everyday_config).tools["get_feed_news"].call({})).entries == []
    assert len((await ask("get_feed_news", since_last=False)).entries) == 4


async def test_what_is_beyond_the_limit_comes_next_time(ask: CallTool, outside: Outside) -> None:
    await ask("follow_feed", url=outside.publish("/rss", OLD, "a"))
    outside.publish("/rss", NEW, "b")
    first = await ask("get_feed_news", limit=1)
    second = await ask("get_feed_news", limit=1)
    assert [(first.entries[0].title, first.more), (second.entries[0].title, second.more)] == [("Four", 1), ("Three", 0)]


async def test_two_calls_at_once_tell_an_entry_once(ask: CallTool, outside: Outside) -> None:
    await ask("follow_feed", url=outside.publish("/rss", OLD, "a"))
    outside.publish("/rss", NEW, "b")
    both = await asyncio.gather(ask("get_feed_news"), ask("get_feed_news"))
    assert sorted(entry.title for news in both for entry in news.entries) == ["Four", "Three"]


async def test_feeds_followed_at_once_are_all_kept(ask: CallTool, outside: Outside) -> None:
    urls = [outside.publish(f"/{number}", OLD, "a") for number in range(6)]
    await asyncio.gather(*(ask("follow_feed", url=url, name=url[-1]) for url in urls))
    assert sorted(feed.name for feed in (await ask("list_feeds")).feeds) == ["0", "1", "2", "3", "4", "5"]


async def test_a_feed_that_fails_does_not_hide_the_others(ask: CallTool, outside: Outside) -> None:
    await ask("follow_feed", url=outside.publish("/good", OLD, "a"), name="Good")
    await ask("follow_feed", url=outside.publish("/gone", OLD, "a"), name="Gone")
    outside.publish("/good", NEW, "b")
    del outside.feeds["/gone"]
    news = await ask("get_feed_news")
    assert len(news.entries) == 2
    assert "Gone" in news.failed


async def test_feeds_that_take_too_long_together_do_not_hide_what_was_read(
    ask: CallTool, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask("follow_feed", url=outside.publish("/good", OLD, "a"), name="Good")
    await ask("follow_feed", url=outside.publish("/slow", OLD, "a"), name="Slow")
    outside.publish("/good", NEW, "b")
    monkeypatch.setattr(feeds, "_ALL_SECONDS", 1.0)
    with outside.holding("/slow"):
        news = await ask("get_feed_news")
    assert [entry.feed for entry in news.entries] == ["Good", "Good"]
    assert "not read in time" in news.failed["Slow"]


async def test_following_twice_is_once_and_a_name_belongs_to_one(ask: CallTool, outside: Outside) -> None:
    url = outside.publish("/rss", OLD, "a")
    assert (await ask("follow_feed", url=url)).name == "Local news"
    assert "already" in (await ask("follow_feed", url=url)).message
    with pytest.raises(Conflict, match="Another feed"):
        await ask("follow_feed", url=outside.publish("/other", OLD, "a"), name="local NEWS")
    assert len((await ask("list_feeds")).feeds) == 1


async def test_a_feed_is_let_go_by_name(ask: CallTool, outside: Outside) -> None:
    await ask("follow_feed", url=outside.publish("/rss", OLD, "a"), name="News")
    await ask("unfollow_feed", name="news")
    assert (await ask("list_feeds")).feeds == []
    with pytest.raises(NotFound, match="No feed called"):
        await ask("unfollow_feed", name="news")


async def test_one_persons_feeds_are_not_anothers(ask: CallTool, outside: Outside) -> None:
    url = outside.publish("/rss", OLD, "a")
    enter_call(Call(user_id="anna"))
    await ask("follow_feed", url=url)
    enter_call(Call(user_id="ben"))
    assert (await ask("list_feeds")).feeds == []


async def test_a_list_that_can_not_be_read_is_put_aside(
    ask: CallTool, outside: Outside, everyday_config: EverydayConfig
) -> None:
    everyday_config.folder.mkdir(parents=True)
    (everyday_config.folder / "feeds.json").write_text('{"people": [')
    await ask("follow_feed", url=outside.publish("/rss", OLD, "a"))
    assert (everyday_config.folder / "feeds.broken.json").read_text() == '{"people": ['


BOMB = b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">' + b"".join(
    f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">'.replace("a-1", "a").encode() for n in range(9)
) + b'] ><rss version="2.0"><channel><title>&a8;</title></channel></rss>'  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>no feed</body></html>",
        b"\x00\xff" * 100,
        BOMB,
        BOMB.decode().encode("utf-16"),
    ],
)
async def test_what_is_no_feed_is_refused_in_a_sentence(ask: CallTool, outside: Outside, body: bytes) -> None:
    outside.feeds["/bad"] = ("x", body)
    with pytest.raises(InvalidArguments):
        await ask("read_feed", url=f"{outside.url}/bad")


@pytest.mark.parametrize("markup", ["<!--", "<a ", "<", "&", "</", "<![", "<script>", "<p>"])
async def test_markup_made_to_keep_a_parser_busy_is_read_in_no_time(
    ask: CallTool, outside: Outside, markup: str
) -> None:
    """Each of these took a parser minutes or hours; the test's own time limit is the bound."""
    whole = f"<rss version='2.0'><channel><item><title><![CDATA[Hi {markup * 200_000}]]></title></item></channel></rss>"
    outside.feeds["/busy"] = ("x", whole.encode())
    (entry,) = (await ask("read_feed", url=f"{outside.url}/busy")).entries
    assert entry.title.startswith("Hi")


async def test_a_feed_with_small_faults_is_read_and_a_large_wreck_is_not(ask: CallTool, outside: Outside) -> None:
    faulty = b"<rss version='2.0'><channel><item><title>Tom & Jerry&nbsp;</title></item></channel></rss>"
    outside.feeds["/faulty"] = ("x", faulty)
    assert (await ask("read_feed", url=f"{outside.url}/faulty")).entries[0].title == "Tom & Jerry"
    for wreck in (b"<rss version='2.0'>" + b"<a " * 200_000, b"<rss version='2.0'>" + b"<!--" * 1000):
        outside.feeds["/wreck"] = ("y", wreck)
        with pytest.raises(InvalidArguments, match="not well-formed"):
            await ask("read_feed", url=f"{outside.url}/wreck")


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<p>One</p><p>two &amp; three</p>", "One\ntwo & three"),
        ("a <!-- hidden --> b", "a b"),
        ("x<script>if (a < b) bad()</script>y<STYLE>z</style>", "xy"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<img src=x onerror=alert(1)>text", "text"),
        ("cut <a href=", "cut"),
        ("a\u202eb\x00c", "abc"),
        ("&lt;b&gt;", "<b>"),
    ],
)
def test_words_are_taken_out_of_markup(markup: str, words: str) -> None:
    assert html_to_words(markup, 100) == words


async def test_a_huge_feed_a_missing_one_and_a_failing_one_are_told_apart(
    ask: CallTool, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_reader, "MAX_BYTES", 1000)
    outside.feeds["/huge"] = ("x", b"<rss>" + b" " * 2000)
    expected: list[tuple[str, type[AnnabelleError]]] = [("/huge", TooLarge), ("/missing", NotFound)]
    for path, kind in expected:
        with pytest.raises(kind):
            await ask("read_feed", url=f"{outside.url}{path}")
    outside.status = 503
    with pytest.raises(Unavailable):
        await ask("read_feed", url=f"{outside.url}/any")
    outside.down = True
    with pytest.raises(Unavailable):
        await ask("read_feed", url=f"{outside.url}/any")


@pytest.mark.incident("I-15")
@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://[::1]/x", "http://2130706433/x", "http://localhost/x"])
async def test_a_feed_on_the_own_network_is_not_fetched(everyday_config: EverydayConfig, url: str) -> None:
    server = build(replace(everyday_config, private_hosts=""))
    with pytest.raises(NotAllowed):
        await server.tools["read_feed"].call({"url": url})


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a.example/", "javascript:alert(1)", "gopher://x/", "http:///x"]
)
async def test_only_web_addresses_are_feeds(ask: CallTool, url: str) -> None:
    with pytest.raises(InvalidArguments):
        await ask("read_feed", url=url)
