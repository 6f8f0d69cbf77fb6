"""A real hub or thinker that is killed while a goal's task is made, carried out or ended, or while a check-in is due:
after the restart there is one task, one note of each, and one message for the person (AGE-03, AGE-08, DUR-01).
"""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.core.messages import OWNER, now
from annabelle.hub.failpoints import GOAL_FAILPOINTS
from annabelle.store import skills
from annabelle.store.engine import make_engine, sqlite_url
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import Conversation, Reply, Script, ScriptedServer, plan_text
from support.timing import seconds

GOAL, TASK = "You look after one goal", "You carry out one task"
ASKED = "How is it going?"


class ArmingModel(Script):
    """Follows the plan in what it reads, and arms a failpoint once it is asked in a certain phase of the work."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._when: Callable[[Conversation], bool] = lambda _talk: False
        self._point = ""

    def arm(self, point: str, role: str, results: int) -> None:
        """At the request of an agent of this role that has so many results."""

        def is_reached(talk: Conversation) -> bool:
            told = "\n".join(turn.text for turn in talk.turns if turn.kind == "system")
            return role in told and len(talk.results) == results

        self._when, self._point = is_reached, point

    def answer(self, talk: Conversation) -> Reply:
        if self._point and self._when(talk):
            (self.folder / self._point).touch()
            self._point = ""
        return super().answer(talk)


@dataclass
class Crashes:
    """A hub with a goal, and what stands in its database."""

    hub: HubProcess
    mind: ArmingModel
    goal_id: str = ""
    report: str = ""
    rounds: list[str] = field(default_factory=list[str])

    def set_up(self) -> None:
        """A goal with a check-in that writes a note and asks, on a day that is not soon."""
        note = ("create_note", {"title": "Diary", "content": "Looked at it."})
        day = f"{now() + timedelta(days=3):%A}".casefold()
        check_in = {"frequency": "weekly", "day": day, "time": "03:00", "intent": plan_text([note], ASKED)}
        goal = {"title": "Piano", "description": "Play a song.", "tools": ["get_status"], "check_in": check_in}
        made = self.hub.say(plan_text([("create_goal", goal)]))
        for question in self.hub.http.get("/approvals").json()["approvals"]:
            self.hub.http.post(f"/approvals/{question['id']}", json={"verdict": "approve"}).raise_for_status()
        self.report = str(made["threadId"])
        ((self.goal_id,),) = wait_for(lambda: self.rows("SELECT id FROM goals"), "the goal")

    def rows(self, query: str, *values: str) -> list[tuple[str, ...]]:
        file = self.hub.home.database_file
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=seconds(30))) as connection:
            return connection.execute(query, values).fetchall()

    def ask(self, point: str) -> str:
        """Have the goal hand a task on; returns its name. Sent again after a crash, it is the same message."""
        name = f"{len(self.rounds)} {point}"
        self.rounds.append(name)
        work = plan_text(
            [("emit_progress", {"message": name}), ("create_note", {"title": f"Source {name}", "content": "x"})],
            say=f"Found {name}.",
        )
        text = plan_text([("create_task", {"title": name, "instructions": work})], say=f"On it: {name}.")
        said = {"channel": "goal", "chatId": self.goal_id, "externalId": name}
        with contextlib.suppress(httpx.HTTPError):
            self.hub.say(text, wait=0, **said)
        self.die_and_restart(point)
        answer = self.hub.say(text, **said)
        assert answer["state"] == "done", answer
        return name

    def die_and_restart(self, point: str) -> None:
        """The hub is started again; a thinker by the hub."""
        if point.startswith("thinker."):
            wait_for(lambda: list(self.mind.folder.glob(f"{point}.hit-*")), f"the death at {point}", 60)
            next(self.mind.folder.glob(f"{point}.hit-*")).unlink()
        else:
            assert self.hub.wait(60) == -signal.SIGKILL, f"{point} was not reached"
            self.hub.start()

    def told(self, thread_id: str) -> list[str]:
        path = f"/threads/{thread_id}/messages"
        listed = self.hub.http.get(path, params={"limit": 1000}).json()["messages"]
        return [one["text"] for one in listed if one["source"] not in ("user", "decision")]

    def expect_once(self, name: str) -> None:
        """One task, its two notes, and one message where the person hears of it and in the goal's own thread."""

        def is_over() -> bool:
            at_work = "SELECT id FROM tasks WHERE name = ? AND state IN ('active', 'paused')"
            unfinished = "SELECT id FROM messages WHERE state IN ('queued', 'running')"
            return not self.rows(at_work, name) and not self.rows(unfinished)

        wait_for(is_over, f"the end of {name}", 60)
        assert self.rows("SELECT state FROM tasks WHERE name = ?", name) == [("completed",)]
        titles = self.rows("SELECT title FROM goal_notes WHERE title IN (?, ?)", name, f"Source {name}")
        assert sorted(titles) == sorted([(name,), (f"Source {name}",)])
        done = f"The task “{name}” is done.\n\nFound {name}."
        assert self.told(self.report).count(f"Piano: {done}") == 1
        ((own,),) = self.rows("SELECT id FROM threads WHERE chat_id = ?", self.goal_id)
        assert self.told(own).count(done) == 1
        assert self.told(own).count(f"On it: {name}.") == 1
        assert self.rows("SELECT state FROM goals") == [("waiting",)]

    def expect_all_once(self) -> None:
        """Another crash later, nothing has come to it."""
        self.hub.kill()
        self.hub.start()
        for name in self.rounds:
            self.expect_once(name)
        assert self.rows("SELECT count(*) FROM tasks") == [(len(self.rounds),)]
        assert self.rows("SELECT count(*) FROM goal_notes") == [(2 * len(self.rounds),)]


