"""`/goals`: the goals of a person, one of them, their feed, and words to a goal from any chat."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from annabelle.core.messages import GOALS
from annabelle.core.text import escape_invisible
from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.skills.skill_service import format_moment
from annabelle.store import feed, goals, skills, tasks, threads
from annabelle.store.goals import StoredGoal

_FEED: Final = "feed"
_MOST: Final = 30
_NOTES_SHOWN: Final = 5
_ITEMS_SHOWN: Final = 5


class GoalsCommand(Command):
    info = CommandInfo(
        name="goals",
        usage="[feed|NUMBER [text]|NAME]",
        summary="Your goals, one of them, or your feed; text after a number is said to that goal.",
        examples=("/goals", "/goals feed"),
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        read = self.deps.storage.database.read
        if not call.words:
            return CommandAnswer(await read(lambda conn: self._list(conn, call.user_id)))
        if call.words == (_FEED,):
            return CommandAnswer(await read(lambda conn: self._show_feed(conn, call.user_id)))
        number, *text = call.rest.split(maxsplit=1)
        if text and number.isdecimal():
            return await self._say(call, number, text[0])
        goal = await self.deps.services.goals.find(" ".join(call.words), call.user_id)
        return CommandAnswer(await read(lambda conn: self._describe(conn, goal)))

    async def _say(self, call: CommandCall, number: str, text: str) -> CommandAnswer:
        """The answer of the goal comes here, too."""
        goal = await self.deps.services.goals.find(number, call.user_id)
        asked_in: str | None = None
        if (call.channel, call.chat_id) != (GOALS, goal.id):

            def find_thread(conn: Connection) -> str:
                return threads.find_or_create_thread(
                    conn, channel=call.channel, chat_id=call.chat_id, user_id=call.user_id, agent_id=call.agent_id
                ).id

            asked_in = await self.deps.storage.database.write(find_thread)
        await self.deps.services.goals.say(goal, text, asked_in, external_id=_derive_id(call))
        return CommandAnswer(f"Said to “{escape_invisible(goal.title)}”. Its answer comes here.")

    def _list(self, conn: Connection, user_id: str) -> str:
        known = list(enumerate(goals.list_goals(conn, user_id, archived=True), 1))
        active = [(number, one) for number, one in known if one.state != "archived"]
        if not active:
            return "There are no goals yet. Say what you want to reach, and Annabelle sets one up with you."
        lines = [f"{number}. {self._summarise(conn, one)}" for number, one in active[:_MOST]]
        if len(active) > _MOST:
            lines.append(f"… and {len(active) - _MOST} more.")
        if archived := len(known) - len(active):
            lines.append(f"{archived} {'is' if archived == 1 else 'are'} archived.")
        return "\n".join(lines)

    def _summarise(self, conn: Connection, goal: StoredGoal) -> str:
        due = [one.next_due for one in skills.list_check_ins(conn, goal.id) if one.enabled and one.next_due is not None]
        following = f", next check-in {self._format(min(due))}" if due else ""
        return f"{escape_invisible(goal.title)}: {goal.state}{following}"

    def _describe(self, conn: Connection, goal: StoredGoal) -> str:
        learnings = len(goals.list_learnings(conn, goal.id))
        at_work = tasks.list_at_work(conn, goal.id)
        notes = goals.list_notes(conn, goal.user_id, goal.id, limit=_NOTES_SHOWN)
        lines = [self._summarise(conn, goal), escape_invisible(goal.description)]
        lines += [f"Task under way: {escape_invisible(one.name)} ({one.state})" for one in at_work]
        lines += [f"Note of {self._format(one.created_at)}: {escape_invisible(one.title)}" for one in notes]
        if (more := goals.count_notes(conn, goal.id) - len(notes)) > 0:
            lines.append(f"… and {more} more notes.")
        if learnings:
            lines.append("1 learning." if learnings == 1 else f"{learnings} learnings.")
        return "\n".join(line for line in lines if line)

    def _show_feed(self, conn: Connection, user_id: str) -> str:
        items = feed.list_feed(conn, user_id, _ITEMS_SHOWN)
        shown = [
            f"{self._format(one.created_at)}: {escape_invisible(one.title)}\n{escape_invisible(one.content)}"
            for one in items
        ]
        return "\n\n".join(shown) or "There is nothing in your feed yet."

    def _format(self, moment: datetime) -> str:
        return format_moment(moment, self.deps.services.goals.time_zone)


def _derive_id(call: CommandCall) -> str | None:
    """The sender's id of what is said to a goal. None if that of the command is unknown, which then comes only once."""
    if call.external_id is None:
        return None
    known = "\0".join((call.channel, call.chat_id, call.external_id))
    return f"command:{hashlib.sha256(known.encode()).hexdigest()}"
