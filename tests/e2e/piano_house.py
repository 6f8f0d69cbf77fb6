"""A whole hub on a clock that the test moves, with real thinkers and a real searcher; only the model is scripted."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx2 as httpx
import psutil
from sqlalchemy import Connection

from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import load_settings
from annabelle.hub.boot import HubStart, RunningHub, assemble
from annabelle.hub.instance import bind_port
from annabelle.store import messages, skills
from annabelle.store.skills import StoredFire
from support.scripted_model import Call, Conversation, Reply, Script
from support.timing import seconds
from support.virtual_clock import VirtualClock

T = TypeVar("T")
Json = dict[str, Any]


@dataclass
class Session:
    """A hub from its start to its end, however that comes."""

    machine: RunningHub
    api: httpx.AsyncClient
    clock: VirtualClock
    stack: AsyncExitStack


class Day:
    """The person, the clock and the hub that they have at the moment."""

    def __init__(self, home: Home, begin: datetime) -> None:
        self.home, self.moment = home, begin
        self.starts = 0
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @property
    def hub(self):
        return self.session.machine.hub

    async def start(self) -> None:
        """As `boot` does."""
        self.starts += 1
        stack, clock = AsyncExitStack(), VirtualClock(self.moment)
        sock = stack.enter_context(bind_port(0))
        machine = await assemble(HubStart(self.home, load_settings(self.home), Redactor(), sock, None, clock), stack)
        for component in machine.components:
            await component.start()
        for component in machine.components:
            await component.resume()
        headers = {"X-Annabelle-Token": self.home.token_file.read_text().strip()}
        base_url = machine.hub.base.address
        api = httpx.AsyncClient(base_url=base_url, headers=headers, timeout=seconds(60))
        await stack.enter_async_context(api)
        self._session = Session(machine, api, clock, stack)

    async def stop(self) -> None:
        """In order: what runs is waited for."""
        session = self.session
        session.machine.hub.base.lifecycle.mark_stopping()
        session.machine.hub.conversations.gate.close()
        await session.machine.hub.conversations.turns.wait_all_over(seconds(20))
        await session.stack.aclose()
        self._session = None

    async def crash(self) -> None:
        """Power is cut: thinkers die in the middle of what they do, and the disk is as it was at this moment."""
        disk = self.home.root.with_name("as-it-was")
        for process in psutil.Process().children(recursive=True):
            if process.name().startswith("thinker-"):
                process.send_signal(signal.SIGKILL)
        # Not in a thread: a hub that went on meanwhile could end a workflow whose messages were copied before that.
        _copy(self.home.root, disk)
        self.session.machine.hub.base.lifecycle.mark_stopping()
        await self.session.stack.aclose()
        self._session = None
        await asyncio.to_thread(shutil.rmtree, self.home.root)
        disk.rename(self.home.root)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self.hub.storage.database.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await self.hub.storage.database.write(work)

    async def say(self, text: str, channel: str, chat_id: str) -> Json:
        """What came of a message, for somebody who reads the answer."""
        body = {"text": text, "channel": channel, "chatId": chat_id}
        answer = await self.session.api.post("/message", params={"wait": seconds(60)}, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["reply"]

    async def heard(self, thread_id: str) -> list[str]:
        """What the person was told in a chat."""
        path = f"/threads/{thread_id}/messages"
        listed = (await self.session.api.get(path, params={"limit": 1000})).json()["messages"]
        return [one["text"] for one in listed if one["type"] == "text" and one["source"] not in ("user", "decision")]

    async def fires(self) -> list[StoredFire]:
        """Of goals and the feed, oldest first."""
        found = await self.hub.services.skills.history(OWNER, None, 50_000)
        own = [one for one in found if re.match(r"Check-in|Follow-up|New notes|Heartbeat|\w+ feed$", one.name)]
        return sorted(own, key=lambda fire: fire.due_at)

    async def rest(self) -> None:
        """Until no turn and no fire is under way."""

        def is_busy(conn: Connection) -> bool:
            fires, due = skills.list_open_fires(conn), skills.next_due_at(conn)
            begins = due is not None and due <= self.session.clock.now()
            return begins or bool(messages.count_open(conn)) or any(one.state != "waiting" for one in fires)

        async with asyncio.timeout(seconds(60)):
            await self.session.clock.settle()
            while await self.read(is_busy):  # noqa: ASYNC110  rows change
                await asyncio.sleep(0.02)

    async def go_to(self, moment: datetime) -> None:
        """Let time come, and do not wait for what it brings."""
        self.moment = moment
        await self.session.clock.jump(moment)

    async def run_until(self, end: datetime, each: Callable[[datetime], None] = lambda _moment: None) -> None:
        """Through every moment at which a check-in or the feed is due; `each` is the world before it."""

        def next_due(conn: Connection) -> datetime:
            own = [one for one in skills.list_skills(conn, OWNER) if one.check_in is not None and one.enabled]
            return min([end, *(one.next_due for one in own if one.next_due is not None)])

        while self.moment < end:
            due = await self.read(next_due)
            each(due)
            await self.go_to(due)
            await self.rest()


def _copy(home: Path, to: Path) -> None:
    def leave_out(folder: str, names: list[str]) -> list[str]:
        """What is in a database's copy already, and sockets."""
        return [name for name in names if name.endswith(("-shm", "-wal")) or Path(folder, name).is_socket()]

    shutil.copytree(home, to, symlinks=True, ignore=leave_out, copy_function=_copy_file)


