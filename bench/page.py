"""How quickly the page opens, how soon a streamed word is seen, and what three open tabs cost the hub.

A real browser on a real hub with a scripted model. The page is files that the hub serves, so there is no process of its
own to start: what it costs is what the hub grows by while it is looked at.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median

import psutil
from playwright.sync_api import Page, sync_playwright
from sqlalchemy import create_engine

from measure import ROOT, Report

sys.path.insert(0, str(ROOT / "tests"))

from annabelle.store.database import sqlite_url
from browser.browsing import Visit, launch, visiting
from browser.sample_home import fill
from browser.test_accessibility import VIEWS
from browser.test_chat import add_many, say
from hub.hubs import HubProcess, fresh_home
from support.scripted_model import Reply, Rule, ScriptedServer

WORDS = 40
# Notes when a numbered word is in the page for the first time.
WATCH = """window.seen = {}; new MutationObserver(() => {
  const text = document.querySelector('.live')?.innerText ?? '';
  for (const [, number] of text.matchAll(/word(\\d+)\\./g)) window.seen[number] ??= Date.now();
}).observe(document, { subtree: true, childList: true, characterData: true });"""


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def usable(page: Page) -> None:
    page.get_by_label("Your message").wait_for(state="visible")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an hour of use in a tenth of the steps")
    quick = parser.parse_args().quick
    report = Report("page")
    with tempfile.TemporaryDirectory() as home, ScriptedServer() as model, sync_playwright() as playwright:
        hub = HubProcess(fresh_home(Path(home)), model.openai_url).start()
        browser = launch(playwright)
        try:
            fill(hub, model)
            process = psutil.Process(hub.pid)
            before = process.memory_info().rss / 1e6
            with visiting(browser, hub) as visit:
                open_page(report, visit)
                stream_words(report, visit, model)
                open_threads(report, visit)
                use_for_an_hour(report, visit, process, 30 if quick else 300)
            report.figures["memory_before_mb"] = before
            report.figures["memory_after_mb"] = process.memory_info().rss / 1e6
            report.within("memory that the page adds to the hub, MB", report.figures["memory_after_mb"] - before, 120)
        finally:
            browser.close()
            hub.end()
    report.print()


def open_page(report: Report, visit: Visit) -> None:
    """The first visit fetches every file; the second finds them in the browser's cache."""
    link = visit.hub.http.post("/sessions/links").json()["path"]
    visit.context.add_init_script("try { localStorage.setItem('annabelle-set-up', 'done') } catch {}")

    def first() -> None:
        visit.page.goto(f"{visit.hub.url}{link}")
        usable(visit.page)

    def again() -> None:
        visit.page.goto("about:blank")
        visit.page.goto(f"{visit.hub.url}/page/")
        usable(visit.page)

    report.within_time("from the link to a page that can be used", milliseconds(first), 4000)
    report.within_time("from a click to a page that can be used", median(milliseconds(again) for _ in range(5)), 2000)


def stream_words(report: Report, visit: Visit, model: ScriptedServer) -> None:
    """From the hub's own time of an event to the moment at which its word stands in the page."""
    text = " ".join(f"word{number}." for number in range(WORDS))
    model.rules(Rule(match="count", reply=Reply(text=text, chunks=WORDS, chunk_delay=0.1)))
    page = visit.page
    page.evaluate(WATCH)
    say(page, "count")
    page.locator(".message.agent:not(.live)").get_by_text("word39.").last.wait_for()
    seen: dict[str, float] = page.evaluate("window.seen")
    threads = visit.hub.http.get("/threads").json()["threads"]
    thread = next(one["id"] for one in threads if (one["channel"], one["chatId"]) == ("page", "main"))
    messages = visit.hub.http.get(f"/threads/{thread}/messages", params={"before": 2**53, "limit": 4}).json()[
        "messages"
    ]
    asked = [one["id"] for one in messages if one["source"] == "user"][-1]
    delays: list[float] = []
    shown, known = "", 0
    for event in visit.hub.http.get(f"/messages/{asked}/events").json()["events"]:
        if event["type"] != "text" or event["data"].get("final"):
            continue
        shown += event["data"]["text"]
        at = datetime.fromisoformat(event["at"]).timestamp() * 1000
        whole = shown.count(".")
        delays += [seen[str(number)] - at for number in range(known, whole) if str(number) in seen]
        known = whole
    report.figures["words_seen"] = len(seen)
    report.within_time("a streamed word is seen, p95", sorted(delays)[int(len(delays) * 0.95) - 1], 100)


def open_threads(report: Report, visit: Visit) -> None:
    """One of ten messages, and one of ten thousand."""
    times: dict[int, float] = {}
    for count in (10, 10_000):
        thread = str(visit.hub.say("hello", channel="page", chatId=f"of-{count}")["threadId"])
        with create_engine(sqlite_url(visit.hub.home.database_file)).begin() as conn:
            add_many(conn, thread, count)

        def look(thread: str = thread, count: int = count) -> None:
            visit.go(f"chat/{thread}")
            visit.page.get_by_text(f"Number {count}.", exact=True).wait_for()

        def leave_and_look() -> float:
            visit.go("inbox")
            return milliseconds(look)

        times[count] = median(leave_and_look() for _ in range(7))
    report.figures |= {"thread_of_10_ms": times[10], "thread_of_10000_ms": times[10_000]}
    report.within("opening a thread of 10,000 messages, ratio to one of 10", times[10_000] / times[10], 1.5)


def use_for_an_hour(report: Report, visit: Visit, process: psutil.Process, steps: int) -> None:
    """Three tabs that go from view to view, and talk."""
    tabs = [visit.page, visit.context.new_page(), visit.context.new_page()]
    for tab in tabs[1:]:
        tab.goto(f"{visit.hub.url}/page/")
        usable(tab)
    sizes: list[float] = []
    for step in range(steps):
        for offset, tab in enumerate(tabs):
            view = VIEWS[(step + offset) % len(VIEWS)]
            tab.evaluate("(hash) => { location.hash = hash }", f"#/{view}")
            tab.locator(f".view.{view} h1").wait_for(state="attached")
            if view == "chat":
                say(tab, f"step {step}")
        sizes.append(process.memory_info().rss / 1e6)
    third = len(sizes) // 3
    report.figures["tabs"] = len(tabs)
    report.within("memory of the hub at the end, ratio to a third of the way", sizes[-1] / sizes[third], 1.1)


if __name__ == "__main__":
    main()
