"""One signed-in account at Telegram, with Telethon."""

from __future__ import annotations

import asyncio
import logging
import re
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, cast

from telethon import TelegramClient, errors
from telethon.sessions import StringSession
from telethon.tl import functions, types

from annabelle import __version__
from annabelle.core.connections import TelegramAccount
from annabelle.core.errors import ConfigMistake, InvalidArguments, NotFound
from annabelle.servers.telegram import api
from annabelle.servers.telegram.api import CONNECT, OutgoingFile, OutgoingMessage, SignedOut
from annabelle.servers.telegram.mtproto import conversion
from annabelle.servers.telegram.mtproto.conversion import TelethonClient, TelethonEntity, TelethonUser
from annabelle.servers.telegram.mtproto.telegram_errors import chat_not_found, translate_errors

T = TypeVar("T")

_ID = re.compile(r"-?[0-9]{1,20}")
_PHONE = re.compile(r"\+[0-9\s().-]{5,30}")
_USERNAME = re.compile(r"(?:@|(?:https?://)?(?:t|telegram)\.me/)?([A-Za-z][A-Za-z0-9_]{2,31})/?")
_LARGEST_ID = 2**53
_KNOWN_CHATS = 500
_NEWEST_CHATS = 50


class ChatResolver:
    """Resolves chat names and ids. Ids the account has not seen are looked up in the list of chats."""

    def __init__(self, client: TelethonClient) -> None:
        self._client = client
        self._looked_through = False

    async def resolve_entity(self, chat: str) -> TelethonEntity:
        return await self._resolve(chat, self._client.get_entity)

    async def resolve_peer(self, chat: str) -> object:
        """Resolve to what a request needs, mostly without asking Telegram."""
        return await self._resolve(chat, self._client.get_input_entity)

    async def _resolve(self, chat: str, ask: Callable[[object], Awaitable[T]]) -> T:
        what = f"The chat {chat[:60]!r}"
        name = _parse_chat(chat)
        if name is None:
            raise chat_not_found(what)
        with translate_errors(what):
            try:
                return await ask(name)
            except (ValueError, TypeError) as error:  # the library cannot resolve the name
                if not isinstance(name, int):
                    raise chat_not_found(what) from error
            # A chat created since the last lookup is among the newest.
            await self._client.get_dialogs(limit=_NEWEST_CHATS if self._looked_through else _KNOWN_CHATS)
            self._looked_through = True
            try:
                return await ask(name)
            except (ValueError, TypeError) as error:
                raise chat_not_found(what) from error


def _parse_chat(chat: str) -> int | str | None:
    name = chat.strip()
    if name.lower() in ("me", "self"):
        return "me"
    if _ID.fullmatch(name):
        number = int(name)
        return number if 0 < abs(number) < _LARGEST_ID else None
    if _PHONE.fullmatch(name):
        return "+" + "".join(char for char in name if char.isdecimal())
    found = _USERNAME.fullmatch(name)
    return f"@{found[1]}" if found else None


REQUEST_SECONDS = 30.0
_SHORT_WAIT_SECONDS = 5
"""Shorter waits that Telegram asks for are waited out."""


@asynccontextmanager
async def _request(what: str, *, changes: bool = False) -> AsyncGenerator[None]:
    """Bound the time of a request, and translate its errors."""
    with translate_errors(what, changes=changes):
        async with asyncio.timeout(REQUEST_SECONDS):
            yield


def make_api(account: TelegramAccount) -> TelethonApi:
    """Make the api for an account; nothing is sent before `connect`."""
    # At lower levels the library logs message contents.
    logging.getLogger("telethon").setLevel(logging.WARNING)
    try:
        session = StringSession(account.session.get_secret_value())
        client = TelegramClient(
            session,
            account.api_id,
            account.api_hash.get_secret_value(),
            device_model="Annabelle",
            app_version=__version__,
            flood_sleep_threshold=_SHORT_WAIT_SECONDS,
            request_retries=2,
            connection_retries=3,
            raise_last_call_error=True,
            receive_updates=False,  # new messages are fetched, so that none is missed while disconnected
        )
    except (ValueError, struct.error) as error:
        raise ConfigMistake("The kept Telegram session can not be read.", hint=CONNECT, field="telegram") from error
    return TelethonApi(cast("TelethonClient", client))


