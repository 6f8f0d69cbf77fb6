"""Sends what is to be said in chat apps: each message once and in order, or visibly of unknown outcome (TRU-02)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.channels.channel import Button, Channel, DeliveryUnknown, NotDelivered, OutgoingPart
from annabelle.channels.message_parts import split_markdown
from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, RetryByModel
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import StoredEvent, now
from annabelle.core.tools import JsonObject
from annabelle.hub.base import HubBase, HubStorage, write_until_stored
from annabelle.hub.channels.lanes import Chat, ChatLanes
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.store import approvals, message_state, messages
from annabelle.store.message_state import Delivery, DeliveryState
from annabelle.store.messages import StoredMessage
from annabelle.store.outbox import post

_log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 1.0
_REPEAT_SECONDS: Final = 2.0
_LONGEST_WAIT: Final = 300.0
_SHOWN_CHARS: Final = 80
_ABOUT: Final = "delivery_of"
_MOST_QUESTIONS: Final = 1000
_OVER: Final = "This is not asked any more."
_TOLD: Final = frozenset({"message", "error", "approval", "notice"})


class ChannelDelivery:
    def __init__(self, base: HubBase, storage: HubStorage) -> None:
        self._base, self._storage = base, storage
        self._channels: dict[str, Channel] = {}
        self._wake, self._tasks, self._lanes = asyncio.Event(), BackgroundTasks(), ChatLanes()
        self._waiting: set[Chat] = set()
        """Chats in which nothing is tried for now, as their channel asked."""
        storage.events.subscribe(self._on_events)

    async def start(self, opened: Sequence[Channel]) -> None:
        """Send what an earlier process left, and what is said from now on."""
        self._channels = {channel.name: channel for channel in opened}
        self._tasks.start(self._send_pending())

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._lanes.stop()

    def _on_events(self, events: Sequence[StoredEvent]) -> None:
        if any(event.type in _TOLD for event in events):
            self._wake.set()

    async def _send_pending(self) -> None:
        while True:
            self._wake.clear()
            try:
                found = await self._storage.database.read(self._load_pending)
            except AnnabelleError as trouble:
                _log.error("What is to be sent cannot be read yet: %s", trouble.message)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for chat, waiting in groupby(sorted(found, key=_chat_of), key=_chat_of):
                if chat in self._waiting:
                    continue
                ordered = sorted(waiting, key=lambda one: one.position)
                self._lanes.start(chat, lambda chat=chat, ordered=ordered: self._send_in_order(chat, ordered))
            await self._wake.wait()

    def _load_pending(self, conn: Connection) -> list[StoredMessage]:
        pending = message_state.list_unfinished_deliveries(conn)
        return [messages.load_message(conn, one.message_id) for one in pending if one.channel in self._channels]

    async def _send_in_order(self, chat: Chat, waiting: Sequence[StoredMessage]) -> None:
        channel = self._channels[chat[0]]
        for message in waiting:
            seconds = await self._send(channel, message)
            if seconds is not None:
                self._waiting.add(chat)
                asyncio.get_running_loop().call_later(min(seconds, _LONGEST_WAIT), self._go_on, chat)
                return
        self._wake.set()  # more may have been said meanwhile

    def _go_on(self, chat: Chat) -> None:
        self._waiting.discard(chat)
        self._wake.set()

    async def _send(self, channel: Channel, message: StoredMessage) -> float | None:
        """Send the parts that were not sent yet. Returns after how many seconds to go on, None once it is over."""
        answered = await self._find_answered(message)
        message = await self._leave_out_answered(message)
        parts = await asyncio.to_thread(self._make_parts, channel, message, answered)
        before = await self._begin(message.id)
        if not before.is_open:
            return None
        sent = before.parts_sent
        may_repeat = now() - before.created_at < timedelta(seconds=channel.repeat_seconds)
        if before.state == "sending" and not may_repeat:
            sent.append(None)  # the hub was killed while it sent this part
        while len(sent) < len(parts):
            failpoint("hub.before_send")
            part = parts[len(sent)]
            try:
                sent.append(await channel.send(message.chat_id, part))
            except DeliveryUnknown as unknown:
                _log.warning("%s: %s", message.id, unknown.message)
                if may_repeat:
                    await self._finish(message, "pending", sent)
                    return _REPEAT_SECONDS
                sent.append(None)
            except NotDelivered as refused:
                if refused.retry_after is None:
                    await self._finish(message, "failed", sent, refused.message)
                    return None
                await self._finish(message, "pending", sent)
                return refused.retry_after
            except OSError as gone:
                if part.file is None:
                    raise
                parts[len(sent)] = replace(part, text=f"{part.file.name} cannot be read: {gone.strerror}.", file=None)
                continue
            failpoint("hub.after_send")
            if len(sent) < len(parts):
                await self._finish(message, "pending", sent)
                await self._begin(message.id)
        await self._finish(message, "unknown" if None in sent else "sent", sent)
        return None

    async def _begin(self, message_id: str) -> Delivery:
        database = self._storage.database
        return await write_until_stored(
            message_id, lambda: database.write(lambda conn: message_state.begin_delivery(conn, message_id))
        )

    async def _finish(
        self, message: StoredMessage, state: DeliveryState, sent: Sequence[str | None], why: str = ""
    ) -> None:
        def write(conn: Connection) -> WriteResult[None]:
            message_state.finish_delivery(conn, message.id, state, sent)
            unsure = state == "unknown" and _ABOUT not in message.metadata
            shown = message.content[:_SHOWN_CHARS]
            text = f"It is not certain that this reached you: “{shown}…”" if unsure else ""
            about: JsonObject = {_ABOUT: message.id}
            events = post(conn, message.thread_id, text, f"unknown:{message.id}", about) if unsure else []
            return WriteResult(None, message.user_id, events)

        await write_until_stored(message.id, lambda: self._storage.events.transact(write))
        if state in ("unknown", "failed"):
            said = "It is not known whether a message arrived" if state == "unknown" else "A message was not delivered"
            where = f"in the chat {message.chat_id} of {message.channel}"
            self._base.notices.add(
                f"delivery:{message.channel}:{message.chat_id}", f"{said} {where}. {why}".strip(), "warning"
            )

    async def _find_answered(self, message: StoredMessage) -> str | None:
        """What the channel calls the message that this one answers."""
        asked = message.reply_to
        if asked is None:
            return None
        load = messages.load_message
        found = await self._storage.database.read(lambda conn: message_state.load_root_message(conn, load(conn, asked)))
        return found.external_id

    async def _leave_out_answered(self, message: StoredMessage) -> StoredMessage:
        """The message without the buttons of questions that are over: it may have waited while the channel was away."""
        asked = cast("list[str]", message.metadata.get("approvals") or [])
        if not asked:
            return message

        def list_open(conn: Connection) -> list[str]:
            waiting = {one.id for one in approvals.list_approvals(conn, message.user_id, "pending", _MOST_QUESTIONS)}
            return [one for one in asked if one in waiting]

        still_open = await self._storage.database.read(list_open)
        over = "" if still_open else f"\n\n{_OVER}"
        return replace(message, content=message.content + over, metadata={**message.metadata, "approvals": still_open})

    def _make_parts(self, channel: Channel, message: StoredMessage, answered: str | None) -> list[OutgoingPart]:
        parts = split_text(channel, message)
        if (named := message.metadata.get("file")) is not None:
            parts.append(self._make_file_part(str(named)))
        return [replace(part, reply_to=answered, key=f"{message.id}.{n}") for n, part in enumerate(parts)]

    def _make_file_part(self, named: str) -> OutgoingPart:
        try:
            return OutgoingPart("", file=self._base.find_file(named))
        except RetryByModel as gone:  # since the message was written
            return OutgoingPart(gone.message)


def split_text(channel: Channel, message: StoredMessage) -> list[OutgoingPart]:
    """What is said, in parts that fit, with the buttons below the last one."""
    parts = [OutgoingPart(text) for text in split_markdown(message.content, channel.longest)]
    if parts:
        parts[-1] = replace(parts[-1], buttons=_make_buttons(message))
    return parts


def _chat_of(message: StoredMessage) -> Chat:
    return message.channel, message.chat_id


def _make_buttons(message: StoredMessage) -> list[Button]:
    """What can be answered by a press: what a command offers, and open questions."""
    given = cast("list[JsonObject]", message.metadata.get("buttons") or [])
    buttons = [Button(str(one["label"]), str(one["command"])) for one in given]
    asked = cast("list[str]", message.metadata.get("approvals") or [])
    for number, approval_id in enumerate(asked, 1):
        of = f" ({number})" if len(asked) > 1 else ""
        buttons += [Button(f"Yes{of}", f"/approve {approval_id}"), Button(f"No{of}", f"/deny {approval_id}")]
    return buttons


class ProgressDisplay:
    """Shows in the chat that a turn works: the typing sign, and one line per tool that is edited in place (CHN-06)."""

    def __init__(self, storage: HubStorage) -> None:
        self._storage = storage
        self._channels: dict[str, Channel] = {}
        self._running: dict[str, _ShownTurn] = {}
        self._tasks = BackgroundTasks()
        storage.events.subscribe(self._on_events)

    def start(self, opened: Sequence[Channel]) -> None:
        self._channels = {channel.name: channel for channel in opened}

    async def stop(self) -> None:
        await self._tasks.stop()

    def _on_events(self, events: Sequence[StoredEvent]) -> None:
        for event in events if self._channels else ():
            shown = self._running.get(event.message_id)
            if event.type == "done":
                if shown is not None:
                    self._running.pop(event.message_id).end()
            elif event.type in ("think", "text", "tool_start"):
                if shown is None:
                    shown = self._running[event.message_id] = _ShownTurn()
                    self._tasks.start(self._show(event.message_id, shown))
                if event.type == "tool_start":
                    shown.name_tool(str(event.data.get("name", "")))

    async def _show(self, message_id: str, shown: _ShownTurn) -> None:
        try:
            message = await self._storage.database.read(lambda conn: messages.load_message(conn, message_id))
            channel = self._channels.get(message.channel)
            if channel is not None and channel.editable:
                await shown.run(channel, message.chat_id)
        except Exception as error:  # noqa: BLE001  a sign for people only; the answer comes by another way
            _log.info("The progress of %s cannot be shown: %s", message_id, error)


class _ShownTurn:
    """One turn that is under way."""

    _TYPING_SECONDS: Final = 4.0
    _QUIET_SECONDS: Final = 2.0

    def __init__(self) -> None:
        self._changed, self._over, self._line = asyncio.Event(), False, ""

    def name_tool(self, tool: str) -> None:
        self._line = f"⚙ {tool.replace('_', ' ')} …"
        self._changed.set()

    def end(self) -> None:
        self._over = True
        self._changed.set()

    async def run(self, channel: Channel, chat_id: str) -> None:
        sent_id, written = None, ""
        try:
            while not self._over:
                await channel.show_typing(chat_id)
                await self._wait(self._QUIET_SECONDS if self._line != written else self._TYPING_SECONDS)
                if self._over or self._line == written:
                    continue
                written, part = self._line, OutgoingPart(self._line)
                if sent_id is None:
                    sent_id = await channel.send(chat_id, part)
                else:
                    await channel.edit(chat_id, sent_id, part)
        finally:
            if sent_id is not None:
                await channel.remove(chat_id, [sent_id])

    async def _wait(self, seconds: float) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
