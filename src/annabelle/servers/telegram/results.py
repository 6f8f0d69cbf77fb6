"""Arguments and results that several tools share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from annabelle.core.result_text import for_model, read_on
from annabelle.servers.kit import Result
from annabelle.servers.telegram.api import TelegramMedia, TelegramMessage

MESSAGE_CHARS = 4096
ALL_CHARS = 150_000
"""The most characters of all messages in one answer; long messages are cut evenly."""


def _none_if_empty(text: str | None) -> str | None:
    return text or None


TextOrNone = Annotated[str | None, AfterValidator(_none_if_empty)]


class PersonEntry(Result):
    model_config = ConfigDict(from_attributes=True, coerce_numbers_to_str=True)

    chat_id: str = Field(validation_alias="id", description="For the tools that take a chat_id")
    name: str
    username: str | None = None
    phone: str | None = None
    bot: bool = False
    contact: bool = False

    def to_text(self) -> str:
        known = [f"@{self.username}" if self.username else None, self.phone, "bot" if self.bot else None]
        return " ".join([self.name or "(no name)", *filter(None, known), for_model(f"[{self.chat_id}]")]).rstrip()


class PeopleResult(Result):
    people: list[PersonEntry]
    total: int = Field(description="How many there are; the list has the first of them")

    def to_text(self) -> str:
        cut = [f"({self.total - len(self.people)} more)"] if self.total > len(self.people) else []
        return "\n".join([*(one.to_text() for one in self.people), *cut]) or "Nobody was found."


class ChatEntry(Result):
    model_config = ConfigDict(from_attributes=True, coerce_numbers_to_str=True)

    chat_id: str = Field(validation_alias="id")
    title: str
    kind: str = Field(description="private, bot, group or channel")
    username: str | None = None
    unread: int = 0
    members: int | None = None
    last_message: TextOrNone = Field(default=None, validation_alias="last_text")
    last_at: datetime | None = None
    about: TextOrNone = None

    def to_text(self) -> str:
        parts = [
            f"{self.title or '(no title)'} {for_model(f'[{self.chat_id}] ')}{self.kind}",
            f"@{self.username}" if self.username else "",
            f"{self.members} members" if self.members is not None else "",
            f"{self.unread} unread" if self.unread else "",
            f"last {self.last_at:%Y-%m-%d %H:%M}: {' '.join((self.last_message or '').split())}"
            if self.last_at
            else "",
            self.about or "",
        ]
        return " · ".join(filter(None, parts))


class ChatList(Result):
    chats: list[ChatEntry]

    def to_text(self) -> str:
        return "\n".join(chat.to_text() for chat in self.chats) or "There are no chats."


class MessageEntry(Result):
    message_id: int
    chat_id: str
    at: datetime
    sender: str
    own: bool = Field(description="Sent by this account")
    content: str
    cut: bool = Field(default=False, description="Only the beginning; get_messages with a small limit shows all of it")
    reply_to: int | None = None
    media: TelegramMedia | None = Field(default=None, description="download_media fetches it")

    @classmethod
    def from_message(cls, message: TelegramMessage, max_chars: int = MESSAGE_CHARS) -> MessageEntry:
        return cls(
            message_id=message.id,
            chat_id=str(message.chat_id),
            at=message.at,
            sender=message.sender or (str(message.sender_id) if message.sender_id else ""),
            own=message.own,
            content=message.text[:max_chars],
            cut=len(message.text) > max_chars,
            reply_to=message.reply_to,
            media=message.media,
        )

    def to_text(self) -> str:
        media = f" <{self.media.kind}{f' {self.media.name}' if self.media.name else ''}>" if self.media else ""
        reply = f" (reply{for_model(f' to #{self.reply_to}')})" if self.reply_to else ""
        who = "me" if self.own else self.sender
        end = " …" if self.cut else ""
        name = for_model(f"#{self.message_id} ")
        return f"{name}{self.at:%Y-%m-%d %H:%M} {who}{reply}:{media} {self.content}{end}".rstrip()


def message_entries(messages: Sequence[TelegramMessage], total: int | None = None) -> list[MessageEntry]:
    """Messages for an answer; `total` is the number in the whole answer if these are not all."""
    most = min(MESSAGE_CHARS, ALL_CHARS // max(1, total or len(messages)))
    return [MessageEntry.from_message(message, most) for message in messages]


class TelegramMessageList(Result):
    messages: list[MessageEntry]
    next_offset_id: int | None = Field(default=None, description="offset_id that brings the messages before these")

    def to_text(self) -> str:
        if not self.messages:
            return "There are no messages."
        several = len({message.chat_id for message in self.messages}) > 1
        lines = [
            f"{for_model(f'[{one.chat_id}] ')}{one.to_text()}" if several else one.to_text() for one in self.messages
        ]
        more = [read_on(f"(older ones: offset_id {self.next_offset_id})")] if self.next_offset_id else []
        return "\n".join([*lines, *more])


MAX_MESSAGE_ID = 2**31 - 1

ChatId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        description='The chat: an id as list_chats shows it, @username, a contact\'s +phone, or "me"',
    ),
]
MessageId = Annotated[int, Field(ge=1, le=MAX_MESSAGE_ID, description="Id of the message in this chat")]
