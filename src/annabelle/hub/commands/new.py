"""`/new`: begin a new conversation in the same chat. What was read in the old one has no hold on it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from sqlalchemy import Connection

from annabelle.core.contract import ClearSession
from annabelle.core.errors import AnnabelleError
from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.store import messages, threads
from annabelle.store.approvals import OpenQuestionFilter

_ARCHIVE_SECONDS: Final = 2.0
_WHY: Final = "A new conversation was begun"


class NewCommand(Command):
    info = CommandInfo(
        name="new", summary="Begin a new conversation here; what was said before is archived.", examples=("/new",)
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        self.expect_no_words(call)
        old = call.thread_id

        def end_thread(conn: Connection) -> WriteResult[int | None]:
            """How many messages are still being answered; None if nothing was said yet."""
            if old is None or not messages.was_anything_said(conn, old):
                return WriteResult(None, call.user_id)
            threads.replace_thread(conn, old)
            return WriteResult(messages.count_unfinished(conn, old), call.user_id)

        unfinished = await self.deps.storage.events.transact(end_thread)
        if unfinished is None or old is None:
            return CommandAnswer("This conversation is new already.")
        withdrawn = await self.deps.stopper.withdrawal.withdraw(OpenQuestionFilter(thread_id=old), _WHY)
        await self._archive(call.agent_id, old)
        lines = ["A new conversation begins. What was said before is archived, and no model sees it here."]
        if withdrawn:
            lines.append("1 question was taken back." if withdrawn == 1 else f"{withdrawn} questions were taken back.")
        if unfinished:
            lines.append("What is being answered from before goes on; /stop ends it.")
        return CommandAnswer(" ".join(lines))

    async def _archive(self, agent_id: str, thread_id: str) -> None:
        """Without a model, and only if the agent runs. Otherwise it archives what is idle at its next start."""
        client = self.deps.stopper.agents.running_client(agent_id)
        if client is None:
            return
        with contextlib.suppress(AnnabelleError, TimeoutError):  # the thread is ended, so it is archived as idle later
            async with asyncio.timeout(_ARCHIVE_SECONDS):
                await client.clear_session(ClearSession(thread_id=thread_id, by_model=False))
