"""`/delete`: remove what was said in this chat from the history, or its messages from the channel (CMD-04)."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.core.contract import ClearSession
from annabelle.core.tools import JsonObject
from annabelle.core.trace import current_trace
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.commands.command import Button, Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.store import message_removal, threads
from annabelle.store.message_removal import MessageRange
from annabelle.store.messages import StoredMessage

_CONFIRM: Final = "confirm"
_MESSAGES: Final = "messages"
_MOST_HOURS: Final = 168
_MOST_MESSAGES: Final = 500
_HOURS: Final = re.compile(r"(\d{1,9})h", re.ASCII)
_WHY: Final = "You deleted what it was about"


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    wanted: MessageRange
    words: str
    """The range as it was written."""
    from_channel: bool
    confirmed: bool

    @property
    def confirmation(self) -> str:
        return f"/delete {f'{_MESSAGES} ' if self.from_channel else ''}{self.words} {_CONFIRM}"


class DeleteCommand(Command):
    info = CommandInfo(
        name="delete",
        usage="[messages] today|yesterday|week|Nh|N [confirm]",
        summary="Delete what was said here in that time, in N hours, or the last N messages. It asks first.",
        examples=("/delete today", "/delete 3h", "/delete 10 confirm", "/delete messages today"),
        admin=True,
        scope="threads",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        request = self._parse(call)
        if request.from_channel and call.channel not in self.deps.removers:
            return CommandAnswer(f"Messages of the channel {call.channel} cannot be removed from here.")
        found = await self._find(call, request.wanted)
        count = sum(not _is_command(one) for one in found)
        if not count:
            return CommandAnswer("Nothing was said here in that time.")
        what = "1 message" if count == 1 else f"{count} messages"
        if not request.confirmed:
            where = "from this chat" if request.from_channel else "from the history of this chat"
            text = f"This would delete {what} {where}, for good. To do it: {request.confirmation}"
            return CommandAnswer(text, (Button(f"Delete {what}", request.confirmation),))
        if request.from_channel:
            removed = await self.deps.removers[call.channel].remove_messages(call.chat_id, found)
            return CommandAnswer(f"{removed} of {len(found)} messages were removed from this chat.")
        await self._remove(call, found)
        facts: JsonObject = {
            "event": "deleted",
            "user_id": call.user_id,
            "messages": len(found),
            "range": request.words,
        }
        self.deps.stopper.audit.note("message", facts, current_trace())
        return CommandAnswer(f"Deleted {what} from the history. What the memory has learnt from it stays.")

    def _parse(self, call: CommandCall) -> DeleteRequest:
        words = [word.lower() for word in call.words]
        from_channel = words[:1] == [_MESSAGES]
        words = words[1:] if from_channel else words
        confirmed = words[1:] == [_CONFIRM]
        if len(words) - confirmed != 1:
            raise self.wrong_usage("Say what to delete.")
        return DeleteRequest(self._parse_range(words[0]), words[0], from_channel, confirmed)

    def _parse_range(self, word: str) -> MessageRange:
        now, zone = self.deps.services.skills.clock.now(), self.deps.services.skills.time_zone
        today = now.astimezone(zone).date()

        def midnight(days_ago: int) -> datetime:
            return datetime.combine(today - timedelta(days=days_ago), time.min, zone)

        if word in ("today", "yesterday", "week"):
            days = {"today": 0, "yesterday": 1, "week": 6}[word]
            return MessageRange(since=midnight(days), until=midnight(0) if word == "yesterday" else None)
        if hours := _HOURS.fullmatch(word):
            if not 1 <= int(hours[1]) <= _MOST_HOURS:
                raise self.wrong_usage(f"Hours are from 1 to {_MOST_HOURS}.")
            return MessageRange(since=now - timedelta(hours=int(hours[1])))
        return MessageRange(last=self.read_count([word], 0, _MOST_MESSAGES))

    async def _find(self, call: CommandCall, wanted: MessageRange) -> list[StoredMessage]:
        chat = (call.channel, call.chat_id, call.user_id)
        return await self.deps.storage.database.read(
            lambda conn: message_removal.list_chat_messages(conn, chat, wanted)
        )

    async def _remove(self, call: CommandCall, gone: list[StoredMessage]) -> None:
        """The model's history first: if an agent cannot change it now, nothing is deleted."""
        by_thread: dict[str, list[str]] = defaultdict(list)
        for message in gone:
            if message.kind == "inbound" and message.source != "command":
                by_thread[message.thread_id].append(message.id)

        def find_agents(conn: Connection) -> dict[str, str]:
            return {thread_id: threads.load_thread(conn, thread_id).agent_id for thread_id in by_thread}

        agents = await self.deps.storage.database.read(find_agents)
        questions = ThinkerQuestions(self.deps.stopper.agents)
        for thread_id, ids in by_thread.items():
            for message_id in ids:
                await self.deps.stopper.withdrawal.withdraw_for_message(message_id, _WHY)
            await questions.clear_session(agents[thread_id], ClearSession(thread_id=thread_id, removed=tuple(ids)))

        def write(conn: Connection) -> WriteResult[None]:
            message_removal.remove_content(conn, gone)
            return WriteResult(None, call.user_id)

        await self.deps.storage.events.transact(write)


def _is_command(message: StoredMessage) -> bool:
    return message.source == "command" or "command" in message.metadata