class TelethonApi:
    """One signed-in account. Chats are named by id, @username, +phone or "me".

    Raises only NotFound, NotAllowed, InvalidArguments, TooManyRequests, Unavailable or OutcomeUnknown.
    """

    def __init__(self, client: TelethonClient) -> None:
        self._client, self._resolver = client, ChatResolver(client)
        self._me: TelethonUser | None = None

    @property
    def connected(self) -> bool:
        return self._client.is_connected()

    async def connect(self) -> None:
        """Open the connection; raises SignedOut if the session has ended."""
        with translate_errors("Telegram"):
            await self._client.connect()
            # None means that the session has ended. The library's own check also fails on temporary errors.
            self._me = await self._client.get_me()
        if self._me is None:
            raise SignedOut

    async def close(self) -> None:
        await self._client.disconnect()

    async def me(self) -> api.TelegramPerson:
        assert self._me is not None
        return conversion.to_person(self._me)

    async def chats(self, limit: int) -> list[api.TelegramChat]:
        async with _request("The chats"):
            return [conversion.dialog_to_chat(found) for found in await self._client.get_dialogs(limit=limit)]

    async def chat(self, chat: str) -> api.TelegramChat:
        async with _request(f"The chat {chat[:60]!r}"):
            entity = await self._resolver.resolve_entity(chat)
            about, members = await self._get_details(entity)
        return conversion.to_chat(entity, about, members)

    async def create_group(self, title: str, people: Sequence[str]) -> api.NewGroup:
        async with _request("The group", changes=True):
            invited = [cast("types.TypeInputUser", await self._resolver.resolve_peer(one)) for one in people]
            made = await self._client(functions.messages.CreateChatRequest(users=invited, title=title))
        updates = cast("types.Updates", getattr(made, "updates", made))
        left_out = cast("list[types.MissingInvitee]", getattr(made, "missing_invitees", []))
        chats = [one for one in cast("list[object]", updates.chats) if isinstance(one, types.Chat)]
        if not chats:
            raise NotFound("Telegram made a group and did not say which.", hint="list_chats shows it.")
        return api.NewGroup(conversion.to_chat(chats[0]), tuple(one.user_id for one in left_out))

    async def contacts(self) -> list[api.TelegramPerson]:
        async with _request("The contacts"):
            found = await self._client(functions.contacts.GetContactsRequest(hash=0))
        return conversion.to_people(cast("list[object]", getattr(found, "users", [])))

    async def add_contact(self, phone: str, first_name: str, last_name: str) -> api.TelegramPerson:
        contact = types.InputPhoneContact(client_id=0, phone=phone, first_name=first_name, last_name=last_name)
        async with _request("The contact", changes=True):
            done = await self._client(functions.contacts.ImportContactsRequest([contact]))
        found = conversion.to_people(cast("list[object]", getattr(done, "users", [])))
        if not found:
            raise NotFound(
                f"Nobody at Telegram has the number {phone}, or they do not let themselves be found by it.",
                hint="Ask them for their username, and use search_users.",
            )
        return found[0]

    async def search_people(self, query: str, limit: int) -> list[api.TelegramPerson]:
        async with _request("The search"):
            found = await self._client(functions.contacts.SearchRequest(q=query, limit=limit))
        return conversion.to_people(cast("list[object]", getattr(found, "users", [])))[:limit]

    async def messages(self, chat: str, limit: int, before: int | None = None) -> list[api.TelegramMessage]:
        """Newest first."""
        return await self._get_messages(chat, limit=limit, offset_id=before or 0)

    async def messages_after(self, chat: str, after: int, limit: int) -> list[api.TelegramMessage]:
        """Oldest first."""
        return await self._get_messages(chat, limit=limit, min_id=after, reverse=True)

    async def search(self, query: str, chat: str | None, limit: int) -> list[api.TelegramMessage]:
        return await self._get_messages(chat, limit=limit, search=query)

    async def send(self, chat: str, outgoing: OutgoingMessage) -> int | None:
        """Return the message id, or None if it had already been sent."""
        peer = await self._resolve_peer(chat)
        reply = types.InputReplyToMessage(outgoing.reply_to) if outgoing.reply_to is not None else None
        request = functions.messages.SendMessageRequest(
            peer=cast("types.TypeInputPeer", peer),
            message=outgoing.text,
            random_id=outgoing.random_id,
            reply_to=reply,
            no_webpage=not outgoing.preview,
        )
        async with _request(f"The chat {chat[:60]!r}", changes=True):
            try:
                return _find_sent_id(await self._client(request), outgoing.random_id)
            except errors.RandomIdDuplicateError:
                return None  # this message has already been sent

    async def delete(self, chat: str, ids: Sequence[int]) -> list[int]:
        """Return the ids that were in this chat and are now deleted."""
        peer = await self._resolve_peer(chat)
        async with _request(f"The chat {chat[:60]!r}", changes=True):
            # Telegram deletes by number alone and numbers all private chats and groups together, so leave out
            # messages of other chats.
            here = [one.id for one in await self._client.get_messages(peer, ids=list(ids)) if one is not None]
            if here:
                await self._client.delete_messages(peer, here, revoke=True)
        return here

    async def mark_read(self, chat: str, up_to: int | None) -> None:
        peer = await self._resolve_peer(chat)
        async with _request(f"The chat {chat[:60]!r}"):
            await self._client.send_read_acknowledge(peer, max_id=up_to)

    async def send_file(self, chat: str, file: OutgoingFile, progress: api.ReportProgress) -> int:
        peer = await self._resolve_peer(chat)
        with translate_errors(f"The chat {chat[:60]!r}", changes=True):
            return await conversion.upload_file(self._client, peer, file, progress)

    async def download(self, chat: str, message_id: int, max_bytes: int, progress: api.ReportProgress) -> api.Download:
        peer = await self._resolve_peer(chat)
        async with _request(f"The chat {chat[:60]!r}"):
            found = (await self._client.get_messages(peer, ids=[message_id]))[0]
        if found is None:
            raise NotFound(f"There is no message {message_id} in this chat.", hint="get_messages shows the ids.")
        if found.file is None:
            raise InvalidArguments(f"Message {message_id} carries no file.", field="message_id")
        with translate_errors(f"The chat {chat[:60]!r}"):
            return await conversion.download_file(self._client, found, max_bytes, progress)

    async def _get_messages(self, chat: str | None, **options: object) -> list[api.TelegramMessage]:
        peer = None if chat is None else await self._resolve_peer(chat)
        async with _request("The messages"):
            found = await self._client.get_messages(peer, **options)
        assert self._me is not None
        return conversion.to_messages(found, self._me.id)

    async def _resolve_peer(self, chat: str) -> object:
        async with _request(f"The chat {chat[:60]!r}"):
            return await self._resolver.resolve_peer(chat)

    async def _get_details(self, entity: object) -> tuple[str, int | None]:
        """A chat's description and its number of members."""
        # The library converts the entity to what each request needs.
        match entity:
            case types.User():
                request = functions.users.GetFullUserRequest(cast("types.TypeInputUser", entity))
            case types.Channel():
                request = functions.channels.GetFullChannelRequest(cast("types.TypeInputChannel", entity))
            case types.Chat():
                request = functions.messages.GetFullChatRequest(entity.id)
            case _:
                raise chat_not_found("The chat")
        found = await self._client(request)
        full = getattr(found, "full_user", None) or getattr(found, "full_chat", None)
        return str(getattr(full, "about", None) or ""), cast("int | None", getattr(full, "participants_count", None))


def _find_sent_id(answer: object, random_id: int) -> int | None:
    if isinstance(answer, types.UpdateShortSentMessage):
        return answer.id
    for update in cast("list[object]", getattr(answer, "updates", [])):
        if isinstance(update, types.UpdateMessageID) and update.random_id == random_id:
            return update.id
    return None
