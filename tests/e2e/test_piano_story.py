"""Somebody learns the piano: a goal from its first sentence to its archive, over two weeks and three restarts.

The hub, its thinkers and the searcher are real; time is virtual, and the model is scripted by what it reads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Connection

from annabelle.core.contract import TERMINAL
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.store import feed, goals, skills, tasks, threads
from annabelle.store.goals import NewNote, StoredGoal
from e2e.piano_house import Day, PianoModel, role_of
from hub.hubs import HubProcess
from servers.searcher.doubles import KEY, BraveDouble
from servers.searcher.local_web import LocalWeb, Reply, local_web
from support.few_servers import only
from support.scripted_model import Conversation, ScriptedServer
from support.timing import seconds

BERLIN = ZoneInfo("Europe/Berlin")
QUIET_SUNDAY = 28  # the day on which clocks change
CHECK_IN_DAYS = [23, 24, 25, 26, 29, 30, 31, 1, 2, 5]
ASKED = "Piano: Tonight: twenty minutes. Did you call Ann Keller?"


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """From Monday, 22 March 2027, to Monday, 5 April, and the days after it."""
    return datetime(2027, 3 if day >= 22 else 4, day, hour, minute, tzinfo=BERLIN)


@dataclass
class World:
    """What is in the web, as others put it there."""

    web: LocalWeb
    brave: BraveDouble
    model: ScriptedServer
    news: dict[date, str] = field(default_factory=dict[date, str])

    def __post_init__(self) -> None:
        for what, words in {"teachers": "Ann Keller, who teaches in the evening", "songs": "Clair de Lune"}.items():
            page = f"<html><body><main><h1>Piano</h1><p>We recommend {words}.</p></main></body></html>"
            self.web.pages[f"/{what}"] = Reply(page.encode())
        self.brave.results["web"] = [
            {"title": what, "url": self.web.url(f"/{what}"), "description": "Piano"} for what in ("teachers", "songs")
        ]

    def publish(self, moment: datetime) -> None:
        """Each day one headline and, in capitals, the one before it; on the quiet Sunday only that."""
        day = moment.astimezone(BERLIN).date()
        if day.day != QUIET_SUNDAY:
            self.news[day] = f"Headline {(day - at(22, 9).date()).days} of the keys"
        *_, last = self.news
        listed = [title if one == day else title.upper() for one, title in self.news.items()][-2:]
        self.brave.results["news"] = [
            {"title": title, "url": f"https://example.org/{number}", "description": ""}
            for number, title in enumerate(listed if last == day else listed[-1:])
        ]

    def searches(self, words: str) -> int:
        return sum(one.query.get("q") == words for one in self.web.asked)

    def model_calls(self, words: str) -> int:
        return sum(words in one.conversation.user_text for one in self.model.requests)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch, home: Home) -> AsyncIterator[tuple[World, PianoModel]]:
    mind = PianoModel()
    # Two weeks pass in less than a minute, which would be a spike.
    unwatched = {"agentId": "annabelle", "costControls": {"enabled": False}}
    home.agents_file.write_text(json.dumps({"agents": [unwatched]}))
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(local_web(host="127.0.0.1"))
        model = stack.enter_context(ScriptedServer(script=mind))
        settings = {
            "USER_TIMEZONE": "Europe/Berlin",
            "SKILL_SPACING_SECONDS": "0",
            "FACT_EXTRACTION_ENABLED": "false",
            "BRAVE_API_KEY": KEY,
            "BRAVE_BASE_URL": web.url(""),
            "BRAVE_RATE_LIMIT_MS": "0",
            "PRIVATE_HOSTS_ALLOWED": "127.0.0.1",
            "WEB_FETCH_ROBOTS": "false",
            **only("searcher"),
        }
        for name, value in HubProcess(home, model.openai_url, **settings).environment.items():
            monkeypatch.setenv(name, value)
        yield World(web, BraveDouble(web), model), mind


@dataclass
class Piano:
    """The goal of the story, once it is there."""

    day: Day
    goal: StoredGoal
    report: str
    """The chat in which the person set it up, and hears of it."""

    async def write_note(self, text: str) -> None:
        service = self.day.hub.services.goals
        note = NewNote(user_id=OWNER, goal_id=self.goal.id, title="When", content=text, written_by="user")

        def write(conn: Connection) -> None:
            service.after_note(conn, goals.add_note(conn, note, at=self.day.moment))

        await self.day.write(write)
        service.notify()

    async def say(self, text: str) -> str:
        return (await self.day.say(text, "goal", self.goal.id))["text"]

    async def told(self) -> list[str]:
        return await self.day.heard(self.report)

    async def notes(self) -> list[tuple[str, str, str]]:
        found = await self.day.read(lambda conn: goals.list_notes(conn, OWNER, self.goal.id))
        return [(one.title, one.content, one.written_by) for one in reversed(found)]

    async def task_states(self) -> list[tuple[str, str]]:
        found = await self.day.read(lambda conn: tasks.list_tasks(conn, OWNER, goal_id=self.goal.id))
        return sorted((one.name, one.state) for one in found)

    async def check_ins(self, name: str) -> list[datetime]:
        fires = [one for one in await self.day.fires() if one.name == name]
        assert not [one for one in fires if one.state != "finished"]
        return [one.due_at.astimezone(BERLIN) for one in fires]


async def set_up(day: Day) -> Piano:
    """Guided creation: two questions, a proposal and the person's yes."""
    asked = await day.say("I want to learn the piano.", "goal_creation", "piano")
    assert asked["text"].startswith("By when")
    answer = "One song at a wedding in June; I begin. Weekdays at half past eight."
    proposed = await day.say(answer, "goal_creation", "piano")
    (question,) = proposed["metadata"]["approvals"]
    assert await day.read(lambda conn: goals.list_goals(conn, OWNER)) == [], "nothing is there before the yes"
    api = day.session.api
    yes = (await api.post(f"/approvals/{question}", json={"verdict": "approve"})).json()
    done = await api.get(f"/messages/{yes['messageId']}", params={"wait": seconds(60)})
    assert done.json()["reply"]["text"] == "The goal “Piano” is set up. I ask you on weekdays."
    (goal,) = await day.read(lambda conn: goals.list_goals(conn, OWNER))
    assert "Play one song" in goal.description
    learnt = await day.read(lambda conn: goals.list_learnings(conn, goal.id))
    assert [one.content for one in learnt] == ["A beginner without a piano of their own."]
    await day.hub.services.goals.set_feed_times(OWNER, {"Afternoon": None, "Evening": None})
    # A turn begins by the real clock: by the virtual one it would seem to hang, and be stopped.
    for skill in ("Heartbeat: Piano", "Agent Health"):
        off = await api.post(f"/skills/{skill}/switch", json={"enabled": False})
        assert off.is_success, off.text
    listed = (await api.get("/threads")).json()["threads"]
    report = next(one["id"] for one in listed if one["channel"] == TERMINAL)  # nobody looks into the guided chat again
    return Piano(day, goal, report)