def _copy_file(source: str, target: str) -> None:
    with Path(source).open("rb") as file:
        is_database = file.read(16) == b"SQLite format 3\0"
    if not is_database:
        shutil.copy2(source, target)
        return
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


class PianoModel(Script):
    """Decides by what it reads: its instructions, the working material, what was said and what tools returned."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.held: Callable[[Conversation], bool] | None = None
        """Which requests are never answered."""

    def hold(self, held: Callable[[Conversation], bool]) -> None:
        self.reached.clear()
        self.held = held

    def answer(self, talk: Conversation) -> Reply:
        if self.held is not None and self.held(talk):
            self.reached.set()
            return Reply(hang=True)
        if not talk.tools:
            return Reply(text="They looked for a piano teacher.")
        for words, decide in _ROLES.items():
            if words in role_of(talk):
                return decide(talk.user_text, talk.results)
        raise AssertionError(f"nobody told the model what it is: {role_of(talk)}")


def role_of(talk: Conversation) -> str:
    return "\n".join(turn.text for turn in talk.turns if turn.kind == "system")


def _call(name: str, **arguments: object) -> Reply:
    return Reply(tool_calls=[Call(name=name, arguments=arguments)])


def _create(said: str, results: list[str]) -> Reply:
    if results:
        return Reply(text=f"{results[-1].split(' (')[0]}. I ask you on weekdays.")
    if "June" not in said:
        return Reply(text="By when, where do you stand, and when may I ask you how it goes?")
    return _call(
        "create_goal",
        title="Piano",
        description="Play one song at the wedding in June. A beginner.",
        instructions="Ask short questions.",
        learnings=["A beginner without a piano of their own."],
        tools=["searcher_web_search", "searcher_web_fetch", "searcher_news_search"],
        check_in={"frequency": "weekdays", "time": "08:30", "intent": "Ask how the practice goes."},
    )


def _look_after(said: str, results: list[str]) -> Reply:
    if "This is a check-in" not in said:
        return _talk(said, results)
    if "wrote notes" in said:
        if results:
            return Reply(text="I keep to the evenings.")
        learnt = re.search(r"practise (in the evening)", said)
        assert learnt, said
        return _call("manage_learning", action="save", content=f"The user practises {learnt[1]}.")
    assert "Ask how the practice goes." in said, said
    if not results:
        return _call("search_notes", query="teachers")
    teacher = re.search(r"[A-Z]\w+ Keller", results[-1])
    when = "Tonight" if "practises in the evening" in said else "Today"
    return Reply(text=f"{when}: twenty minutes. Did you call {teacher[0] if teacher else 'anybody'}?")


def _talk(said: str, results: list[str]) -> Reply:
    last = said.rsplit("</now>", 1)[-1]
    if "agree" in last:
        return Reply(text=f"You said: {results[0]}") if results else _call("search_agent_history", query="teacher")
    wanted = re.search(r"(teacher|song)(?!.*(?:teacher|song))", last, re.DOTALL)  # what was said last
    if wanted is None or results:
        return Reply(text="I am looking, and write down what I find.")
    instructions = f"Find one {wanted[1]} that fits."
    return _call("create_task", title=f"Find a {wanted[1]}", instructions=instructions)


def _research(said: str, results: list[str]) -> Reply:
    wanted = re.search(r"Find one (\w+) that fits", said)
    assert wanted, said
    if not results:
        return _call("searcher_web_search", query=f"piano {wanted[1]}s")
    if len(results) == 1:
        url = re.search(rf"http://\S+/{wanted[1]}s", results[0])
        assert url, results[0]
        return _call("searcher_web_fetch", url=url[0])
    found = re.search(r"We recommend (.+?)\.", results[1])
    assert found, results[1]
    return Reply(text=f"Of the {wanted[1]}s: {found[1]}.")


def _overview(said: str, results: list[str]) -> Reply:
    if "feed, which runs by itself" not in said:
        return Reply(text=f"Noted: {results[0]}") if results else _call("search_notes", query="teachers")
    if not results:
        return _call("searcher_news_search", query="piano")
    headlines = re.findall(r"Headline \d+ of the keys", results[0], re.IGNORECASE)
    if len(results) > 1 or not headlines:
        return Reply(text="")
    items = [{"kind": "discovery", "title": one, "content": "Read it at breakfast."} for one in headlines]
    return _call("generate_feed", items=items)


_ROLES: dict[str, Callable[[str, list[str]], Reply]] = {
    "You help the user to set up a goal": _create,
    "You look after one goal": _look_after,
    "You carry out one task": _research,
    "You know all goals": _overview,
}
