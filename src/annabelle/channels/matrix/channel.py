"""Matrix as a channel: long polling of `/sync`, and messages that a repeat does not double."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
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
from annabelle.channels.markdown import render_plain, render_web_html, write_buttons
from annabelle.channels.matrix.client_api import MatrixApi, MatrixRefused
from annabelle.core.ids import new_id
from annabelle.core.messages import MATRIX
from annabelle.core.tools import JsonObject

_POLL_SECONDS: Final = 50
_TYPING_MILLISECONDS: Final = 6_000
_MESSAGE, _ENCRYPTED, _ENCRYPTION = "m.room.message", "m.room.encrypted", "m.room.encryption"
_NOTHING: Final[JsonObject] = {"types": []}
_FILTER: Final = json.dumps(
    {
        "room": {
            "timeline": {"limit": 50, "types": [_MESSAGE, _ENCRYPTED, _ENCRYPTION]},
            "state": {"types": [_ENCRYPTION]},
            "ephemeral": _NOTHING,
            "account_data": _NOTHING,
        },
        "presence": _NOTHING,
        "account_data": _NOTHING,
    }
)
_MOST_PAGES: Final = 10
_BEFORE_ENTERING: Final = timedelta(minutes=2)
_TOLD: Final = "annabelle.encryption_told"
"""Kept by the homeserver with the room, so that it is said once."""
_CANNOT_READ: Final = "I cannot read encrypted rooms. Please write to me in one without encryption."
_FILES: Final[dict[str, Literal["file", "image"]]] = {
    "m.file": "file",
    "m.image": "image",
    "m.audio": "file",
    "m.video": "file",
}
_VOICE: Final = "org.matrix.msc3245.voice"
_log = logging.getLogger(__name__)


class MatrixChannel:
    name = MATRIX
    longest = 6000
    can_remove = True
    editable = True
    repeat_seconds = 1800.0
    """Homeservers keep transaction ids for half an hour at least."""

    def __init__(self, api: MatrixApi, may_enter: Callable[[str], Awaitable[bool]]) -> None:
        """`may_enter`: whether Annabelle follows the invitation of this account."""
        self._api, self._may_enter = api, may_enter
        self._own_id, self._own_name = "", ""
        self._members: dict[str, int] = {}
        self._entered: dict[str, datetime] = {}

    async def connect(self) -> ChannelAccount:
        self._own_id = str((await self._api.get("account", "whoami"))["user_id"])
        try:
            profile = await self._api.get("profile", self._own_id)
        except NotDelivered:
            profile = {}
        self._own_name = str(profile.get("displayname") or "")
        return ChannelAccount(self._own_id, self._own_id, f"https://matrix.to/#/{self._own_id}")

    async def poll(self, cursor: str | None) -> Poll:
        query = {"filter": _FILTER, "timeout": str(_POLL_SECONDS * 1000 if cursor else 0)}
        if cursor is not None:
            query["since"] = cursor
        try:
            found = await self._api.get("sync", query=query, wait_seconds=_POLL_SECONDS)
            rooms = _read_object(found, "rooms")
            for room_id, invitation in _each_object(_read_object(rooms, "invite")):
                await self._answer_invitation(room_id, invitation)
            updates: list[Update] = []
            for room_id, room in _each_object(_read_object(rooms, "join")):
                updates += await self._read_room(room_id, room, cursor)
        except DeliveryUnknown as broken:
            # Nothing is lost: the same `since` brings the same again.
            raise NotDelivered(broken.message, retry_after=1.0) from broken
        # What was said before Annabelle came is not said to her.
        return Poll(updates if cursor is not None else [], str(found["next_batch"]))

    async def send(self, chat_id: str, part: OutgoingPart) -> str:
        key = part.key or new_id("txn")
        if part.file is not None:
            uploaded: JsonObject = {"msgtype": "m.file", "body": part.file.name} | await self._api.upload(part.file)
            return await self._put_message(chat_id, key, uploaded)
        content = _write_text(part)
        try:
            return await self._put_message(chat_id, key, content)
        except MatrixRefused as refused:
            if refused.reason not in ("M_TOO_LARGE", "M_BAD_JSON"):
                raise
            plain = {name: content[name] for name in ("msgtype", "body")}
            return await self._put_message(chat_id, f"{key}.plain", plain)

    async def edit(self, chat_id: str, sent_id: str, part: OutgoingPart) -> None:
        content = _write_text(part)
        relation = {"rel_type": "m.replace", "event_id": sent_id}
        changed: JsonObject = {**content, "m.new_content": content, "m.relates_to": relation}
        await self._put_message(chat_id, new_id("txn"), changed)

    async def remove(self, chat_id: str, sent_ids: Sequence[str]) -> None:
        for sent_id in sent_ids:
            await self._api.put("rooms", chat_id, "redact", sent_id, new_id("txn"), body={})

    def find_message_id(self, external_id: str) -> str | None:
        return external_id or None

    async def show_typing(self, chat_id: str) -> None:
        sign = {"typing": True, "timeout": _TYPING_MILLISECONDS}
        await self._api.put("rooms", chat_id, "typing", self._own_id, body=sign)

    async def acknowledge(self, pressed: str, text: str = "") -> None:
        """There are no buttons."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        await self._api.download(attachment.id, target, most_bytes)

    async def close(self) -> None:
        await self._api.close()

    async def _answer_invitation(self, room_id: str, invitation: JsonObject) -> None:
        events = list(_each_event(_read_object(invitation, "invite_state")))
        inviter = next((str(one.get("sender")) for one in events if _is_invitation(one, self._own_id)), "")
        with _going_on_without("An invitation into a room of Matrix"):
            if not await self._may_enter(inviter):
                await self._api.post("rooms", room_id, "leave", body={})
                return
            await self._api.post("rooms", room_id, "join", body={})
            self._entered[room_id] = datetime.now(UTC)
            if any(one.get("type") == _ENCRYPTION for one in events):
                await self._tell_encrypted(room_id)

    async def _read_room(self, room_id: str, room: JsonObject, since: str | None) -> list[Update]:
        counted = _read_object(room, "summary").get("m.joined_member_count")
        if isinstance(counted, int):
            self._members[room_id] = counted
        timeline = _read_object(room, "timeline")
        events = list(_each_event(timeline))
        entered = self._entered.pop(room_id, None)
        if entered is not None:
            # What was written with the invitation counts, the history of the room does not.
            since_then = (entered - _BEFORE_ENTERING).timestamp() * 1000
            events = [one for one in events if _read_time(one) >= since_then]
        elif since is not None and timeline.get("limited") is True:
            with _going_on_without("What was written in a room of Matrix meanwhile"):
                events = await self._load_missed(room_id, str(timeline.get("prev_batch")), since) + events
        seen = [*_each_event(_read_object(room, "state")), *events]
        if any(one.get("type") in (_ENCRYPTION, _ENCRYPTED) for one in seen):
            with _going_on_without("A word in an encrypted room of Matrix"):
                await self._tell_encrypted(room_id)
        updates: list[Update] = []
        for event in events:
            update = None
            try:
                with _going_on_without("An event of Matrix"):
                    update = await self._read_event(room_id, event)
            except MALFORMED as error:
                _log.warning("An event of Matrix cannot be read: %s", type(error).__name__)
                continue
            if update is not None:
                updates.append(update)
        return updates

    async def _load_missed(self, room_id: str, start: str, since: str) -> list[JsonObject]:
        """What lies between the last sync and the events of this one, oldest first."""
        missed: list[JsonObject] = []
        query = {"dir": "b", "from": start, "to": since, "limit": "100"}
        for _ in range(_MOST_PAGES):
            page = await self._api.get("rooms", room_id, "messages", query=query)
            missed += _each_event({"events": page.get("chunk")})
            if not page.get("chunk") or not page.get("end"):
                break
            query["from"] = str(page["end"])
        return missed[::-1]

    async def _read_event(self, room_id: str, event: JsonObject) -> Update | None:
        content = _read_object(event, "content")
        kind, relation = content.get("msgtype"), _read_object(content, "m.relates_to")
        if event.get("type") != _MESSAGE or not kind or relation.get("rel_type") == "m.replace":
            return None
        sender, text = str(event["sender"]), str(content.get("body") or "")
        attachments: tuple[Attachment, ...] = ()
        if (file_kind := _FILES.get(str(kind))) is not None:
            name = str(content.get("filename") or text or "file")
            size = _read_object(content, "info").get("size")
            known = size if isinstance(size, int) else None
            said = "voice" if _VOICE in content else file_kind
            attachments = (Attachment(id=str(content["url"]), name=name, kind=said, size=known),)
            text = text if "filename" in content and text != name else ""
        sent_at = datetime.fromtimestamp(int(cast("int", event["origin_server_ts"])) / 1000, UTC)
        return Update(
            external_id=str(event["event_id"]),
            chat_id=room_id,
            sender_id=sender,
            sender_name=sender,
            text=text,
            sent_at=sent_at,
            addressed=await self._is_addressed(room_id, content),
            automatic=sender == self._own_id or kind == "m.notice",
            attachments=attachments,
        )

    async def _is_addressed(self, room_id: str, content: JsonObject) -> bool:
        """Everything in a room for two; elsewhere what names Annabelle or replies to her."""
        named = _read_object(content, "m.mentions").get("user_ids")
        mentioned = isinstance(named, list) and self._own_id in named
        text = str(content.get("body") or "").casefold()
        spoken_to = any(one and one.casefold() in text for one in (self._own_id, self._own_name))
        return mentioned or spoken_to or await self._count_members(room_id) <= 2

    async def _count_members(self, room_id: str) -> int:
        if room_id not in self._members:
            found = await self._api.get("rooms", room_id, "joined_members")
            self._members[room_id] = len(_read_object(found, "joined"))
        return self._members[room_id]

    async def _tell_encrypted(self, room_id: str) -> None:
        place = ("user", self._own_id, "rooms", room_id, "account_data", _TOLD)
        try:
            await self._api.get(*place)
        except MatrixRefused as missing:
            if missing.reason != "M_NOT_FOUND":
                raise
            await self._put_message(room_id, f"{_TOLD}.{room_id}", {"msgtype": "m.text", "body": _CANNOT_READ})
            await self._api.put(*place, body={})

    async def _put_message(self, room_id: str, key: str, content: JsonObject) -> str:
        return str((await self._api.put("rooms", room_id, "send", _MESSAGE, key, body=content))["event_id"])


