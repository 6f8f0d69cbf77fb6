"""`/feed` and `/user-agent`: what the agent that knows all goals of a person brings, and when (THR-03, AGE-09)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import ConfigDict, Field
from sqlalchemy import Connection

from annabelle.core.messages import USER_AGENT
from annabelle.core.trust import Trust
from annabelle.hub.api.agents import ExecutionLock, load_lock
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.api.goals import Clock
from annabelle.hub.context import HubContext
from annabelle.store import feed, threads
from annabelle.store.feed import FeedItem, FeedKind

router = ApiRouter("feed")


class FeedItemView(ApiAnswer):
    """A discovery or a reflection."""

    item_id: str
    kind: FeedKind
    title: str
    content: str
    goal_id: str | None
    trust: Trust = Field(description="untrusted: it may be somebody else's words")
    created_at: datetime


class FeedView(ApiAnswer):
    items: list[FeedItemView]
    before: str | None = Field(description="For /feed/history: goes on behind the last of these; none at the end")


class FeedTimes(ApiBody):
    """When each part of the feed comes, in your time zone; null switches it off. What is not named stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"morning": "07:30", "evening": None}]})

    morning: Clock | None = None
    afternoon: Clock | None = None
    evening: Clock | None = None


class FeedSchedule(ApiAnswer):
    """When each part of the feed comes; null: never."""

    morning: str | None
    afternoon: str | None
    evening: str | None
    time_zone: str


class UserAgentView(ApiAnswer):
    """The agent that knows all your goals. Write to it in the channel user_agent, in the chat of your own name."""

    agent_id: str
    channel: str
    chat_id: str
    thread_id: str | None = Field(description="Its conversation; none before the first word")
    running: ExecutionLock | None = Field(description="The turn that has it to itself now")
    feed: FeedSchedule


Limit = Annotated[int, Query(ge=1, le=200, description="At most so many")]
Before = Annotated[str | None, Query(pattern=ID_SHAPE, description="Goes on behind this item")]


@router.get("/feed", **document("What is new in your feed"))
async def current_feed(hub: TheHub, caller: Caller, limit: Limit = 10) -> FeedView:
    """Newest first."""
    return await _load_feed(hub, caller.user_id, limit, None)


@router.get("/feed/history", **document("Your feed so far", 404))
async def feed_history(hub: TheHub, caller: Caller, before: Before = None, limit: Limit = 50) -> FeedView:
    """Page by page, newest first."""
    return await _load_feed(hub, caller.user_id, limit, before)


@router.get("/feed/schedule", **document("When your feed comes"))
async def get_feed_schedule(hub: TheHub, caller: Caller) -> FeedSchedule:
    return await hub.storage.database.read(lambda conn: _load_schedule(conn, hub, caller.user_id))


@router.post("/feed/schedule", **document("Say when your feed comes", 409, body=FeedTimes))
async def set_feed_schedule(hub: TheHub, caller: Caller, request: Request) -> FeedSchedule:
    """There is a feed as soon as there is a goal."""
    wanted = await read_body(request, FeedTimes)
    times = {name.capitalize(): time for name, time in wanted.model_dump(exclude_unset=True).items()}
    await hub.services.goals.set_feed_times(caller.user_id, times)
    return await get_feed_schedule(hub, caller)


@router.get("/user-agent", **document("The agent that knows all your goals"))
async def get_user_agent(hub: TheHub, caller: Caller) -> UserAgentView:
    user_id = caller.user_id
    agent_id = hub.agents.registry.config.agent_for_chat(USER_AGENT, user_id).agent_id

    def read(conn: Connection) -> UserAgentView:
        thread = threads.find_open_thread(conn, channel=USER_AGENT, chat_id=user_id, user_id=user_id, agent_id=agent_id)
        return UserAgentView(
            agent_id=agent_id,
            channel=USER_AGENT,
            chat_id=user_id,
            thread_id=None if thread is None else thread.id,
            running=None if thread is None else load_lock(conn, thread.id),
            feed=_load_schedule(conn, hub, user_id),
        )

    return await hub.storage.database.read(read)


async def _load_feed(hub: HubContext, user_id: str, limit: int, before: str | None) -> FeedView:
    def read(conn: Connection) -> list[FeedItem]:
        behind = None if before is None else feed.get_feed_item(conn, before, user_id)
        return feed.list_feed(conn, user_id, limit, behind)

    found = await hub.storage.database.read(read)
    return FeedView(items=[_to_view(one) for one in found], before=found[-1].id if len(found) == limit else None)


def _load_schedule(conn: Connection, hub: HubContext, user_id: str) -> FeedSchedule:
    service = hub.services.goals
    times = {part.casefold(): time for part, time in service.load_feed_times(conn, user_id).items()}
    return FeedSchedule(**times, time_zone=str(service.time_zone))


def _to_view(item: FeedItem) -> FeedItemView:
    return FeedItemView.from_row(item, item_id=item.id, trust="untrusted" if item.read_from else "trusted")