async def until_held(mind: PianoModel) -> None:
    assert await asyncio.to_thread(mind.reached.wait, seconds(60)), "the model was not asked"


@pytest.mark.req("AGE-02", "AGE-08", "AGE-09", "AGE-12")
@pytest.mark.timeout(180)
async def test_a_goal_lives_for_two_weeks_and_three_restarts_and_nothing_is_lost_or_doubled(
    world: tuple[World, PianoModel], home: Home
) -> None:
    outside, mind = world
    day = Day(home, at(22, 9))
    await day.start()
    try:
        piano = await set_up(day)
        await research_a_teacher(piano, outside)
        await note_over_a_clean_restart(piano)
        await day.run_until(at(25, 12), outside.publish)
        await research_through_a_crash(piano, outside, mind)
        await day.run_until(at(31, 8, 15), outside.publish)
        await check_in_through_a_crash(piano, mind)
        await day.run_until(at(5, 9), outside.publish)
        await judge_two_weeks(piano, outside)
        await search_what_was_archived(piano)
        await archive_the_goal(piano, outside)
        assert day.starts == 4
    finally:
        await day.stop()


async def research_a_teacher(piano: Piano, world: World) -> None:
    assert await piano.say("Find me a teacher.") == "I am looking, and write down what I find."
    await piano.day.rest()
    assert await piano.task_states() == [("Find a teacher", "completed")]
    found = "Of the teachers: Ann Keller, who teaches in the evening."
    assert await piano.notes() == [("Find a teacher", found, "agent")]
    assert (await piano.told())[-1] == f"Piano: The task “Find a teacher” is done.\n\n{found}"
    assert world.web.paths().count("/teachers") == 1


async def note_over_a_clean_restart(piano: Piano) -> None:
    """The person's note, five minutes, a restart, and ten minutes more."""
    day, before = piano.day, len(await piano.told())
    await piano.write_note("I can practise in the evening.")
    await day.go_to(day.moment + timedelta(minutes=5))
    await day.stop()
    await day.start()
    await day.run_until(at(22, 9, 14))
    assert len(await piano.told()) == before
    await day.run_until(at(22, 9, 16))
    assert (await piano.told())[before:] == ["Piano: I keep to the evenings."]
    assert await piano.check_ins("New notes: Piano") == [at(22, 9, 15)]
    learnt = await day.read(lambda conn: goals.list_learnings(conn, piano.goal.id))
    assert learnt[-1].content == "The user practises in the evening."


