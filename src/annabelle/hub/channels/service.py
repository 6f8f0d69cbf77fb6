"""The channels of a hub: opened from the settings, listened to, and shown with what they did."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection

from annabelle.channels.channel import Channel, ChannelAccount, NotDelivered, WebhookChannel
from annabelle.core.background import BackgroundTasks
from annabelle.core.backoff import backoff_seconds
from annabelle.core.errors import AnnabelleError, NotFound, Unauthorized
from annabelle.core.tools import JsonObject
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.channels.accounts import ChannelAccounts
from annabelle.hub.channels.answered_questions import AnsweredQuestions
from annabelle.hub.channels.delivery import ChannelDelivery, ProgressDisplay
from annabelle.hub.channels.inbox import ChannelInbox, ChannelInboxDeps
from annabelle.store import channels, message_state
from annabelle.store.database import Database
from annabelle.store.messages import StoredMessage

_log = logging.getLogger(__name__)
_LONGEST_BACKOFF: Final = 60.0
_OUTAGE_SECONDS: Final = 90.0
"""Without a successful poll for so long, what came meanwhile may be old."""
ChannelState = Literal["connecting", "listening", "unreachable", "refused", "stopped"]


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    name: str
    state: ChannelState
    account: str = ""
    invite: str = ""
    trouble: str | None = None
    since: datetime | None = None


class HubChannels:
    def __init__(self, deps: ChannelInboxDeps, opened: Sequence[Channel]) -> None:
        self._base: HubBase = deps.base
        self._storage: HubStorage = deps.storage
        self.accounts: ChannelAccounts = deps.accounts
        self._inbox, self._progress = ChannelInbox(deps), ProgressDisplay(deps.storage)
        self._delivery, self._answered = ChannelDelivery(deps.base, deps.storage), AnsweredQuestions(deps.storage)
        self._tasks = BackgroundTasks()
        self._opened = {channel.name: channel for channel in opened}
        state: ChannelState = "connecting" if deps.base.settings.thinker_enabled else "stopped"
        self._statuses = {name: ChannelStatus(name, state) for name in self._opened}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._opened)

    def statuses(self) -> list[ChannelStatus]:
        return list(self._statuses.values())

    async def start(self) -> None:
        opened = list(self._opened.values())
        if not opened:
            return
        self._progress.start(opened)
        self._answered.start(opened)
        await self._delivery.start(opened)
        if self._base.settings.thinker_enabled:
            # Otherwise an MCP client holds the conversations, and reads channels by tools (HUB-08).
            await self._inbox.start(opened)
            for channel in opened:
                self._tasks.start(self._listen(channel))

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._inbox.stop()
        await self._progress.stop()
        await self._answered.stop()
        await self._delivery.stop()
        for channel in self._opened.values():
            await channel.close()

    def wake(self) -> None:
        """A channel was stopped, or goes on."""
        self._inbox.wake()

    async def receive_webhook(self, name: str, secret: str, update: JsonObject) -> None:
        """Store one update. The channel is answered at once, the work goes on by itself (CHN-03)."""
        channel = self._opened.get(name)
        if not isinstance(channel, WebhookChannel) or not channel.webhook:
            raise NotFound("There is no webhook.")
        if not hmac.compare_digest(secret.encode(), channel.secret.encode()):
            raise Unauthorized("The secret of the webhook is wrong.")
        read = channel.read(update)
        if read is not None:
            await self._inbox.take_in(channel, [read], after_outage=True)

    async def _listen(self, channel: Channel) -> None:
        """Connect, then take in what comes, for as long as the hub runs. Trouble is told once and waited out."""
        await self._base.lifecycle.wait_ready()
        failures, heard_at, connected = 0, 0.0, False
        loop = asyncio.get_running_loop()
        while True:
            try:
                if not connected:
                    self._note_connected(channel.name, await channel.connect())
                    connected = True
                if isinstance(channel, WebhookChannel) and channel.webhook:
                    return
                cursor = await self._storage.database.read(lambda conn: channels.read_cursor(conn, channel.name))
                found = await channel.poll(cursor)
                outage = loop.time() - heard_at > _OUTAGE_SECONDS or heard_at == 0.0
                heard_at = loop.time()
                moved = found.cursor if found.cursor != cursor else None
                await self._inbox.take_in(channel, found.updates, moved, after_outage=outage)
                if failures:
                    failures = 0
                    self._note(channel.name, "listening")
            except AnnabelleError as trouble:
                failures += 1
                final = isinstance(trouble, NotDelivered) and trouble.retry_after is None
                self._note(channel.name, "refused" if final else "unreachable", trouble.message)
                await asyncio.sleep(backoff_seconds(failures, 1.0, _LONGEST_BACKOFF))
            except Exception:  # noqa: BLE001  a channel must outlive whatever one update holds
                failures += 1
                _log.exception("Listening to %s failed", channel.name)
                await asyncio.sleep(backoff_seconds(failures, 1.0, _LONGEST_BACKOFF))

    def _note_connected(self, name: str, account: ChannelAccount) -> None:
        since = self._base.lifecycle.clock.now()
        self._statuses[name] = ChannelStatus(name, "listening", account.name, account.invite, since=since)
        _log.info("%s is connected as %s", name, account.name)

    def _note(self, name: str, state: ChannelState, trouble: str | None = None) -> None:
        known = self._statuses[name]
        self._statuses[name] = replace(known, state=state, trouble=trouble)
        topic = f"channel:{name}"
        if state == "listening":
            self._base.notices.clear(topic)
        elif known.state != state:
            self._base.notices.add(topic, f"{name}: {trouble}", "warning")


def make_removers(opened: Sequence[Channel], database: Database) -> dict[str, ChannelMessageRemover]:
    return {channel.name: ChannelMessageRemover(channel, database) for channel in opened if channel.can_remove}


@dataclass(frozen=True, slots=True)
class ChannelMessageRemover:
    """Removes messages of a chat from its channel, the person's where the channel allows that (CMD-04)."""

    channel: Channel
    database: Database

    async def remove_messages(self, chat_id: str, wanted: Sequence[StoredMessage]) -> int:
        def find_ids(conn: Connection) -> list[list[str]]:
            return [self._find_ids(conn, one) for one in wanted]

        found = [ids for ids in await self.database.read(find_ids) if ids]
        await self.channel.remove(chat_id, [one for ids in found for one in ids])
        return len(found)

    def _find_ids(self, conn: Connection, message: StoredMessage) -> list[str]:
        if message.kind == "inbound":
            named = self.channel.find_message_id(message.external_id or "")
            return [named] if named is not None else []
        delivery = message_state.find_delivery(conn, message.id)
        return [one for one in delivery.parts_sent if one is not None] if delivery is not None else []
