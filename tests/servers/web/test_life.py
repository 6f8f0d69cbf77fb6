"""When browsers start, whose they are, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from annabelle.core.errors import TooManyRequests, Unavailable
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.web import browser_launcher, browser_pool, config
from annabelle.servers.web.browser_launcher import prepare_profile, profile_folder
from servers.web.browsing import Web
from servers.web.pages import Site
from support.timing import seconds

MakeWeb = Callable[..., Web]


@pytest.fixture
def own_site(site: Site) -> Site:
    site.pages |= {
        "/": lambda _path: (200, {"Set-Cookie": "who=me; Max-Age=9999"}, "<title>Hello</title>"),
        "/cookie": lambda _path: f"<title>{'who=me' in site.heads[-1]}</title>",
    }
    return site


def _browser(profile: Path) -> psutil.Process:
    """The main process of the browser on a profile."""
    mine = [
        one for one in psutil.process_iter(["cmdline"]) if f"--user-data-dir={profile}" in (one.info["cmdline"] or [])
    ]
    return next(one for one in mine if not any(word.startswith("--type=") for word in one.info["cmdline"]))


def _processes(profile: Path) -> list[psutil.Process]:
    return [
        one
        for one in psutil.process_iter(["cmdline", "status"])
        if str(profile) in " ".join(one.info["cmdline"] or []) and one.info["status"] != psutil.STATUS_ZOMBIE
    ]


async def _as(agent: str, call: Callable[[], Awaitable[Any]]) -> Any:
    """A call made by this agent."""

    async def run() -> Any:
        enter_call(Call(agent_id=agent))
        return await call()

    return await asyncio.ensure_future(run())


@pytest.mark.req("SRV-BRW")
async def test_each_agent_keeps_its_own_logins_and_browsers_are_few(
    make_web: MakeWeb, own_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_pool, "MAX_BROWSERS", 1)
    web = make_web()
    profiles = web.house.config.profiles
    await _as("anna", lambda: web("navigate", url=f"{own_site.url}/"))
    other = await _as("Bert/../../etc", lambda: web("navigate", url=f"{own_site.url}/cookie"))
    assert other.title == "False"
    assert {path.name for path in profiles.iterdir()} == {"anna", profile_folder(profiles, "Bert/../../etc").name}
    assert not _processes(profiles / "anna"), "the one that was idle made room"
    web.house.config = replace(web.house.config, idle_seconds=0.2)
    again = await _as("anna", lambda: web("navigate", url=f"{own_site.url}/cookie"))
    assert again.title == "True"
    assert again.news == [], "that a browser was closed in between is nothing to tell"
    for _ in range(200):
        if not _processes(profiles):
            break  # closed because it was idle, without a call
        await asyncio.sleep(0.1)
    assert not _processes(profiles)


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_browser_that_is_about_to_start_counts_too(make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, enough = asyncio.Event(), asyncio.Event()

    async def launch(*_given: object) -> None:
        begun.set()
        await enough.wait()
        raise Unavailable("It did not start.")

    monkeypatch.setattr(browser_pool, "MAX_BROWSERS", 1)
    monkeypatch.setattr(browser_launcher.BrowserLauncher, "launch", launch)
    web = make_web()
    first = asyncio.ensure_future(_as("anna", lambda: web("tabs", action="list")))
    async with asyncio.timeout(seconds(10)):
        await begun.wait()
        with pytest.raises(TooManyRequests):
            await _as("bert", lambda: web("tabs", action="list"))
        enough.set()
        with pytest.raises(Unavailable, match="did not start"):
            await first


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_killed_browser_is_replaced_and_that_is_said(make_web: MakeWeb, own_site: Site) -> None:
    web = make_web()
    await web("navigate", url=f"{own_site.url}/")
    profile = profile_folder(web.house.config.profiles, "people")
    async with web.house.use_session() as session:
        ended = asyncio.Event()
        session.context.on("close", lambda _context: ended.set())
        _browser(profile).kill()
        async with asyncio.timeout(seconds(10)):
            await ended.wait()
    done = await web("navigate", url=f"{own_site.url}/cookie")
    assert done.title in ("True", "False"), "cookies are written now and then"
    assert "The browser had ended, so a new one was started; open the page again." in done.news
    assert (await web("close")).closed
    assert not (await web("close")).closed
    assert not _processes(profile)


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_killed_driver_is_started_again(make_web: MakeWeb, own_site: Site) -> None:
    web = make_web()
    await web("navigate", url=f"{own_site.url}/")
    profile = profile_folder(web.house.config.profiles, "people")
    drivers = [one for one in psutil.Process().children() if _browser(profile) in one.children()]
    assert len(drivers) == 1
    drivers[0].kill()
    with contextlib.suppress(Unavailable):  # the call that meets the end of the driver
        await web("navigate", url=f"{own_site.url}/")
    assert (await web("navigate", url=f"{own_site.url}/")).title == "Hello"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_cancelled_start_leaves_one_browser_that_the_next_call_uses(make_web: MakeWeb, own_site: Site) -> None:
    web = make_web()
    started = asyncio.Event()
    launch = browser_launcher.BrowserLauncher.launch

    async def watched(self: browser_launcher.BrowserLauncher, *arguments: object) -> object:
        started.set()
        return await launch(self, *arguments)  # pyright: ignore

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browser_launcher.BrowserLauncher, "launch", watched)
        first = asyncio.ensure_future(web("navigate", url=f"{own_site.url}/"))
        async with asyncio.timeout(seconds(10)):
            await started.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    assert (await web("navigate", url=f"{own_site.url}/")).title == "Hello"
    profile = profile_folder(web.house.config.profiles, "people")
    mains = [one for one in _processes(profile) if f"--user-data-dir={profile}" in one.info["cmdline"]]
    assert len([one for one in mains if not any(word.startswith("--type=") for word in one.info["cmdline"])]) == 1


@pytest.mark.req("SRV-BRW")
async def test_locks_of_a_browser_that_is_gone_are_cleared(tmp_path: Path) -> None:
    profile = tmp_path / "profiles" / "anna"
    profile.mkdir(parents=True)
    host = socket.gethostname()
    for owner in (f"{host}-99999999", f"{host}-{os.getpid()}", "another-host-1"):  # dead, somebody else's, moved here
        (profile / "SingletonLock").symlink_to(owner)
        (profile / "SingletonCookie").symlink_to("1234")
        await prepare_profile(profile)
        assert not list(profile.glob("Singleton*"))
    assert profile.parent.stat().st_mode & 0o077 == 0, "nobody else reads the logins"


@pytest.mark.req("SRV-BRW")
def test_no_two_agents_share_a_profile(tmp_path: Path) -> None:
    names = ["anna", "Anna", "anna/", "../anna", "", "a" * 500, "a" * 499, "ä", "\udcff", ".", "..", "con\x00"]
    found = [profile_folder(tmp_path, name) for name in names]
    assert len({str(path).lower() for path in found}) == len(names)
    assert all(path.parent == tmp_path for path in found)


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_without_a_browser_every_tool_says_how_to_get_one(make_web: MakeWeb, no_browser: None) -> None:
    web = make_web()
    for name, arguments in (("navigate", {"url": "about:blank"}), ("snapshot", {}), ("install", {})):
        with pytest.raises(Unavailable, match="No Chromium") as refused:
            await web(name, **arguments)
        assert "apt-get install chromium" in (refused.value.hint or "")
    ready = await web.server.tools["readiness"].call({})
    assert "apt-get install chromium" in (ready.missing or "")  # pyright: ignore


@pytest.mark.req("SRV-BRW")
async def test_the_browser_in_use_is_named_and_nothing_is_installed(make_web: MakeWeb, tmp_path: Path) -> None:
    web = make_web()
    assert (await web("install")).to_text().startswith("The browser is installed: chrom")
    assert (await web.server.tools["readiness"].call({})).missing is None  # pyright: ignore
    assert not web.house.config.profiles.exists(), "nothing was started for that"
    wrong = make_web(path=tmp_path / "nothing")
    with pytest.raises(Unavailable, match="BROWSER_PATH"):
        await wrong("install")


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_without_the_driver_it_is_said_what_to_install(
    make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(Unavailable) as refused:
        await make_web()("snapshot")
    assert refused.value.hint == "Run: pip install 'annabelle[browser]'"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_program_that_is_no_browser_is_one_sentence(make_web: MakeWeb, tmp_path: Path) -> None:
    fake = tmp_path / "chromium"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    with pytest.raises(Unavailable, match=r"could not be started\.") as refused:
        await make_web(path=fake)("snapshot")
    assert str(tmp_path) not in f"{refused.value.message}{refused.value.hint}"
    fake.write_text("#!/bin/sh\necho 'No usable sandbox! If you run an older kernel ...' >&2\nexit 3\n")
    with pytest.raises(Unavailable, match="forbids its sandbox"):
        await make_web(path=fake)("snapshot")
