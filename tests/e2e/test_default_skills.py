"""The skills that come along, in a real hub with real mail, calendar, memory and search; only the model is scripted.

The hub's clock is moved by the test. It begins at the real time, because the mail servers have a clock of their own.
"""

from __future__ import annotations

import asyncio
import imaplib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from annabelle.core.connections import write_connection
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import load_settings
from annabelle.hub.boot import HubStart, assemble
from annabelle.hub.instance import bind_port, remove_run_file, write_run_file
from annabelle.hub.skills.skill_seeder import load_default_skills
from cli.typed import Keyboard, Typed
from hub.hubs import HubProcess
from servers.searcher.doubles import KEY, BraveDouble
from servers.searcher.local_web import local_web
from support.caldav_server import CalDavServer, caldav_server
from support.few_servers import only
from support.mail_servers import MailServers, start_mail_servers
from support.scripted_model import Call, Conversation, Reply, Script, ScriptedServer, plan_text
from support.timing import seconds
from support.virtual_clock import VirtualClock

Arguments = dict[str, Any]
HOUR = timedelta(hours=1)
EVENT = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Another program//EN
BEGIN:VEVENT
UID:{uid}
DTSTAMP:20261101T000000Z
DTSTART:{start:%Y%m%dT%H%M%SZ}
DTEND:{end:%Y%m%dT%H%M%SZ}
SUMMARY:{title}
END:VEVENT
END:VCALENDAR
"""


class RunModel(Script):
    """In the run of a skill it calls each tool it is offered once, and then tells what they found, if anything."""

    def __init__(self) -> None:
        super().__init__()
        self.arguments: dict[str, Arguments] = {}

    def answer(self, talk: Conversation) -> Reply:
        if "This is your skill" not in talk.user_text:
            return super().answer(talk)
        made = talk.results
        if len(made) < len(talk.tools):
            name = talk.tools[len(made)]
            return Reply(tool_calls=[Call(name=name, arguments=self.arguments.get(name, {}))])
        return Reply(text="\n".join(result for result in made if not result.startswith("No ")))


@dataclass
class Counterparts:
    """What mail and calendar hold, as others put it there."""

    mail: MailServers
    calendar: CalDavServer
    address: str = ""
    events: int = 0

    def connect_empty(self, home: Home) -> None:
        """As after `annabelle connect mail`, with a mailbox and a calendar in which nothing is."""
        self.address = self.mail.new_address()
        self.calendar.clear()
        self.calendar.make_calendar("home", "Home")
        dav = self.calendar.account()
        names = ("caldav_url", "caldav_username", "caldav_password")
        account = self.mail.account(self.address).model_copy(update={name: getattr(dav, name) for name in names})
        write_connection(home, "mail", account)

    def add_event(self, title: str, start: datetime, length: timedelta = HOUR / 2) -> None:
        self.events += 1
        uid = f"event-{self.events}"
        text = EVENT.format(uid=uid, start=start.astimezone(UTC), end=(start + length).astimezone(UTC), title=title)
        self.calendar.put("home", f"{uid}.ics", text)

    def deliver(self, subject: str) -> None:
        self.mail.deliver(self.address, self._letter(subject, "Bob Bauer <bob@example.org>", self.address, now()))

    def file_sent(self, subject: str, days_ago: int) -> None:
        """The person has sent this with another program."""
        at = (now() - timedelta(days=days_ago)).replace(hour=12)
        letter = self._letter(subject, self.address, "Bob Bauer <bob@example.org>", at)
        with imaplib.IMAP4("127.0.0.1", self.mail.imap_port, timeout=seconds(20)) as box:
            box.login(self.address, self.mail.password)
            assert box.append("Sent", r"(\Seen)", imaplib.Time2Internaldate(at), letter)[0] == "OK"

    def _letter(self, subject: str, sender: str, to: str, at: datetime) -> bytes:
        letter = EmailMessage(policy=SMTP)
        letter["From"], letter["To"], letter["Subject"], letter["Date"] = sender, to, subject, at
        letter.set_content("What do you think of it?")
        return letter.as_bytes()


@dataclass
class Day:
    """A running hub, a person at its terminal, and a clock."""

    home: Home
    clock: VirtualClock
    api: httpx.AsyncClient
    keyboard: Keyboard
    model: ScriptedServer
    mind: RunModel
    read: set[str] = field(default_factory=set[str])

    async def type(self, *arguments: str, stdin: str = "") -> Typed:
        return await asyncio.to_thread(self.keyboard, *arguments, stdin=stdin)

    async def skill(self, name: str) -> Arguments:
        return (await self.api.get(f"/skills/{name}")).json()

    async def next_due(self, name: str) -> datetime:
        return datetime.fromisoformat((await self.skill(name))["nextDue"])

    async def fire(self, name: str) -> str:
        """Let the time come at which it is due; the state in which that ended."""
        due = await self.next_due(name)
        self.model.clear()
        await self.clock.jump(due)
        async with asyncio.timeout(seconds(60)):
            while True:
                fires = (await self.api.get("/fires", params={"skill": name})).json()["fires"]
                if fires and datetime.fromisoformat(fires[0]["dueAt"]) == due and fires[0]["finishedAt"]:
                    return fires[0]["state"]
                await asyncio.sleep(0.02)

    async def told(self) -> str:
        """What was said in any chat since this was last asked."""
        threads = (await self.api.get("/threads")).json()["threads"]
        listed = [(await self.api.get(f"/threads/{one['id']}/messages")).json()["messages"] for one in threads]
        new = [one for messages in listed for one in messages if one["id"] not in self.read]
        self.read |= {one["id"] for one in new}
        return "\n".join(one["text"] for one in new)

    async def call(self, tool: str, **arguments: object) -> Arguments:
        """The person calls a tool."""
        answer = (await self.api.post("/tools/call", json={"name": tool, "arguments": arguments})).json()
        assert not answer["is_error"], answer
        return answer

    def offered(self) -> list[set[str]]:
        """The tools in each request that the model got since the last fire."""
        return [set(one.conversation.tools) for one in self.model.requests]


@asynccontextmanager
async def running_day(home: Home, patch: pytest.MonkeyPatch, *servers: str, **settings: str) -> AsyncGenerator[Day]:
    mind, clock = RunModel(), VirtualClock(now().replace(microsecond=0))
    quiet = {"USER_TIMEZONE": "Europe/Berlin", "SKILL_SPACING_SECONDS": "0", "FACT_EXTRACTION_ENABLED": "false"}
    with ScriptedServer(script=mind) as model, bind_port(0) as sock:
        keyboard = Keyboard(
            HubProcess(home, model.openai_url, **quiet, **only(*servers), **settings).environment, patch
        )
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, load_settings(home), Redactor(), sock, None, clock), stack)
            for component in machine.components:
                await component.start()
            for component in machine.components:
                await component.resume()
            base = machine.hub.base
            write_run_file(home, base.address, base.lifecycle.started_at)
            stack.callback(remove_run_file, home)
            api = httpx.AsyncClient(
                base_url=base.address,
                headers={"X-Annabelle-Token": home.token_file.read_text().strip()},
                timeout=seconds(60),
            )
            await stack.enter_async_context(api)
            yield Day(home, clock, api, keyboard, model, mind)
            base.lifecycle.mark_stopping()


@pytest.fixture
def counterparts(tmp_path: Path) -> Iterator[Counterparts]:
    folder = tmp_path / "caldav"
    folder.mkdir()
    with start_mail_servers() as mail, caldav_server(folder) as calendar:
        yield Counterparts(mail, calendar)


def nothing(_world: Counterparts, _due: datetime) -> None: ...


@dataclass(frozen=True)
class Default:
    """One of the skills that come along: what is there that does not concern it, and what is there that does."""

    name: str
    inside: Callable[[Counterparts, datetime], None]
    told: tuple[str, ...]
    beside: Callable[[Counterparts, datetime], None] = nothing
    window: tuple[timedelta, timedelta] = (timedelta(), 24 * HOUR)
    """Of the events that the model asks for, from the time at which the skill is due."""
    query: str = "is:unread"
    remembered: tuple[tuple[str, Arguments], ...] = ()
    """What the person has had remembered by then."""


def fill_morning(world: Counterparts, due: datetime) -> None:
    world.add_event("Dentist", due + 3 * HOUR)
    world.deliver("Train is late")


def fill_evening(world: Counterparts, due: datetime) -> None:
    world.add_event("Lunch with Ines", due - 5 * HOUR)
    world.add_event("Board at nine", due + 15 * HOUR)
    world.deliver("Invoice 4711")


def fill_week(world: Counterparts, due: datetime) -> None:
    world.add_event("Kick-off in Porto", due + 40 * HOUR)
    world.deliver("Offer for the roof")


def file_too_new_and_too_old(world: Counterparts, _due: datetime) -> None:
    for days in (1, 6):
        world.file_sent(f"{days} days old", days)


def fill_tomorrow(world: Counterparts, due: datetime) -> None:
    for number in range(6):
        world.add_event(f"Meeting {number}", due + (13 + number) * HOUR, HOUR)


DEFAULTS = (
    Default("Email Processor", lambda world, _: world.deliver("Answer by noon"), ("Bob Bauer", "Answer by noon")),
    Default("Morning Briefing", fill_morning, ("Dentist", "Train is late")),
    Default(
        "Evening Recap",
        fill_evening,
        ("Lunch with Ines", "Board at nine", "Invoice 4711"),
        window=(-12 * HOUR, 24 * HOUR),
    ),
    Default("Weekly Digest", fill_week, ("Kick-off in Porto", "Offer for the roof"), window=(timedelta(), 168 * HOUR)),
    Default(
        "Follow-up Tracker",
        lambda world, _: world.file_sent("Shall we meet in May?", days_ago=3),
        ("Shall we meet in May?",),
        beside=file_too_new_and_too_old,
        query="in:sent older_than:2d newer_than:4d",
    ),
    Default(
        "Pre-meeting Prep",
        lambda world, due: world.add_event("Talk with Olga", due + HOUR / 3),
        ("Talk with Olga",),
        beside=lambda world, due: world.add_event("Much later", due + 2.6 * HOUR),
        window=(timedelta(), HOUR / 2),
    ),
    Default(
        "Meeting Overload Warning",
        fill_tomorrow,
        tuple(f"Meeting {number}" for number in range(6)),
        beside=lambda world, due: world.add_event("The day after", due + 54 * HOUR),
        window=(4 * HOUR, 28 * HOUR),
    ),
    # The last one, because what it finds in memory stays there.
    Default(
        "Deadline Reminders",
        lambda world, due: world.add_event("Tax return is due", due + 20 * HOUR),
        ("Tax return is due", "The library books go back tomorrow", "Greenhouse"),
        window=(6 * HOUR, 30 * HOUR),
        remembered=(
            ("memory_store_fact", {"fact": "The library books go back tomorrow", "category": "decision"}),
            ("memory_create_project", {"name": "Greenhouse", "description": "The offers are due tomorrow"}),
        ),
    ),
)
KNOWN: dict[str, Arguments] = {str(one["name"]): one for one in load_default_skills()}


async def say_yes(day: Day, name: str) -> None:
    """The person reads what a skill may do, and says yes."""
    assert (await day.skill(name))["enabled"] is False, name
    said = await day.type("skills", "enable", name, stdin="y\n")
    assert said.code == 0, said
    assert KNOWN[name]["instructions"].strip() in said.out
    assert (await day.skill(name))["enabled"] is True, name


async def live_through(day: Day, world: Counterparts, one: Default) -> None:
    required = set(KNOWN[one.name]["required_tools"])
    world.connect_empty(day.home)
    await say_yes(day, one.name)
    # Nothing is there that concerns it.
    one.beside(world, await day.next_due(one.name))
    ask_about(day, one, await day.next_due(one.name))
    state = await day.fire(one.name)
    if "preflight" in KNOWN[one.name]:
        assert (one.name, state, day.offered()) == (one.name, "skipped", [])
    else:
        assert (one.name, state) == (one.name, "finished")
        assert day.offered() == [required] * (len(required) + 1), one.name
    assert await day.told() == "", one.name
    # Now it has something to do.
    due = await day.next_due(one.name)
    one.inside(world, due)
    for tool, arguments in one.remembered:
        await day.call(tool, **arguments)
    ask_about(day, one, due)
    assert (one.name, await day.fire(one.name)) == (one.name, "finished")
    assert day.offered() == [required] * (len(required) + 1), one.name
    told = await day.told()
    assert [words for words in one.told if words not in told] == [], (one.name, told)
    assert (await day.type("skills", "disable", one.name)).code == 0


def ask_about(day: Day, one: Default, due: datetime) -> None:
    begin, end = one.window
    day.mind.arguments = {
        "gmail_list_events": {"time_min": (due + begin).isoformat(), "time_max": (due + end).isoformat()},
        "gmail_list_emails": {"query": one.query},
        "gmail_get_new_emails": {"clear": True},
    }


# The mail server warns of passwords without encryption with each connection, which is meant.
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
@pytest.mark.req("SKL-05", "SKL-07", "SKL-12")
async def test_each_default_tells_what_mail_calendar_and_memory_hold_and_costs_nothing_if_there_is_nothing(
    counterparts: Counterparts, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {one.name for one in DEFAULTS} == {name for name in KNOWN if "instructions" in KNOWN[name]}
    async with running_day(home, monkeypatch, "gmail", "memory") as day:
        refused = await day.type("skills", "enable", "Email Processor", stdin="y\n")
        assert refused.code != 0
        assert (await day.skill("Email Processor"))["confirmedAt"] is None
        assert "No mail account is connected. Run: annabelle connect google" in refused.err
        for one in DEFAULTS:
            await live_through(day, counterparts, one)


QUESTION: Arguments = {"query": "Lisbon", "freshness": "pd"}
HEADLINES: Arguments = {
    "name": "Headlines",
    "instructions": "Tell me the headlines about Lisbon.",
    "trigger_config": {"schedule": "0 7 * * *"},
    "required_tools": ["searcher_news_search"],
    "preflight": {"tool": "searcher_news_search", "arguments": QUESTION},
}


@pytest.mark.req("SKL-01", "SKL-05")
async def test_a_skill_that_was_asked_for_in_a_chat_tells_the_news_and_costs_nothing_without(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the defaults reads the news, so the person asks for one that does."""
    async with local_web(host="127.0.0.1") as web:
        brave = BraveDouble(web)
        keys = {"BRAVE_API_KEY": KEY, "BRAVE_BASE_URL": web.url(""), "BRAVE_RATE_LIMIT_MS": "0"}
        async with running_day(home, monkeypatch, "memory", "searcher", **keys) as day:
            wait = {"wait": seconds(60)}
            text = plan_text([("memory_store_skill", HEADLINES)])
            asked = (await day.api.post("/message", params=wait, json={"text": text})).json()
            (question,) = asked["reply"]["metadata"]["approvals"]
            yes = (await day.api.post(f"/approvals/{question}", json={"verdict": "approve"})).json()
            await day.api.get(f"/messages/{yes['messageId']}", params=wait)
            await day.told()
            day.mind.arguments = {"searcher_news_search": QUESTION}
            assert (await day.fire("Headlines"), day.offered(), await day.told()) == ("skipped", [], "")
            brave.results["news"] = [
                {"title": "Tram 28 runs again", "url": "https://example.org/tram", "description": "After a year"}
            ]
            assert (await day.fire("Headlines"), day.offered()) == ("finished", [{"searcher_news_search"}] * 2)
            assert "Tram 28 runs again" in await day.told()
            assert {one.query["q"] for one in web.asked} == {"Lisbon"}
