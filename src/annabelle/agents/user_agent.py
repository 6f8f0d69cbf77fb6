"""The agent that knows all goals of a person, and writes their feed (AGE-04, AGE-09)."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from annabelle.agents.fire_outcome import FireOutcome, end_fire, end_run
from annabelle.agents.goal import SYSTEM_TOOLS, list_task_tools
from annabelle.agents.kind import MAX_STEPS, AgentKind, EndedTurn, read_prompt
from annabelle.agents.work import FEED_SHOWN, load_run
from annabelle.core.contract import BriefSection, TurnLimits
from annabelle.core.errors import NotFound
from annabelle.core.messages import USER_AGENT, InboundMessage, StoredEvent
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject
from annabelle.skills.schedule import find_user_zone
from annabelle.store import feed, goals
from annabelle.store.goals import StoredGoal
from annabelle.store.message_state import root_message_id
from annabelle.store.messages import StoredMessage

FEED_TOOL: Final = "generate_feed"
_GOAL_TOOLS: Final = ("manage_check_in", "emit_progress")
"""Tools that are about one goal or task, which this agent has not."""
_FEED: Final = (
    "This is the {part}, which runs by itself. See what is new in the goals and look up what is worth knowing, "
    f"then hand over at most five things with {FEED_TOOL}: discoveries (something found, with its source) and "
    "reflections (a thought about how a goal goes). Nothing that the feed had before. If there is nothing new, do "
    "nothing. Answer with nothing: the feed is shown by itself."
)
_NOTES_SHOWN: Final = 3
_NOTE_CHARS: Final = 120


class UserAgentKind(AgentKind):
    agent_type = "user_agent"
    channel: str | None = USER_AGENT

    def admit(self, conn: Connection, message: InboundMessage) -> None:
        if message.chat_id != message.user_id:
            raise NotFound(f"There is no agent of {message.chat_id} here.", hint=f"Yours is {message.user_id}.")

    def load_context(self, conn: Connection, message: StoredMessage) -> JsonObject:
        return {"allowed_tools": _list_tools(conn, message)}

    def list_child_tools(self, conn: Connection, context: CallContext) -> tuple[str, ...] | None:
        return list_task_tools(_list_goal_tools(goals.list_goals(conn, context.user_id)))

    def load_terms(
        self, conn: Connection, message: StoredMessage, limits: TurnLimits, settings: Settings
    ) -> JsonObject:
        known = goals.list_goals(conn, message.user_id)
        terms: JsonObject = {
            "required_tools": _list_tools(conn, message),
            "limits": limits.model_copy(update={"max_steps": MAX_STEPS}),
            "instructions": read_prompt("user_agent"),
            "sections": _load_sections(conn, message, known, find_user_zone(settings.user_timezone)),
        }
        fire = load_run(conn, message)
        if fire is None:
            return terms
        terms |= {"may_be_silent": True, "token_budget": settings.skill_token_budget, "archive_as": "feed_complete"}
        return terms if message.source == "decision" else terms | {"text": _FEED.format(part=fire.name.casefold())}

    def end_turn(self, conn: Connection, ended: EndedTurn) -> list[StoredEvent]:
        """A run of the feed tells what it brought."""
        fire = load_run(conn, ended.message)
        if fire is None:
            return []
        if ended.parked is not None or not ended.result.success:
            return end_run(conn, fire, ended)
        items = feed.list_feed_of_run(conn, root_message_id(ended.message))
        text = "\n\n".join(f"{one.title}\n{one.content}" for one in items)
        trust = "untrusted" if any(one.read_from for one in items) else "trusted"
        return end_fire(conn, fire, FireOutcome(state="finished", text=text, trust=trust), ended.at)

    def drop_turn(self, conn: Connection, message: StoredMessage, why: str, at: datetime) -> list[StoredEvent] | None:
        fire = load_run(conn, message)
        return None if fire is None else end_fire(conn, fire, FireOutcome(state="skipped", text=why), at)


def _list_tools(conn: Connection, message: StoredMessage) -> tuple[str, ...]:
    own = [one for one in SYSTEM_TOOLS if one not in _GOAL_TOOLS]
    shared = _list_goal_tools(goals.list_goals(conn, message.user_id))
    if not message.background:
        return (*own, *shared)
    return (*(one for one in own if one != "send_message"), FEED_TOOL, *shared)


def _list_goal_tools(known: list[StoredGoal]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tool for goal in known for tool in goal.tools))


def _load_sections(
    conn: Connection, message: StoredMessage, known: list[StoredGoal], zone: ZoneInfo
) -> tuple[BriefSection, ...]:
    """The goals with their newest notes, and what the feed had.

    What may be somebody else's words is left out, but for the feed's own items in its runs, which are labelled so.
    """

    def day(moment: datetime) -> str:
        return f"{moment.astimezone(zone):%Y-%m-%d}"

    pieces: list[str] = []
    for goal in known:
        notes = [one for one in goals.list_notes(conn, goal.user_id, goal.id, limit=_NOTES_SHOWN) if not one.read_from]
        shown = "".join(f"\n  {day(one.created_at)} {one.title}: {one.content[:_NOTE_CHARS]}" for one in notes)
        pieces.append(f"[{goal.id}] {goal.title} ({goal.state}): {goal.description}{shown}")
    items = feed.list_feed(conn, message.user_id, FEED_SHOWN)
    told = [f"{day(one.created_at)} {one.title}" for one in items if message.background or not one.read_from]
    sections = (
        BriefSection(name="goals", pieces=tuple(pieces), max_tokens=1500),
        BriefSection(name="the feed so far", pieces=tuple(told), max_tokens=500),
    )
    return tuple(one for one in sections if one.pieces)


KIND: Final[AgentKind] = UserAgentKind()
