"""An account that a tool server holds, as a channel (CHN-07).

Only the hub may read it this way: the server gives what came since a cursor, and the cursor moves on with the next
read, after what it brought was stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, cast

from annabelle.channels.channel import (
    Attachment,
    ChannelAccount,
    DeliveryUnknown,
    NotDelivered,
    OutgoingPart,
    Poll,
    Update,
)
from annabelle.channels.markdown import render_plain, write_buttons
from annabelle.core.errors import (
    AnnabelleError,
    OutcomeUnknown,
    ServerDown,
    ToolTimeout,
    TooManyRequests,
    Unavailable,
)
from annabelle.core.ids import new_id
from annabelle.core.messages import OWNER, TELEGRAM_ACCOUNT
from annabelle.core.tools import CallContext, JsonObject
from annabelle.toolbox.facade import ToolServers
from annabelle.toolbox.manifest import ChannelRules

_AGAIN_SECONDS: Final = 10.0
_UNKNOWN: Final = frozenset({OutcomeUnknown.code, ToolTimeout.code})
_LATER: Final = frozenset({Unavailable.code, ServerDown.code, TooManyRequests.code})


@dataclass(frozen=True, slots=True)
class AccountOptions:
    """`cycle_seconds`: time between two reads; files are exchanged with the server through the workspace."""

    cycle_seconds: float
    workspace: Path


class TelegramAccountChannel:
    name = TELEGRAM_ACCOUNT
    longest = 4000
    can_remove = True
    editable = False
    repeat_seconds = 300.0
    """Telegram takes a message with the same random id once; for how long, it does not say."""

    def __init__(
        self,
        servers: ToolServers,
        options: AccountOptions,
        find_people: Callable[[], Awaitable[Sequence[str] | None]],
    ) -> None:
        """`find_people`: the accounts that may speak; None while a stranger may pair theirs."""
        self._servers, self._options, self._find_people = servers, options, find_people
        self._server, self._rules = "", ChannelRules()
        self._end, self._refresh_at = "", 0.0

    async def connect(self) -> ChannelAccount:
        found = self._servers.find_channel()
        if found is None or found.channel is None:
            raise NotDelivered("The server that holds the account is switched off: TELEGRAM_MCP_ENABLED.")
        self._server, self._rules = found.name, found.channel
        me = await self._call("get_me", {})
        # What was written before Annabelle came was not written to her.
        self._end = str((await self._call("read_updates", {}))["cursor"])
        username = str(me.get("username") or "")
        invite = f"https://t.me/{username}" if username else ""
        return ChannelAccount(str(me["chat_id"]), f"@{username}" if username else str(me["name"]), invite)

    async def poll(self, cursor: str | None) -> Poll:
        loop, people = asyncio.get_running_loop(), await self._find_people()
        everywhere = people is None or loop.time() >= self._refresh_at
        wanted: JsonObject = {"cursor": cursor or self._end}
        if not everywhere:
            wanted["chat_ids"] = list(people or ())
        try:
            page = await self._call("read_updates", wanted)
        except DeliveryUnknown as broken:
            raise NotDelivered(broken.message, retry_after=_AGAIN_SECONDS) from broken
        if everywhere and page.get("more") is not True:
            self._refresh_at = loop.time() + self._rules.chat_refresh_seconds
        updates = [self._read(one) for one in cast("list[JsonObject]", page["messages"])]
        if not updates:
            await asyncio.sleep(self._options.cycle_seconds)
        return Poll(updates, str(page["cursor"]))

    async def send(self, chat_id: str, part: OutgoingPart) -> str:
        if part.file is not None:
            return await self._send_file(chat_id, part.file, part.key)
        text = render_plain(write_buttons(part))
        sent = await self._call("send_reply", {"chat_id": chat_id, "message": text, "key": part.key or new_id("txn")})
        return ",".join(str(one) for one in cast("list[int]", sent["message_ids"]))

    async def edit(self, chat_id: str, sent_id: str, part: OutgoingPart) -> None:
        """The server cannot change messages."""

    async def remove(self, chat_id: str, sent_ids: Sequence[str]) -> None:
        ids = [int(one) for sent_id in sent_ids for one in sent_id.split(",") if one]
        if ids:
            await self._call("delete_messages", {"chat_id": chat_id, "message_ids": ids})

    def find_message_id(self, external_id: str) -> str | None:
        return external_id.partition(":")[2] or None

    async def show_typing(self, chat_id: str) -> None:
        """The server has no sign for it."""

    async def acknowledge(self, pressed: str, text: str = "") -> None:
        """An account has no buttons."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        chat_id, _, message_id = attachment.id.partition(":")
        place = target.relative_to(self._options.workspace).as_posix()
        wanted: JsonObject = {"chat_id": chat_id, "message_id": int(message_id), "output_path": place}
        await self._call("download_media", wanted)

    async def close(self) -> None:
        """The server belongs to the toolbox."""

    def _read(self, message: JsonObject) -> Update:
        chat_id, number, text = str(message["chat_id"]), str(message["message_id"]), str(message["content"])
        sent_at = datetime.fromisoformat(str(message["at"])).astimezone(UTC)
        media = cast("JsonObject | None", message.get("media"))
        return Update(
            external_id=f"{chat_id}:{number}",
            chat_id=chat_id,
            sender_id=chat_id,
            sender_name=str(message["sender"]),
            text=text,
            sent_at=sent_at,
            automatic=message["bot"] is True or text.startswith(self._rules.bot_patterns),
            stale=datetime.now(UTC) - sent_at > timedelta(seconds=self._rules.max_message_age_seconds),
            attachments=() if media is None else (_read_media(media, f"{chat_id}:{number}"),),
        )

    async def _send_file(self, chat_id: str, file: Path, key: str) -> str:
        """A repeat is known by its key to the record of calls, since Telegram does not know it."""
        wanted: JsonObject = {"chat_id": chat_id, "file_path": str(file)}
        try:
            return str((await self._call("send_media", wanted, call_id=key or None))["message_id"])
        except NotDelivered as refused:
            raise NotDelivered(refused.message) from refused  # the record would only say the same again

    async def _call(self, tool: str, arguments: JsonObject, call_id: str | None = None) -> JsonObject:
        """Call a tool of the server as the hub. Raises NotDelivered or DeliveryUnknown."""
        context = CallContext(caller="hub", user_id=OWNER, call_id=call_id)
        try:
            result = await self._servers.hub_calls.call(f"{self._server}_{tool}", arguments, context)
        except AnnabelleError as error:
            raise _translate(error.code, error.message) from error
        if result.is_error or result.structured is None:
            raise _translate("" if result.error is None else result.error.code, result.text)
        return result.structured


def _translate(code: str, message: str) -> AnnabelleError:
    if code in _UNKNOWN:
        return DeliveryUnknown(message)
    return NotDelivered(message, retry_after=_AGAIN_SECONDS if code in _LATER else None)


def _read_media(media: JsonObject, place: str) -> Attachment:
    kind, name, size = str(media.get("media_type") or ""), media.get("name"), media.get("size")
    is_voice = kind == "audio/ogg" and not name
    return Attachment(
        id=place,
        name=str(name or media.get("kind") or "file"),
        kind="voice" if is_voice else "image" if kind.startswith("image/") else "file",
        size=size if isinstance(size, int) else None,
    )
