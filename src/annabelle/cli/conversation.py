"""A conversation of the terminal with Annabelle: posts a line and yields the changes of its turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from annabelle.cli.hub_client import CliHubClient, ServerEvent
from annabelle.cli.output import clean
from annabelle.cli.spinner import tell
from annabelle.core.errors import AnnabelleError, CallerMistake, ErrorBody, error_from
from annabelle.core.ids import new_id
from annabelle.core.messages import StoredEvent
from annabelle.core.tools import JsonObject
from annabelle.core.turn_view import (
    ApprovalAsked,
    NoticeAdded,
    ReplySent,
    TurnChange,
    TurnView,
    TurnViewEnded,
    TurnViewFailed,
    parse_failure,
)

CHANNEL, SENDER = "cli", "owner"
LAST_WORDS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ConversationAnswer:
    """The text of an answer, and the questions the turn waits for."""

    text: str
    asked: tuple[str, ...] = ()


@dataclass(slots=True)
class Conversation:
    """Says one thing at a time. `last_id` is the last event that was read."""

    client: CliHubClient
    chat_id: str
    agent_id: str | None = None
    thread_id: str | None = None
    message_id: str | None = None
    last_id: str | None = None
    channel: str = CHANNEL

    async def post(self, text: str, external_id: str | None = None) -> str:
        """Post the text and return the message id. It is durable from here on; the same external id is the same."""
        body: JsonObject = {
            "text": text,
            "channel": self.channel,
            "chatId": self.chat_id,
            "senderId": SENDER,
            "externalId": external_id or new_id("cli"),
        }
        if self.agent_id is not None:
            body["agentId"] = self.agent_id
        accepted = await self.client.post("/message", body)
        self.thread_id, self.message_id = str(accepted["threadId"]), str(accepted["messageId"])
        self.last_id = str(accepted["lastEventId"]) if accepted.get("lastEventId") is not None else self.last_id
        return self.message_id

    async def say(self, text: str, external_id: str | None = None) -> AsyncGenerator[TurnChange]:
        """Post the text and yield changes until the turn ends or fails."""
        async with contextlib.aclosing(self.follow(await self.post(text, external_id))) as changes:
            async for change in changes:
                yield change

    async def follow(self, message_id: str) -> AsyncGenerator[TurnChange]:
        """Yield the changes of a message's turn, such as one that continues after an approval."""
        self.message_id = message_id
        changes: asyncio.Queue[TurnChange] = asyncio.Queue(maxsize=1000)
        reader = asyncio.create_task(self._read(TurnView(message_id), changes))
        try:
            async for change in self._until_over(message_id, reader, changes):
                yield change
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, AnnabelleError):
                await reader

    async def _read(self, view: TurnView, changes: asyncio.Queue[TurnChange]) -> None:
        assert self.thread_id is not None
        async with contextlib.aclosing(self.client.events(self.thread_id, self.last_id)) as events:
            async for event in events:
                self.last_id = event.id or self.last_id
                for change in view.apply(stored) if (stored := parse_event(event)) is not None else []:
                    await changes.put(change)
                    if isinstance(change, TurnViewEnded):
                        return

    async def _until_over(
        self, message_id: str, reader: asyncio.Task[None], changes: asyncio.Queue[TurnChange]
    ) -> AsyncGenerator[TurnChange]:
        """Yield changes from the stream; only the stored message says for certain that the turn is over."""
        outcome = asyncio.create_task(self.client.wait_for_message(message_id))
        sent = False
        try:
            while True:
                following = asyncio.create_task(changes.get())
                deadline = LAST_WORDS_SECONDS if outcome.done() else None
                pending: set[asyncio.Task[None] | asyncio.Task[TurnChange] | asyncio.Task[JsonObject]] = {
                    following,
                    reader,
                }
                if not outcome.done():
                    pending.add(outcome)
                done, _ = await asyncio.wait(pending, timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
                if following in done:
                    change = following.result()
                    sent = sent or isinstance(change, ReplySent)
                    yield change
                    if isinstance(change, TurnViewEnded | TurnViewFailed):
                        return
                    continue
                following.cancel()
                if reader in done or not done:
                    # The stream ended or is silent although the turn is over, so use the stored reply.
                    for change in _final_changes(await outcome, sent):
                        yield change
                    return
        finally:
            outcome.cancel()
            with contextlib.suppress(asyncio.CancelledError, AnnabelleError):
                await outcome

    async def cancel(self) -> bool:
        """Stop the running answer; False if it is too late."""
        if self.message_id is None:
            return False
        try:
            await self.client.post(f"/messages/{self.message_id}/cancel", {})
        except CallerMistake:
            return False
        return True

    async def answer(self, text: str) -> ConversationAnswer:
        """Post the text and wait for the whole answer, telling notices meanwhile; raises if the turn failed."""
        return await _collect_answer(self.say(text))

    async def answer_of(self, message_id: str) -> ConversationAnswer:
        """Wait for the whole answer of a continued turn."""
        return await _collect_answer(self.follow(message_id))


async def _collect_answer(changes: AsyncGenerator[TurnChange]) -> ConversationAnswer:
    said: list[str] = []
    asked: list[str] = []
    async with contextlib.aclosing(changes):
        async for change in changes:
            if isinstance(change, TurnViewFailed):
                raise error_from(change.error)
            if isinstance(change, ReplySent):
                said.append(change.text)
            elif isinstance(change, ApprovalAsked):
                asked.append(change.approval_id)
            elif isinstance(change, NoticeAdded):
                tell(clean(change.text))
    return ConversationAnswer("\n".join(said), tuple(dict.fromkeys(asked)))


def parse_event(event: ServerEvent) -> StoredEvent | None:
    try:
        return StoredEvent.model_validate_json(event.data)
    except ValidationError:
        return None  # an event kind this version does not know


def _final_changes(found: JsonObject, sent: bool) -> list[TurnChange]:
    """The final changes according to the stored message."""
    if (failure := find_failure(found)) is not None:
        return [TurnViewFailed(failure)]
    replies = cast("list[JsonObject]", found.get("replies") or [])
    asked = [ApprovalAsked(one) for reply in replies for one in find_approvals(reply)]
    said = [] if sent else [_parse_reply(reply) for reply in replies]
    return [*asked, *said, TurnViewEnded()]


def _parse_reply(reply: JsonObject) -> ReplySent:
    goes_on = cast("JsonObject", reply.get("metadata") or {}).get("goes_on")
    return ReplySent(str(reply["text"]), goes_on if isinstance(goes_on, str) else None)


def find_failure(message: JsonObject) -> ErrorBody | None:
    """Why the turn of a stored message failed; None if it did not."""
    if message["state"] != "failed":
        return None
    last = [JsonObject(), *cast("list[JsonObject]", message.get("replies") or [])][-1]
    return parse_failure(cast("JsonObject", last.get("metadata") or {}), str(last.get("text") or ""))


def find_approvals(reply: JsonObject) -> list[str]:
    asked = cast("JsonObject", reply.get("metadata") or {}).get("approvals")
    return [str(one) for one in cast("list[object]", asked)] if isinstance(asked, list) else []
