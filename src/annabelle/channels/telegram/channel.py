"""The Telegram bot as a channel: long polling, or a webhook behind a proxy."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, cast

from annabelle.channels.channel import (
    MALFORMED,
    Attachment,
    ChannelAccount,
    DeliveryUnknown,
    NotDelivered,
    OutgoingPart,
    Poll,
    Update,
)
from annabelle.channels.markdown import render_html, render_plain
from annabelle.channels.telegram.bot_api import BotApi
from annabelle.core.messages import TELEGRAM
from annabelle.core.tools import JsonObject

_POLL_SECONDS: Final = 50
_KINDS: Final = ["message", "callback_query"]
_PRESSED: Final = "button:"
_FILES: Final[dict[str, Literal["file", "voice"]]] = {"document": "file", "audio": "file", "voice": "voice"}
_log = logging.getLogger(__name__)


class TelegramChannel:
    name = TELEGRAM
    longest = 4000
    can_remove = True
    editable = True
    repeat_seconds = 0.0

    def __init__(self, api: BotApi, *, webhook: str = "", menu: Sequence[tuple[str, str]] = ()) -> None:
        self._api, self.webhook, self._menu = api, webhook, menu
        self.secret = secrets.token_urlsafe(32)
        """What Telegram sends along with each call of the webhook."""
        self._own_id, self._own_name = "", ""

    async def connect(self) -> ChannelAccount:
        me = cast("JsonObject", await self._api.call("getMe", {}))
        self._own_id, self._own_name = str(me["id"]), str(me["username"])
        if self._menu:
            listed = [{"command": name, "description": summary[:256]} for name, summary in self._menu]
            await self._api.call("setMyCommands", {"commands": listed})
        if self.webhook:
            wanted = {"url": self.webhook, "secret_token": self.secret, "allowed_updates": _KINDS}
            await self._api.call("setWebhook", wanted)
        else:
            await self._api.call("deleteWebhook", {})
        return ChannelAccount(self._own_id, f"@{self._own_name}", f"https://t.me/{self._own_name}?start={{code}}")

    async def poll(self, cursor: str | None) -> Poll:
        wanted: JsonObject = {"timeout": _POLL_SECONDS, "allowed_updates": _KINDS}
        # Another bot counts its updates anew, and a number of the old one would acknowledge them all unread.
        whose, _, offset = (cursor or "").rpartition(":")
        if whose == self._own_id:
            wanted["offset"] = int(offset)
        try:
            found = await self._api.call("getUpdates", wanted, wait_seconds=_POLL_SECONDS)
        except DeliveryUnknown as broken:
            # Nothing is lost: it is delivered until it was acknowledged.
            raise NotDelivered(broken.message, retry_after=1.0) from broken
        listed = cast("list[object]", found) if isinstance(found, list) else []
        raw = [cast("JsonObject", one) for one in listed if isinstance(one, dict)]
        ids = [int(cast("int", one["update_id"])) for one in raw if isinstance(one.get("update_id"), int)]
        moved = f"{self._own_id}:{max(ids) + 1}" if ids else cursor
        return Poll([update for one in raw if (update := self.read(one))], moved)

    def read(self, raw: JsonObject) -> Update | None:
        """One update of the Bot API; None if it is no message, or cannot be read."""
        try:
            pressed = cast("JsonObject | None", raw.get("callback_query"))
            if pressed is not None:
                return self._read_press(pressed)
            message = raw.get("message")
            return self._read_message(cast("JsonObject", message)) if isinstance(message, dict) else None
        except MALFORMED as error:
            _log.warning("An update of Telegram cannot be read: %s", type(error).__name__)
            return None

    def _read_message(self, message: JsonObject) -> Update | None:
        sender, chat = cast("JsonObject", message["from"]), cast("JsonObject", message["chat"])
        text = str(message.get("text") or message.get("caption") or "")
        attachments = tuple(_read_attachments(message))
        if not text and not attachments:
            return None
        answered = cast("JsonObject", cast("JsonObject", message.get("reply_to_message") or {}).get("from") or {})
        mention = f"@{self._own_name}".casefold()
        addressed = chat["type"] == "private" or mention in text.casefold() or str(answered.get("id")) == self._own_id
        return Update(
            external_id=f"{self._own_id}:{chat['id']}:{message['message_id']}",
            chat_id=str(chat["id"]),
            sender_id=str(sender["id"]),
            sender_name=_read_name(sender),
            text=text,
            sent_at=datetime.fromtimestamp(int(cast("int", message["date"])), UTC),
            addressed=addressed,
            automatic=sender.get("is_bot") is True or "via_bot" in message,
            attachments=attachments,
        )

    def _read_press(self, pressed: JsonObject) -> Update:
        sender, message = cast("JsonObject", pressed["from"]), cast("JsonObject", pressed["message"])
        return Update(
            external_id=f"{_PRESSED}{pressed['id']}",
            chat_id=str(cast("JsonObject", message["chat"])["id"]),
            sender_id=str(sender["id"]),
            sender_name=_read_name(sender),
            text=str(pressed["data"]),
            sent_at=datetime.now(UTC),
            automatic=sender.get("is_bot") is True,
            pressed=str(pressed["id"]),
        )

    async def send(self, chat_id: str, part: OutgoingPart) -> str:
        wanted: JsonObject = {"chat_id": chat_id}
        answered = self.find_message_id(part.reply_to or "") or ""
        if chat_id.startswith("-") and answered.isdecimal():  # in a group others may have written in between
            wanted["reply_parameters"] = {"message_id": int(answered), "allow_sending_without_reply": True}
        if part.file is not None:
            caption = {"caption": render_plain(part.text)[:1000]} if part.text else {}
            sent = await self._api.call("sendDocument", wanted | caption, file=("document", part.file))
        else:
            sent = await self._call_with_text("sendMessage", wanted, part)
        return str(cast("JsonObject", sent)["message_id"])

    async def edit(self, chat_id: str, sent_id: str, part: OutgoingPart) -> None:
        await self._call_with_text("editMessageText", {"chat_id": chat_id, "message_id": int(sent_id)}, part)

    async def remove(self, chat_id: str, sent_ids: Sequence[str]) -> None:
        for start in range(0, len(sent_ids), 100):
            wanted = [int(one) for one in sent_ids[start : start + 100]]
            await self._api.call("deleteMessages", {"chat_id": chat_id, "message_ids": wanted})

    def find_message_id(self, external_id: str) -> str | None:
        return None if external_id.startswith(_PRESSED) else external_id.rpartition(":")[2] or None

    async def show_typing(self, chat_id: str) -> None:
        await self._api.call("sendChatAction", {"chat_id": chat_id, "action": "typing"})

    async def acknowledge(self, pressed: str, text: str = "") -> None:
        await self._api.call("answerCallbackQuery", {"callback_query_id": pressed, "text": text[:200]})

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        found = cast("JsonObject", await self._api.call("getFile", {"file_id": attachment.id}))
        await self._api.download(str(found["file_path"]), target, most_bytes)

    async def close(self) -> None:
        await self._api.close()

    async def _call_with_text(self, method: str, wanted: JsonObject, part: OutgoingPart) -> object:
        """In HTML; as plain text if Telegram cannot parse that, which it says before it sends anything."""
        keyboard = [[{"text": one.label, "callback_data": one.command}] for one in part.buttons]
        wanted = wanted | {"link_preview_options": {"is_disabled": True}, "reply_markup": {"inline_keyboard": keyboard}}
        try:
            return await self._api.call(method, wanted | {"text": render_html(part.text), "parse_mode": "HTML"})
        except NotDelivered as refused:
            if refused.retry_after is not None or "parse" not in refused.message:
                raise
            return await self._api.call(method, wanted | {"text": render_plain(part.text)})


def _read_name(sender: JsonObject) -> str:
    names = (sender.get("first_name"), sender.get("last_name"))
    return str(sender.get("username") or " ".join(str(one) for one in names if one))


def _read_attachments(message: JsonObject) -> list[Attachment]:
    found: list[Attachment] = []
    photos = cast("list[JsonObject]", message.get("photo") or [])
    if photos:
        largest = photos[-1]
        found.append(Attachment(id=str(largest["file_id"]), name="photo.jpg", kind="image", size=_read_size(largest)))
    for key, kind in _FILES.items():
        one = cast("JsonObject | None", message.get(key))
        if one is not None:
            name = str(one.get("file_name") or key)
            found.append(Attachment(id=str(one["file_id"]), name=name, kind=kind, size=_read_size(one)))
    return found


def _read_size(one: JsonObject) -> int | None:
    size = one.get("file_size")
    return size if isinstance(size, int) else None
