"""What agents do by themselves: runs of skills, check-ins, the feed and tasks, each a message to an agent (SKL-03).

What the person confirmed is all that is said in it, so nothing else counts as their words (POL-09).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.core.messages import GOALS, SKILLS, USER_AGENT, InboundMessage
from annabelle.core.tools import JsonObject
from annabelle.store import feed, goals, messages, skills, threads, tool_calls
from annabelle.store.message_state import load_root_message
from annabelle.store.messages import QueueLimits, StoredMessage
from annabelle.store.skills import StoredFire, StoredSkill
from annabelle.store.tool_calls import SeenToolResult

CHECK_IN: Final = "agent_check_in"
FEED: Final = "feed_generation"
"""What sort of run a message is: for this agent alone. What it delegates gets it as the origin (AGE-07)."""
FEED_SHOWN: Final = 30
"""Items that a run of the feed is shown, so that it repeats none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Something that an agent does by itself, as a message to it. `text` is what the person confirmed."""

    id: str
    channel: str
    chat_id: str
    user_id: str
    agent_id: str
    text: str
    about: JsonObject
    read_from: Sequence[str] = ()
    """Foreign content that it follows from."""


def queue_work(conn: Connection, work: Work, content: JsonObject | None = None) -> str:
    """Queue it once, in the thread of its chat, which is returned. `content` is what foreign content says."""
    thread = threads.find_or_create_thread(
        conn,
        channel=work.channel,
        chat_id=work.chat_id,
        user_id=work.user_id,
        agent_id=work.agent_id,
        internal=not find_kind(work.channel).accepts_messages,
    )
    said = InboundMessage(
        id=work.id,
        channel=work.channel,
        chat_id=work.chat_id,
        user_id=work.user_id,
        sender_id=work.user_id,
        source="skill",
        text=work.text,
    )
    queued = messages.queue_message(conn, thread, said, QueueLimits(), background=True, metadata=work.about)
    if not queued.duplicate:
        for origin in work.read_from:
            seen = SeenToolResult(origin, work.user_id, work.agent_id, said.id)
            tool_calls.note_untrusted(conn, seen, content)
    return thread.id


def queue_run(conn: Connection, fire: StoredFire, skill: StoredSkill) -> str | None:
    """The run of a skill, in a thread of its own or that of its goal; None if there is nothing to run it for."""
    channel, chat_id, words, about = SKILLS, fire.id, skill.instructions, JsonObject()
    foreign = [*(skill.made_after or ()), *([str(fire.content["source"])] if fire.content else ())]
    if skill.goal_id is not None:
        goal = goals.find_goal(conn, skill.goal_id)
        if goal is None or goal.state == "archived":
            return None
        goals.set_goal_state(conn, goal.id, "working")
        channel, chat_id, words, about = GOALS, goal.id, goal.words, {"type": CHECK_IN}
    elif skill.check_in is not None:
        if not goals.list_goals(conn, skill.user_id):
            return None
        channel, chat_id, about = USER_AGENT, skill.user_id, {"type": FEED}
        # The run is shown what the feed had, so it has seen whatever that was made from.
        told = feed.list_feed(conn, skill.user_id, FEED_SHOWN)
        foreign += dict.fromkeys(origin for one in told for origin in one.read_from or ())
    work = Work(
        id=skills.run_id(fire),
        channel=channel,
        chat_id=chat_id,
        user_id=skill.user_id,
        agent_id=skill.agent_id,
        text=words,
        about={**about, "fire_id": fire.id},
        read_from=foreign,
    )
    return queue_work(conn, work, fire.content)


def load_run(conn: Connection, message: StoredMessage) -> StoredFire | None:
    """The fire whose run a message is, or continues; None for what a person said."""
    fire_id = load_root_message(conn, message).metadata.get("fire_id")
    return None if fire_id is None else skills.load_fire(conn, str(fire_id))
