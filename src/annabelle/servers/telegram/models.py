"""Chats, people and messages as the tools know them. What Telegram's library calls them stays in `mtproto`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ChatKind = Literal["private", "bot", "group", "channel"]
Progress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at Telegram. `phone` is known of contacts only."""

    id: int
    name: str
    username: str | None = None
    phone: str | None = None
    bot: bool = False
    contact: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation. `last_id` is its newest message, `read_id` the newest one the user has read."""

    id: int
    title: str
    kind: ChatKind
    username: str | None = None
    unread: int = 0
    members: int | None = None
    last_id: int = 0
    read_id: int = 0
    last_at: datetime | None = None
    last_text: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Media:
    """What a message carries beside its text. `size` is unknown for some kinds."""

    kind: str
    name: str | None = None
    media_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `own` ones were sent by the account itself, from here or from any other device."""

    id: int
    chat_id: int
    at: datetime
    text: str
    own: bool
    sender: str = ""
    sender_id: int | None = None
    reply_to: int | None = None
    media: Media | None = None


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A group that was made, and who could not be put into it."""

    chat: Chat
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Download:
    """The content of a message's media, with the name its sender gave it, if any."""

    name: str
    data: bytes
