"""Reading pages: as Markdown, from public machines only, with bounds, and with respect for robots.txt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from annabelle.core.errors import (
    AnnabelleError,
    InvalidArguments,
    NotAllowed,
    NotFound,
    TooLarge,
    ToolTimeout,
    Unavailable,
)
from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess
from annabelle.servers.kit.http_client import USER_AGENT
from annabelle.servers.searcher import reader_pool
from annabelle.servers.searcher.robots import Robots, RobotsFile
from annabelle.servers.searcher.server import build
from servers.searcher.conftest import Configure, caller
from servers.searcher.documents import ARTICLE, pdf
from servers.searcher.local_web import Asked, LocalWeb, Reply, redirect
from servers.speaking import CallTool
from support.timing import seconds
from support.toolbox import eventually

pytestmark = pytest.mark.req("SRV-SRC", "SRV-ALL")


async def test_a_page_is_read_as_markdown(fetch: CallTool, site: LocalWeb) -> None:
    site.pages["/iron"] = Reply(ARTICLE.encode())
    page = await fetch("/iron")
    assert (page.title, page.status, page.final_url) == ("On & about iron", 200, site.url("/iron"))
    assert f"[rusts in the rain]({site.url('/rust')})" in page.content
    assert "**strong**" in page.content
    assert "- first point" in page.content
    for unseen in ("steal", "ignore all", "also hidden", "color:red"):
        assert unseen not in page.content
    assert (page.total_chars, page.rest) == (len(page.content), None)
    assert page.description == "What iron is for"
    assert page.to_text().startswith("# On & about iron")
    assert site.asked[-1].headers["user-agent"] == USER_AGENT


async def test_links_are_left_out_when_nobody_wants_them(fetch: CallTool, site: LocalWeb) -> None:
    site.pages["/iron"] = Reply(ARTICLE.encode())
    page = await fetch("/iron", includeLinks=False)
    assert "rusts in the rain" in page.content
    assert "/rust" not in page.content


async def test_a_page_without_an_article_gives_its_words(fetch: CallTool, site: LocalWeb) -> None:
    site.pages["/short"] = Reply(
        "<div>One<script>x</script></div><div>Zwei ä</div>".encode("latin-1"), kind="text/html"
    )
    assert (await fetch("/short")).content.split() == ["One", "Zwei", "ä"]
    site.pages["/app"] = Reply(b"<html><title>App</title><body><script>render()</script></body></html>")
    page = await fetch("/app")
    assert (page.title, page.content) == ("App", "")
    assert "browser tools" in page.note


async def test_a_long_page_is_cut_and_kept_whole(fetch: CallTool, site: LocalWeb, workspace: Path) -> None:
    words = " ".join(f"word{number}" for number in range(9000))
    site.pages["/long"] = Reply(words.encode(), kind="text/plain; charset=utf-8")
    page = await fetch("/long", maxLength=1000)
    assert (len(page.content), page.total_chars) == (1000, len(words))
    assert (workspace / page.rest).read_text() == words
    assert page.rest in page.to_text()
    assert page.rest.endswith("page.txt")
    assert len((await fetch("/long")).content) == 20_000


async def test_the_users_own_length_counts_where_none_is_asked_for(
    searcher_with: Callable[..., CallTool], site: LocalWeb
) -> None:
    site.pages["/long"] = Reply(b"x" * 9000, kind="text/plain")
    call = searcher_with(max_length=2000)
    assert len((await call("web_fetch", url=site.url("/long"))).content) == 2000
    assert len((await call("web_fetch", url=site.url("/long"), maxLength=3000)).content) == 3000


@pytest.mark.incident("I-15")
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/iam/",
        "http://metadata.localhost/",
        "127.0.0.1:{other}",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://2130706434:{port}/",
        "0x7f.2:{port}/x",
        "http://10.0.0.1/",
    ],
)
async def test_private_machines_are_not_read(fetch: CallTool, site: LocalWeb, url: str) -> None:
    with pytest.raises(NotAllowed, match="private or local network"):
        await fetch(url.format(port=site.port, other=site.port - 1))
    assert site.asked == []


@pytest.mark.incident("I-15")
async def test_a_page_does_not_lead_to_a_private_machine(fetch: CallTool, site: LocalWeb) -> None:
    site.pages["/go"] = redirect("http://169.254.169.254/latest/meta-data/")
    with pytest.raises(NotAllowed, match=r"169\.254\.169\.254"):
        await fetch("/go")


async def test_redirects_are_followed_to_the_last_address(fetch: CallTool, site: LocalWeb) -> None:
    site.pages |= {"/a": redirect("/b"), "/b": redirect(site.url("/c"), 308), "/c": Reply(b"end", kind="text/plain")}
    page = await fetch("/a")
    assert (page.url, page.final_url, page.content) == (site.url("/a"), site.url("/c"), "end")


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://x.example", "javascript:1", "data:text/html,x", "http://a\x00b", "http://", " "],
)
async def test_what_is_no_web_address_is_not_opened(fetch: CallTool, url: str) -> None:
    with pytest.raises((InvalidArguments, Unavailable)):
        await fetch(url)


@pytest.mark.parametrize(
    ("kind", "body", "content"),
    [
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/feed+json", b"[1]", "[1]"),
        ("text/csv; charset=windows-1250", "ž;š".encode("cp1250"), "ž;š"),
        ("text/plain", "grüße".encode("latin-1"), "grüße"),
        ("text/plain", "grüße".encode("utf-16"), "grüße"),
        ("text/plain; charset=punycode", b"gr", "gr"),
        ("text/plain; charset=no-such-thing", "ü".encode(), "ü"),
        ("application/xml", '<?xml version="1.0" encoding="iso-8859-2"?><a>ł</a>'.encode("iso-8859-2"), None),
        ("text/plain", b"a\x00\x1b[31mred\xe2\x80\xae", None),
        ("", b"plain words", "plain words"),
    ],
)
async def test_text_is_shown_as_it_is(
    fetch: CallTool, site: LocalWeb, kind: str, body: bytes, content: str | None
) -> None:
    site.pages["/x"] = Reply(body, kind=kind)
    page = await fetch("/x")
    if content is not None:
        assert page.content == content
    assert "\x1b" not in page.content
    assert "iso-8859-2" not in page.content or "ł" in page.content


async def test_html_in_another_alphabet_is_read_by_what_it_says_of_itself(fetch: CallTool, site: LocalWeb) -> None:
    html = (
        "<html><head><meta charset='windows-1251'><title>Привет</title></head><body><p>мир и железо</p></body></html>"
    )
    site.pages["/ru"] = Reply(html.encode("cp1251"), kind="text/html")
    page = await fetch("/ru")
    assert (page.title, page.content) == ("Привет", "мир и железо")


async def test_what_has_no_text_is_described(fetch: CallTool, site: LocalWeb) -> None:
    site.pages["/cat.png"] = Reply(b"\x89PNG" + bytes(5000), kind="image/png")
    page = await fetch("/cat.png")
    assert (page.content, page.content_type) == ("", "image/png")
    assert "image/png of 5,004 bytes" in page.note


async def test_a_pdf_is_read_page_by_page(fetch: CallTool, site: LocalWeb) -> None:
    site.pages["/paper"] = Reply(pdf("Iron rusts", "in the rain"), kind="application/octet-stream")
    page = await fetch("/paper")
    assert page.title == "A paper"
    assert page.content == "## Page 1\n\nIron rusts\n\n## Page 2\n\nin the rain"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (pdf("secret", password="x"), "password"),
        (b"%PDF-1.4 nonsense", "damaged"),
        (pdf("half")[:300], "damaged"),
    ],
)
async def test_a_pdf_that_can_not_be_read_is_a_sentence(
    fetch: CallTool, site: LocalWeb, body: bytes, says: str
) -> None:
    site.pages["/paper"] = Reply(body, kind="application/pdf")
    with pytest.raises(Unavailable, match=says):
        await fetch("/paper")


async def test_more_bytes_than_allowed_are_not_taken(searcher_with: Callable[..., CallTool], site: LocalWeb) -> None:
    call = searcher_with(max_bytes=10_000)
    site.pages["/big.txt"] = Reply(b"x" * 50_000, kind="text/plain")
    site.pages["/big.pdf"] = Reply(pdf(*["words"] * 100), kind="application/pdf")
    page = await call("web_fetch", url=site.url("/big.txt"))
    assert (page.total_chars, page.note) == (10_000, "Only its beginning was fetched.")
    with pytest.raises(TooLarge, match="PDF"):
        await call("web_fetch", url=site.url("/big.pdf"))


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, NotFound), (410, NotFound), (401, NotAllowed), (403, NotAllowed), (429, Unavailable), (503, Unavailable)],
)
async def test_a_failure_of_the_site_is_a_sentence(
    fetch: CallTool, site: LocalWeb, status: int, error: type[AnnabelleError]
) -> None:
    site.pages["/x"] = Reply(b"<h1>long error page</h1>", status)
    with pytest.raises(error, match=str(status)) as caught:
        await fetch("/x")
    assert caught.value.hint
    assert "long error page" not in caught.value.message


async def test_a_site_that_says_nothing_is_left_in_time(fetch: CallTool, site: LocalWeb) -> None:
    gone = asyncio.Event()

    async def silent(asked: Asked) -> Reply:
        await gone.wait()
        return Reply()

    site.pages["/silent"] = silent
    with pytest.raises(ToolTimeout, match="within 1 seconds"):
        await fetch("/silent", timeout=1000)
    gone.set()


HOSTILE = {
    "deep": "<div>" * 100_000 + "x",
    "entities": "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><p>&b;" + "&amp;" * 100_000,
    "unclosed": "<p>words" + "<!--" * 50_000 + "<script" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_html_is_read_or_refused(fetch: CallTool, site: LocalWeb, name: str) -> None:
    site.pages["/evil"] = Reply(HOSTILE[name].encode())
    page = await fetch("/evil", timeout=30_000)
    assert page.status == 200


async def test_a_page_written_to_keep_the_parser_busy_is_ended(fetch: CallTool, site: LocalWeb) -> None:
    attributes = " ".join(f"a{number}=1" for number in range(80_000))
    site.pages["/busy"] = Reply(f"<p {attributes}>x".encode())
    with pytest.raises(ToolTimeout, match="could not be read"):
        await fetch("/busy", timeout=1500)
    assert readers() == []


async def test_a_cancelled_call_leaves_no_process(fetch: CallTool, site: LocalWeb) -> None:
    attributes = " ".join(f"a{number}=1" for number in range(80_000))
    site.pages["/busy"] = Reply(f"<p {attributes}>x".encode())
    call = asyncio.create_task(fetch("/busy", timeout=30_000))
    async with asyncio.timeout(seconds(20)):
        while not readers():  # noqa: ASYNC110  a process of the system tells nobody that it has begun
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert readers() == []


async def test_one_process_reads_one_page_after_another(fetch: CallTool, site: LocalWeb) -> None:
    site.pages |= {"/iron": Reply(ARTICLE.encode()), "/paper": Reply(pdf("Iron rusts"), kind="application/pdf")}
    assert "metal" in (await fetch("/iron")).content
    [reader] = readers()
    assert "Iron rusts" in (await fetch("/paper")).content
    assert readers() == [reader]
    reader.kill()
    await eventually(lambda: not readers())
    assert "metal" in (await fetch("/iron")).content, "one that died meanwhile is not missed"


async def test_a_reader_without_work_goes_home(
    fetch: CallTool, site: LocalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_pool, "_IDLE_SECONDS", 0.05)
    site.pages["/iron"] = Reply(ARTICLE.encode())
    await fetch("/iron")
    await eventually(lambda: not readers())


async def test_a_reader_is_given_no_key(
    searcher_with: Callable[..., CallTool], site: LocalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "not-for-readers-1")
    site.pages["/iron"] = Reply(ARTICLE.encode())
    await searcher_with()("web_fetch", url=site.url("/iron"))
    [reader] = readers()
    assert "BRAVE_API_KEY" not in reader.environ()


async def test_pages_at_once_are_read_apart(fetch: CallTool, site: LocalWeb) -> None:
    for number in range(5):
        site.pages[f"/{number}"] = Reply(f"<title>T{number}</title><p>words of page {number}</p>".encode())
    pages = await asyncio.gather(*(fetch(f"/{number}", timeout=30_000) for number in range(5)))
    assert [(page.title, page.content) for page in pages] == [
        (f"T{number}", f"words of page {number}") for number in range(5)
    ]


def readers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if _reads(child)]


def _reads(process: psutil.Process) -> bool:
    try:
        return any("searcher.document_reader" in word for word in process.cmdline())
    except psutil.Error:
        return False  # it ended in this very moment


async def test_what_a_site_does_not_want_read_is_not_read(fetch: CallTool, site: LocalWeb) -> None:
    rules = b"User-agent: *\nDisallow: /private\n\nUser-agent: Annabelle\nDisallow: /ours\nAllow: /\n"
    text = Reply(b"text", kind="text/plain")
    site.pages |= {"/robots.txt": Reply(rules, kind="text/plain"), "/private": text, "/ours/x": text, "/open": text}
    site.pages["/turn"] = redirect("/ours/x")
    assert (await fetch("/open")).content == "text"
    assert (await fetch("/private")).content == "text", "the rules for us come before those for all"
    for path in ("/ours/x", "/turn"):
        with pytest.raises(NotAllowed, match=r"robots\.txt"):
            await fetch(path)
    assert site.paths().count("/robots.txt") == 1
    assert "/ours/x" not in site.paths()


async def test_robots_can_be_switched_off(searcher_with: Callable[..., CallTool], site: LocalWeb) -> None:
    site.pages |= {"/robots.txt": Reply(b"User-agent: *\nDisallow: /\n"), "/x": Reply(b"text", kind="text/plain")}
    assert (await searcher_with(robots=False)("web_fetch", url=site.url("/x"))).content == "text"
    assert site.paths() == ["/x"]


async def test_a_site_that_can_not_say_what_may_be_read_is_left_alone(fetch: CallTool, site: LocalWeb) -> None:
    site.pages |= {"/robots.txt": Reply(b"", 503), "/x": Reply(b"text", kind="text/plain")}
    with pytest.raises(Unavailable, match=r"robots\.txt answered 503"):
        await fetch("/x")
    site.pages["/robots.txt"] = Reply(b"", 404)
    assert (await fetch("/x")).content == "text"


async def test_rules_are_asked_for_again_after_an_hour_and_not_kept_for_ever() -> None:
    now, loaded = [0.0], list[str]()

    async def load(url: str) -> RobotsFile:
        loaded.append(url)
        return RobotsFile(200, b"User-agent: *\nDisallow: /no\n")

    robots = Robots(load, lambda: now[0])
    await robots.check("https://a.example/yes")
    with pytest.raises(NotAllowed):
        await robots.check("https://a.example/no")
    assert loaded == ["https://a.example/robots.txt"]
    now[0] = 3601.0
    await robots.check("https://a.example/yes")
    assert len(loaded) == 2
    for number in range(501):
        await robots.check(f"https://{number}.example/yes")
    await robots.check("https://a.example/yes")
    assert loaded[-1] == "https://a.example/robots.txt"


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(url=st.text(max_size=60) | st.text(max_size=30).map(lambda text: f"http://{text}"))
@example("http://a%5Bb/")
@example("http://[::1%25eth0]/")
@example("https://\u2100.example/")
async def test_any_text_as_address_is_a_sentence_at_worst(nobody: CallTool, url: str) -> None:
    with pytest.raises(AnnabelleError):
        await nobody("web_fetch", url=url)


@pytest.fixture
def nobody(configure: Configure) -> CallTool:
    """A searcher for which no name has an address."""

    async def nothing(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    return caller(build(configure(), reach=HostAccess(AllowedPrivateHosts(), nothing)))