@contextmanager
def _going_on_without(what: str) -> Generator[None]:
    """A refusal that stays in one room must not hold up the others; one that asks to wait goes to the caller."""
    try:
        yield
    except MatrixRefused as refused:
        if refused.retry_after is not None:
            raise
        _log.info("%s is left out: %s", what, refused.message)


def _write_text(part: OutgoingPart) -> JsonObject:
    text = write_buttons(part)
    return {
        "msgtype": "m.text",
        "body": render_plain(text),
        "format": "org.matrix.custom.html",
        "formatted_body": render_web_html(text),
        # No preview: what is fetched for one can carry data out (MSC4095).
        "com.beeper.linkpreviews": [],
    }


def _is_invitation(event: JsonObject, own_id: str) -> bool:
    invited = event.get("type") == "m.room.member" and event.get("state_key") == own_id
    return invited and _read_object(event, "content").get("membership") == "invite"


def _read_time(event: JsonObject) -> float:
    """Milliseconds; 0 if it does not say."""
    at = event.get("origin_server_ts")
    return at if isinstance(at, int | float) else 0


def _read_object(parent: JsonObject, name: str) -> JsonObject:
    """An object below, empty if there is none: a homeserver leaves out what is empty."""
    found = parent.get(name)
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def _each_object(parent: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for name in parent:
        yield name, _read_object(parent, name)


def _each_event(parent: JsonObject) -> Iterator[JsonObject]:
    listed = parent.get("events")
    for event in cast("list[object]", listed) if isinstance(listed, list) else []:
        if isinstance(event, dict):
            yield cast("JsonObject", event)
