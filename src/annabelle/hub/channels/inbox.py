"""What comes in: stored before it is acknowledged, read once and in order, and never answered if nobody paired it.

A message that came while nobody listened is listed and not answered; at most a few of a chat are read in one cycle, so
that no loop of machines can run up a bill (CHN-04, CST-07, CST-08, I-16, I-20).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Final

from sqlalchemy import Connection

from annabelle.channels.channel import Attachment, Channel, DeliveryUnknown, NotDelivered, Update
from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, TooManyRequests, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import InboundMessage
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.channels.accounts import ChannelAccounts
from annabelle.hub.channels.lanes import Chat, ChatLanes
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.conversations.message_gate import MessageGate
from annabelle.hub.conversations.received_files import make_received_name, mention_file
from annabelle.hub.security.request_guard import UPLOAD_BYTES
from annabelle.store import channels, threads
from annabelle.store.channels import LinkedAccount, StoredUpdate
from annabelle.store.outbox import post

_log = logging.getLogger(__name__)
MOST_CHARS: Final = 100_000
_RETRY_SECONDS: Final = 1.0
_KNOWN_FOR: Final = timedelta(days=7)
"""Channels repeat what was not acknowledged for a day or two."""
_LISTED: Final = 10
_SHOWN_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInboxDeps:
    base: HubBase
    storage: HubStorage
    accounts: ChannelAccounts
    gate: MessageGate
    halted: Callable[[str], bool]
    """Whether the owner has stopped this channel."""
    registry: AgentRegistry


class ChannelInbox:
    def __init__(self, deps: ChannelInboxDeps) -> None:
        self._deps, self._settings = deps, deps.base.settings
        self._channels: dict[str, Channel] = {}
        self._wake, self._tasks, self._lanes = asyncio.Event(), BackgroundTasks(), ChatLanes()
        self._read: defaultdict[Chat, deque[float]] = defaultdict(deque)

    async def start(self, opened: Sequence[Channel]) -> None:
        """Read what an earlier process left, and what comes in from now on."""
        self._channels = {channel.name: channel for channel in opened}
        self._tasks.start(self._read_open())

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._lanes.stop()

    def wake(self) -> None:
        self._wake.set()

    async def take_in(
        self, channel: Channel, updates: Sequence[Update], cursor: str | None = None, *, after_outage: bool = False
    ) -> None:
        """Store what people sent; ignore everybody else without a word. The channel may forget it after this."""
        known: list[tuple[Update, LinkedAccount]] = []
        for update in updates:
            account = None if update.automatic else await self._admit(channel, update)
            if account is None:
                self._deps.accounts.ignored[channel.name] += 1
            else:
                known.append((update, account))
        oldest = self._deps.base.lifecycle.clock.now() - timedelta(seconds=self._settings.channel_message_age_seconds)

        def store(conn: Connection) -> None:
            for update, account in known:
                content = update.model_dump(mode="json")
                stale = update.stale or (after_outage and update.sent_at < oldest)
                channels.add_update(conn, account, update.external_id, update.chat_id, content, stale=stale)
            if cursor is not None:
                channels.write_cursor(conn, channel.name, cursor)

        if known or cursor is not None:
            await self._deps.storage.database.write(store)
        failpoint("hub.after_update")
        if known:
            self._wake.set()

    async def _admit(self, channel: Channel, update: Update) -> LinkedAccount | None:
        """The account of a sender who may speak here. A pairing code is used up by this."""
        account = await self._deps.accounts.find(channel.name, update.sender_id)
        if account is not None:
            return account if update.addressed else None
        paired = await self._deps.accounts.pair(channel.name, update)
        if paired is not None:
            text = f"You are connected as {paired.user_id}. Write to me here; /help lists what else there is."
            await self._say((channel.name, update.chat_id), paired.user_id, text, f"paired:{update.external_id}")
        return None

    async def _read_open(self) -> None:
        await self._deps.base.lifecycle.wait_ready()
        await self._deps.storage.database.write(lambda conn: channels.delete_old_updates(conn, _KNOWN_FOR))
        while True:
            self._wake.clear()
            try:
                self._start_lanes(await self._deps.storage.database.read(channels.list_open_updates))
            except AnnabelleError as trouble:
                _log.error("What came in cannot be read yet: %s", trouble.message)
                self._retry_in(_RETRY_SECONDS)
            await self._wake.wait()

    def _start_lanes(self, found: Sequence[StoredUpdate]) -> None:
        def chat_of(one: StoredUpdate) -> Chat:
            return one.channel, one.chat_id

        for chat, rows in groupby(sorted(found, key=chat_of), key=chat_of):
            listed = list(rows)
            if chat[0] in self._channels:
                self._lanes.start(chat, lambda chat=chat, listed=listed: self._read_chat(chat, listed))

    async def _read_chat(self, chat: Chat, rows: Sequence[StoredUpdate]) -> None:
        await self._list_stale([row for row in rows if row.stale])
        waits = False
        for row in rows:
            if row.stale or row.content is None:
                continue
            update = Update.model_validate(row.content)
            is_command = self._deps.gate.commands.parse(update.text) is not None
            waits = waits or self._deps.halted(row.channel)
            if not is_command and not waits and (seconds := self._seconds_to_wait(chat)) > 0:
                self._retry_in(seconds)
                waits = True
            if waits and not is_command:
                continue  # a command is read at once, and nothing else overtakes what waits
            if not await self._may_speak_still(row, update):
                self._deps.accounts.ignored[row.channel] += 1
                await self._close(row)
            elif await self._take(row, update):
                self._wake.set()  # more may have come meanwhile
            elif is_command:
                return
            else:
                waits = True

    def _seconds_to_wait(self, chat: Chat) -> float:
        """Until another message of this chat may be read: so many in each cycle."""
        cycle, taken = self._settings.channel_poll_interval_ms / 1000, self._read[chat]
        while taken and taken[0] <= time.monotonic() - cycle:
            taken.popleft()
        if len(taken) >= self._settings.channel_poll_max_messages:
            return taken[0] + cycle - time.monotonic()
        taken.append(time.monotonic())
        return 0.0

    async def _take(self, row: StoredUpdate, update: Update) -> bool:
        """Make it a message. False if it has to wait, and with it the rest of the chat."""
        channel = self._channels[row.channel]
        if update.pressed is not None:
            with contextlib.suppress(AnnabelleError):
                await channel.acknowledge(update.pressed)
        try:
            text = await self._read_text(channel, update)
            message = InboundMessage(
                channel=row.channel,
                chat_id=row.chat_id,
                sender_id=update.sender_id,
                user_id=row.user_id,
                text=text,
                external_id=update.external_id,
                sent_at=update.sent_at,
            )
            await self._deps.gate.receive(message)
        except (TooManyRequests, Unavailable) as busy:
            self._retry_in(float(getattr(busy, "retry_after", None) or _RETRY_SECONDS))
            return False
        except AnnabelleError as refused:
            if self._is_worth_waiting(row, refused):
                self._retry_in(_RETRY_SECONDS)
                return False
            await self._refuse(row, refused)
        except Exception:  # noqa: BLE001  one message must not hold up its chat for good
            _log.exception("A message in the chat %s of %s cannot be read", row.chat_id, row.channel)
            await self._refuse(row, AnnabelleError("I cannot read that message.", hint="Please send it another way."))
        failpoint("hub.after_update_read")
        await self._close(row)
        return True

    async def _may_speak_still(self, row: StoredUpdate, update: Update) -> bool:
        """Whether the account was not taken back, or given to somebody else, while its message waited."""
        account = await self._deps.accounts.find(row.channel, update.sender_id)
        return account is not None and account.user_id == row.user_id

    async def _close(self, row: StoredUpdate) -> None:
        await self._deps.storage.database.write(lambda conn: channels.close_updates(conn, [row.position]))

    def _is_worth_waiting(self, row: StoredUpdate, refused: AnnabelleError) -> bool:
        """Whether the channel may hand out a file after all, while the message is young enough to be answered."""
        unsure = isinstance(refused, DeliveryUnknown)
        later = unsure or (isinstance(refused, NotDelivered) and refused.retry_after is not None)
        waited = self._deps.base.lifecycle.clock.now() - row.received_at
        return later and waited < timedelta(seconds=self._settings.channel_message_age_seconds)

    async def _refuse(self, row: StoredUpdate, refused: AnnabelleError) -> None:
        text = refused.body().for_person
        await self._say((row.channel, row.chat_id), row.user_id, text, f"refused:{row.channel}:{row.external_id}")

    async def _read_text(self, channel: Channel, update: Update) -> str:
        """The words, and which files came with them."""
        if len(update.text) > MOST_CHARS:
            raise AnnabelleError(
                f"That message is too long: {len(update.text):,} characters.", hint="Send it as a file."
            )
        notes = [await self._fetch(channel, one, update) for one in update.attachments]
        return "\n".join(filter(None, [update.text, *notes]))

    async def _fetch(self, channel: Channel, attachment: Attachment, update: Update) -> str:
        if attachment.kind == "voice":
            raise AnnabelleError("I cannot listen to voice notes here.", hint="Please write it.")
        if attachment.size is not None and attachment.size > UPLOAD_BYTES:
            raise AnnabelleError(f"{attachment.name} is larger than {UPLOAD_BYTES // 1024**2} MB.", hint="Send less.")
        path = make_received_name(attachment.name, update.sent_at, f"{update.external_id} {attachment.id}")
        target = self._deps.base.workspace / path
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        await channel.fetch(attachment, target, UPLOAD_BYTES)
        return mention_file(path)

    async def _list_stale(self, rows: Sequence[StoredUpdate]) -> None:
        """Say once what was written while nobody listened, so that the person can decide."""
        for user_id, found in groupby(rows, key=lambda row: row.user_id):
            missed = list(found)
            texts = [Update.model_validate(row.content).text for row in missed if row.content is not None]
            shown = [f"• {text[:_SHOWN_CHARS]}" for text in texts[:_LISTED]]
            if len(texts) > _LISTED:
                shown.append(f"… and {len(texts) - _LISTED} more")
            text = "\n".join(
                ["I was away when you wrote this, and have not answered it:", *shown, "Say again what still matters."]
            )
            chat = (missed[0].channel, missed[0].chat_id)
            key = f"stale:{missed[0].channel}:{missed[-1].external_id}"
            await self._say(chat, user_id, text, key, closed=[row.position for row in missed])

    async def _say(self, chat: Chat, user_id: str, text: str, key: str, closed: Sequence[int] = ()) -> None:
        channel, chat_id = chat
        agent_id = self._deps.registry.config.agent_for_chat(channel, chat_id).agent_id

        def write(conn: Connection) -> WriteResult[None]:
            thread = threads.find_or_create_thread(
                conn, channel=channel, chat_id=chat_id, user_id=user_id, agent_id=agent_id
            )
            if closed:
                channels.close_updates(conn, list(closed))
            return WriteResult(None, user_id, post(conn, thread.id, text, key))

        await self._deps.storage.events.transact(write)

    def _retry_in(self, seconds: float) -> None:
        """Look again later; the loop may be waiting for something to come in."""
        asyncio.get_running_loop().call_later(seconds, self._wake.set)