async def research_through_a_crash(piano: Piano, world: World, mind: PianoModel) -> None:
    """Power is cut between the search and the page that it found."""

    def has_searched(talk: Conversation) -> bool:
        return "You carry out one task" in role_of(talk) and len(talk.results) == 1

    mind.hold(has_searched)
    assert await piano.say("And which song?") == "I am looking, and write down what I find."
    await until_held(mind)
    await piano.day.crash()
    mind.held = None
    await piano.day.start()
    await piano.day.rest()
    assert await piano.task_states() == [("Find a song", "completed"), ("Find a teacher", "completed")]
    assert sorted(title for title, _, _ in await piano.notes()) == ["Find a song", "Find a teacher", "When"]
    assert world.searches("piano songs") == 1
    assert world.web.paths().count("/songs") == 1


async def check_in_through_a_crash(piano: Piano, mind: PianoModel) -> None:
    """Power is cut while the model thinks about what to say."""
    before = (await piano.told()).count(ASKED)
    mind.hold(lambda talk: "Ask how the practice goes." in talk.user_text and len(talk.results) == 1)
    await piano.day.go_to(at(31, 8, 30))
    await until_held(mind)
    await piano.day.crash()
    mind.held = None
    await piano.day.start()
    await piano.day.rest()
    assert (await piano.told()).count(ASKED) == before + 1


async def judge_two_weeks(piano: Piano, world: World) -> None:
    day = piano.day
    assert await piano.check_ins("Check-in: Piano") == [at(number, 8, 30) for number in CHECK_IN_DAYS]
    assert await piano.check_ins("Heartbeat: Piano") == [], "it was switched off"
    assert await piano.check_ins("New notes: Piano") == [at(22, 9, 15)]
    mornings = await piano.check_ins("Morning feed")
    assert mornings == [at(number, 8) for number in [*range(23, 32), *range(1, 6)]]
    assert {one.name for one in await day.fires()} == {"Check-in: Piano", "New notes: Piano", "Morning feed"}
    told = await piano.told()
    headlines = [f"Headline {number} of the keys" for number in range(1, 15) if number != QUIET_SUNDAY - 22]
    items = await day.read(lambda conn: feed.list_feed(conn, OWNER))
    assert [one.title for one in reversed(items)] == headlines
    assert [one for one in told if "of the keys" in one.casefold()] == [
        f"{title}\nRead it at breakfast." for title in headlines
    ]
    assert told.count(ASKED) == len(CHECK_IN_DAYS)
    beside = [one for one in told if one != ASKED and "of the keys" not in one.casefold()]
    assert [one.splitlines()[0] for one in beside] == [
        "Piano: The task “Find a teacher” is done.",
        "Piano: I keep to the evenings.",
        "Piano: The task “Find a song” is done.",
    ]
    assert world.searches("piano") == len(mornings)
    # A look into the notes and an answer; the one that was cut off was asked for again, and the look was not.
    assert world.model_calls("Ask how the practice goes.") == 2 * len(CHECK_IN_DAYS) + 1
    assert (await day.read(lambda conn: goals.get_goal(conn, piano.goal.id, OWNER))).state == "waiting"


async def search_what_was_archived(piano: Piano) -> None:
    """The conversation is put away, and found again."""

    def own_thread(conn: Connection) -> str:
        return next(one.id for one in threads.list_threads(conn, OWNER) if one.chat_id == piano.goal.id)

    thread_id = await piano.day.read(own_thread)
    before = await piano.day.heard(thread_id)
    cleared = await piano.day.session.api.post(f"/threads/{thread_id}/clear")
    assert cleared.is_success, cleared.text
    answer = await piano.say("What did we agree on?")
    assert "They looked for a piano teacher." in answer
    assert "Find me a teacher." in answer
    assert await piano.day.heard(thread_id) == [*before, answer], "what the person sees stays"


async def archive_the_goal(piano: Piano, world: World) -> None:
    """Nothing comes of it any more, and its notes are still found."""
    day, before = piano.day, await piano.told()
    await day.hub.services.goals.archive(piano.goal.id, OWNER)
    body = {"text": "Hello?", "channel": "goal", "chatId": piano.goal.id}
    assert (await day.session.api.post("/message", json=body)).status_code == 409
    await day.run_until(at(8, 12), world.publish)
    assert await piano.told() == before
    assert len(await piano.check_ins("Check-in: Piano")) == len(CHECK_IN_DAYS)
    answer = (await day.say("Which teacher was it?", "user_agent", OWNER))["text"]
    assert "Ann Keller" in answer
    off = await day.read(lambda conn: skills.list_check_ins(conn, piano.goal.id))
    assert [one.next_due for one in off] == [None] * len(off)
