"""Telethon's objects as ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from telethon import utils
from telethon.tl import types

from annabelle.servers.telegram import models
from annabelle.servers.telegram.mtproto import shapes

_LAST_TEXT_CHARS = 200
_TELEGRAM_ITSELF = 777000
_WITHHELD = "[A message of Telegram itself, which may hold a sign-in code: read it in Telegram's own app.]"


def marked_id(entity: object) -> int:
    """An id that tells a person, a group and a channel apart, as every other client shows it."""
    return cast("int", utils.get_peer_id(entity))  # pyright: ignore[reportUnknownMemberType]


def name_of(entity: object | None) -> str:
    return utils.get_display_name(entity) if entity is not None else ""  # pyright: ignore[reportUnknownMemberType]


def person(user: shapes.User) -> models.Person:
    return models.Person(
        id=user.id,
        name=name_of(user) or ("Deleted account" if user.deleted else ""),
        username=user.username,
        phone=f"+{user.phone.lstrip('+')}" if user.phone else None,
        bot=bool(user.bot),
        contact=bool(user.contact),
    )


def people(found: Iterable[object]) -> list[models.Person]:
    return [person(cast("shapes.User", one)) for one in found if isinstance(one, types.User)]


def chat(entity: object, about: str = "", members: int | None = None) -> models.Chat:
    return models.Chat(
        id=marked_id(entity),
        title=name_of(entity),
        kind=_kind(entity),
        username=cast("str | None", getattr(entity, "username", None)),
        members=members if members is not None else cast("int | None", getattr(entity, "participants_count", None)),
        about=about,
    )


def dialog(found: shapes.Dialog) -> models.Chat:
    last = found.message
    return models.Chat(
        id=found.id,
        title=name_of(found.entity),
        kind=_kind(found.entity),
        username=cast("str | None", getattr(found.entity, "username", None)),
        unread=found.unread_count,
        members=cast("int | None", getattr(found.entity, "participants_count", None)),
        last_id=last.id if last is not None else 0,
        read_id=found.dialog.read_inbox_max_id,
        last_at=last.date if last is not None else None,
        last_text=_text(last)[:_LAST_TEXT_CHARS] if last is not None else "",
    )


def message(found: shapes.Message, me: int) -> models.Message:
    return models.Message(
        id=found.id,
        chat_id=found.chat_id,
        at=found.date,
        text=_text(found),
        # What the account writes to itself, or forwards there, is its own too, whatever the flag says.
        own=bool(found.out) or found.sender_id == me,
        sender=name_of(found.sender),
        sender_id=found.sender_id,
        reply_to=found.reply_to_msg_id,
        media=media(found),
    )


def messages(found: Iterable[shapes.Message | None], me: int) -> list[models.Message]:
    return [message(one, me) for one in found if one is not None]


def media(found: shapes.Message) -> models.Media | None:
    if found.media is None:
        return None
    kind = _words(type(found.media).__name__.removeprefix("MessageMedia"))
    file = found.file
    if file is None:
        return None if kind in ("empty", "web page") else models.Media(kind)
    return models.Media(kind, file.name, file.mime_type, file.size)


def _text(found: shapes.Message) -> str:
    if _TELEGRAM_ITSELF in (found.chat_id, found.sender_id):
        return _WITHHELD  # whoever reads the code can take the account, so no model does
    if found.action is not None:
        return f"[{_words(type(found.action).__name__.removeprefix('MessageAction'))}]"
    return found.message or ""


def _words(name: str) -> str:
    """`ChatAddUser` → "chat add user"."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()


def _kind(entity: object) -> models.ChatKind:
    if isinstance(entity, types.User):
        return "bot" if entity.bot else "private"
    if isinstance(entity, types.Channel) and not entity.megagroup:
        return "channel"
    return "group"
