"""A hub without servers, with goals in it: the test moves its clock and plays its thinker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sqlalchemy import Connection

from annabelle.core.contract import TurnBrief
from annabelle.core.home import Home
from annabelle.core.messages import GOALS, OWNER
from annabelle.core.tools import JsonObject
from annabelle.hub.goals.goal_service import GoalService
from annabelle.store import goals, messages, skills, tasks, threads
from annabelle.store.goals import NewGoal, StoredGoal
from annabelle.store.skills import StoredSkill
from annabelle.store.tasks import StoredTask
from hub.skills.house import House, open_house
from support.timing import seconds
from support.virtual_clock import VirtualClock

T = TypeVar("T")


class GoalHouse:
    """`house` has the clock, the thinker and its tools `look_around`, `read_inbox` and `send_letter`."""

    def __init__(self, house: House) -> None:
        self.house, self.clock, self.thinker = house, house.clock, house.thinker
        self.hub = house.machine.hub
        self.service: GoalService = self.hub.services.goals

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self.hub.storage.database.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await self.hub.storage.database.write(work)

    async def add(self, title: str = "Piano", user_id: str = OWNER, **given: object) -> StoredGoal:
        def chat(conn: Connection) -> str:
            return threads.find_or_create_thread(
                conn, channel="api", chat_id="main", user_id=user_id, agent_id="annabelle"
            ).id

        check_in = given.pop("check_in", None)
        new = NewGoal(
            **{
                "user_id": user_id,
                "agent_id": "annabelle",
                "title": title,
                "description": "Play a song in June.",
                "tools": ["look_around", "read_inbox"],
                "thread_id": await self.write(chat),
                **given,
            }  # type: ignore[arg-type]
        )
        return await self.service.create(new, check_in=check_in)  # type: ignore[arg-type]

    def play(self, plan: Callable[[TurnBrief], JsonObject]) -> None:
        """What the model does in each turn: `calls` and what it says then."""
        self.thinker.plan = plan

    async def say(self, goal: StoredGoal, text: str = "hello") -> None:
        await self.service.say(goal, text)
        await self.rest()

    async def rest(self) -> None:
        """Until no turn runs or waits."""

        def busy(conn: Connection) -> bool:
            return bool(messages.count_open(conn))

        async with asyncio.timeout(seconds(60)):
            while await self.read(busy):  # noqa: ASYNC110  rows change
                await asyncio.sleep(0.01)
        await self.house.ended()

    async def goal(self, goal: StoredGoal) -> StoredGoal:
        return await self.read(lambda conn: goals.get_goal(conn, goal.id, goal.user_id))

    async def tasks(self, goal: StoredGoal) -> list[StoredTask]:
        return await self.read(lambda conn: tasks.list_tasks(conn, goal.user_id, goal_id=goal.id))

    async def notes(self, goal: StoredGoal) -> list[goals.StoredNote]:
        return await self.read(lambda conn: goals.list_notes(conn, goal.user_id, goal.id))

    async def check_in(self, goal: StoredGoal, sort: str) -> StoredSkill | None:
        return await self.read(lambda conn: skills.find_check_in(conn, goal.user_id, sort, goal.id))

    async def heard(self) -> list[str]:
        """What the person was told in their chat."""

        def load(conn: Connection) -> list[str]:
            chats = [one for one in threads.list_threads(conn, OWNER) if one.channel == "api"]
            return [one.content for chat in chats for one in messages.list_messages(conn, chat.id, OWNER, limit=1000)]

        return await self.read(load)

    async def in_goal(self, goal: StoredGoal) -> list[str]:
        """What stands in the goal's own thread."""

        def load(conn: Connection) -> list[str]:
            chats = [one for one in threads.list_threads(conn, goal.user_id) if one.chat_id == goal.id]
            found = [one for chat in chats for one in messages.list_messages(conn, chat.id, goal.user_id, limit=1000)]
            return [one.content for one in found if chats[0].channel == GOALS]

        return await self.read(load)


def call(name: str, **arguments: object) -> JsonObject:
    return {"name": name, "arguments": arguments}


@asynccontextmanager
async def open_goal_house(home: Home, clock: VirtualClock, **more: object) -> AsyncGenerator[GoalHouse]:
    async with open_house(home, clock, **more) as made:
        yield GoalHouse(made)