@pytest.fixture
def crashes(home: Home, tmp_path: Path) -> Iterator[Crashes]:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    mind = ArmingModel(folder)
    # So much in so short a time would be a spike.
    unwatched = {"agentId": "annabelle", "costControls": {"enabled": False}}
    home.agents_file.write_text(json.dumps({"agents": [unwatched]}))
    with ScriptedServer(script=mind) as model:
        settings = {"ANNABELLE_FAILPOINTS": str(folder), "SKILL_SPACING_SECONDS": "0", **only()}
        made = Crashes(HubProcess(home, model.openai_url, **settings).start(), mind)
        made.set_up()
        yield made
        made.hub.end()


CREATION = (
    "hub.before_call",
    *GOAL_FAILPOINTS,
    "toolbox.before_result_recorded",
    "hub.after_call",
    "thinker.before_tool",
    "thinker.after_tool",
)
NOTE = (
    "toolbox.before_dispatch",
    "toolbox.before_result_recorded",
    "toolbox.after_result_recorded",
    "thinker.before_tool",
    "thinker.after_tool",
)
END = (
    "hub.after_turn",
    "hub.before_deliver",
    "hub.after_deliver",
    "hub.after_release",
    "thinker.before_session",
    "thinker.after_turn",
)


@pytest.mark.req("AGE-03", "AGE-05", "DUR-01")
@pytest.mark.timeout(600)
def test_a_task_is_made_carried_out_noted_and_ended_once_whoever_is_killed_meanwhile(crashes: Crashes) -> None:
    moments = [(point, GOAL, 0) for point in CREATION]
    # The goal's own turn is past the begin of a turn by then, so the next one to reach it is the task's.
    moments += [(point, GOAL, 0) for point in ("hub.before_turn", "thinker.after_accept")]
    moments += [(point, TASK, 0) for point in ("hub.during_turn", "thinker.after_model")]
    moments += [(point, TASK, 1) for point in NOTE] + [(point, TASK, 2) for point in END]
    for point, role, results in moments:
        crashes.mind.arm(point, role, results)
        crashes.expect_once(crashes.ask(point))
    crashes.expect_all_once()


CHECK_IN = (
    "hub.after_due",
    "hub.after_fire_begun",
    "hub.after_fire_work",
    "hub.before_turn",
    "hub.before_deliver",
    "hub.after_deliver",
    "thinker.after_accept",
    "thinker.after_tool",
    "thinker.after_turn",
)


def make_due(hub: HubProcess) -> None:
    """The time of the check-in comes, and the timer looks for it."""
    engine = make_engine(sqlite_url(hub.home.database_file), pool_size=1)
    with engine.begin() as conn:
        (check_in,) = [one for one in skills.list_skills(conn, OWNER) if one.check_in == "recurring"]
        skills.change_skill(conn, check_in.id, {"next_due": now() - timedelta(seconds=1)})
    engine.dispose()
    with contextlib.suppress(httpx.HTTPError):  # it may die of it
        hub.http.post("/skills/Nightly Backup/switch", json={"enabled": True})


@pytest.mark.req("AGE-08", "DUR-01")
@pytest.mark.timeout(400)
def test_a_check_in_that_is_due_comes_once_whoever_is_killed_meanwhile(crashes: Crashes) -> None:
    name = "Check-in: Piano"
    for count, point in enumerate(CHECK_IN, 1):
        (crashes.mind.folder / point).touch()
        make_due(crashes.hub)
        crashes.die_and_restart(point)

        def is_over(count: int = count) -> bool:
            states = crashes.rows("SELECT state FROM fires WHERE name = ?", name)
            return states == [("finished",)] * count

        wait_for(is_over, f"the end after {point}", 60)
        assert crashes.told(crashes.report).count(f"Piano: {ASKED}") == count, point
        assert crashes.rows("SELECT title FROM goal_notes") == [("Diary",)] * count, point
    assert crashes.rows("SELECT state FROM goals") == [("waiting",)]
    assert crashes.rows("SELECT id FROM tasks") == []
