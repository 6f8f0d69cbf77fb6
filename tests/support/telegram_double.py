"""Telegram's side in memory: accounts, chats and messages that stay, behind a client that answers as Telethon's does.

Objects are the library's own. Every call must fit the signature of the real client's method, and every raw request is
resolved and serialised as it would be for the wire, so that what passes here is what Telethon takes.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from telethon import TelegramClient, errors, utils
from telethon.tl import custom, functions, types

STARTED = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ME = 1000
_SIGNATURES = {"get_messages": "iter_messages", "get_dialogs": "iter_dialogs"}


class TelegramDouble:
    """What Telegram knows. `clients` counts the connections that were made to it."""

    def __init__(self) -> None:
        self.users: dict[int, types.User] = {}
        self.chats: dict[int, types.Chat | types.Channel] = {}
        self.messages: dict[int, list[types.Message]] = {}
        self.files: dict[int, bytes] = {}
        self.read_up_to: dict[int, int] = {}
        self.contacts: set[int] = set()
        self.random_ids: dict[int, int] = {}
        self.previewed: list[str] = []
        """What was sent so that Telegram looks at its links."""
        self.not_addable: set[int] = set()
        self.failures: list[Exception] = []
        self.revoked = False
        self.clients: list[ClientDouble] = []
        self.requests: list[str] = []
        self.gate: asyncio.Event | None = None
        self.waiting = asyncio.Event()
        self._last_id = 0
        self.user("Me", id=ME, username="myself", phone="4915100000", is_self=True)

    def user(self, name: str, *, id: int, contact: bool = False, **more: Any) -> types.User:
        first, _, last = name.partition(" ")
        made = types.User(id=id, first_name=first, last_name=last or None, access_hash=id * 7, contact=contact, **more)
        self.users[id] = made
        if contact:
            self.contacts.add(id)
        return made

    def group(self, title: str, *, id: int, members: int = 3) -> int:
        photo = types.ChatPhotoEmpty()
        self.chats[id] = types.Chat(
            id=id, title=title, photo=photo, participants_count=members, date=STARTED, version=1
        )
        return utils.get_peer_id(self.chats[id])

    def channel(self, title: str, *, id: int, username: str | None = None) -> int:
        self.chats[id] = types.Channel(
            id=id, title=title, photo=types.ChatPhotoEmpty(), date=STARTED, access_hash=id * 7, username=username,
            broadcast=True,
        )  # fmt: skip
        return utils.get_peer_id(self.chats[id])

    def entity(self, marked: int) -> Any:
        number, kind = utils.resolve_id(marked)
        return self.users.get(number) if kind is types.PeerUser else self.chats.get(number)

    def write(self, marked: int, text: str, *, sender: int | None = None, **more: Any) -> types.Message:
        """Somebody writes into a chat; without a sender, the other side of a private chat does."""
        self._last_id += 1
        peer = utils.get_peer(marked)
        author = sender if sender is not None else marked
        out = author == ME and marked != ME
        message = types.Message(
            id=self._last_id, peer_id=peer, date=STARTED + timedelta(minutes=self._last_id), message=text, out=out,
            from_id=types.PeerUser(author), **more,
        )  # fmt: skip
        message._sender = self.users.get(author)  # as the library fills it in from the same answer
        self.messages.setdefault(marked, []).append(message)
        return message

    def write_file(self, marked: int, data: bytes, name: str | None, media_type: str = "text/plain") -> types.Message:
        attributes = [types.DocumentAttributeFilename(name)] if name else []
        document = types.Document(
            id=len(self.files) + 1, access_hash=1, file_reference=b"", date=STARTED, mime_type=media_type,
            size=len(data), dc_id=1, attributes=attributes,
        )  # fmt: skip
        message = self.write(marked, "", media=types.MessageMediaDocument(document=document))
        self.files[message.id] = data
        return message

    def texts(self, marked: int) -> list[str]:
        return [message.message for message in self.messages.get(marked, [])]

    def client(self) -> ClientDouble:
        made = ClientDouble(self)
        self.clients.append(made)
        return made

    async def step(self, what: str) -> None:
        """Every way into Telegram passes here: it may be slow, refuse, or break."""
        self.requests.append(what)
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        if self.revoked:
            raise errors.SessionRevokedError(request=None)


def _fits(name: str, *arguments: object, **options: object) -> None:
    method = getattr(TelegramClient, _SIGNATURES.get(name, name))
    inspect.signature(method).bind(None, *arguments, **options)


class ClientDouble:
    """The methods of TelegramClient that are used. It knows an id only once it has seen it, as the real one."""

    def __init__(self, telegram: TelegramDouble) -> None:
        self._telegram = telegram
        self._connected = False
        self._seen: set[int] = {ME}
        self.left = asyncio.Event()

    async def connect(self) -> None:
        await self._telegram.step("connect") if not self._telegram.revoked else None
        self._connected = True

    def is_connected(self) -> bool:
        return self._connected

    async def disconnect(self) -> None:
        self._connected = False
        self.left.set()

    async def get_me(self) -> types.User | None:
        return None if self._telegram.revoked else self._telegram.users[ME]

    async def get_entity(self, entity: object) -> object:
        _fits("get_entity", entity)
        await self._online("get_entity")
        return self._resolve(entity)

    async def get_input_entity(self, peer: object) -> object:
        _fits("get_input_entity", peer)
        try:
            return utils.get_input_peer(peer)
        except TypeError:
            pass
        if peer == "me":
            return types.InputPeerSelf()
        return utils.get_input_peer(self._resolve(peer))

    async def get_dialogs(self, limit: int | None = None) -> list[custom.Dialog]:
        _fits("get_dialogs", limit=limit)
        await self._online("get_dialogs")
        telegram, found = self._telegram, []
        for marked, messages in telegram.messages.items():
            self._seen.add(marked)
            if not messages:
                continue
            read = telegram.read_up_to.get(marked, 0)
            unread = sum(1 for message in messages if message.id > read and not message.out)
            state = types.Dialog(
                peer=utils.get_peer(marked), top_message=messages[-1].id, read_inbox_max_id=read,
                read_outbox_max_id=0, unread_count=unread, unread_mentions_count=0, unread_reactions_count=0,
                unread_poll_votes_count=0, notify_settings=types.PeerNotifySettings(),
            )  # fmt: skip
            found.append(custom.Dialog(self, state, {marked: telegram.entity(marked)}, messages[-1]))
        found.sort(key=lambda dialog: dialog.message.id, reverse=True)
        return found[:limit]

    async def get_messages(self, entity: object, **options: Any) -> list[types.Message | None]:
        _fits("get_messages", entity, **options)
        await self._online("get_messages")
        everywhere = [message for messages in self._telegram.messages.values() for message in messages]
        here = everywhere if entity is None else self._telegram.messages.get(self._marked(entity), [])
        if "ids" in options:
            known = {message.id: message for message in here}
            return [known.get(number) for number in options["ids"]]
        found = [
            message
            for message in sorted(here, key=lambda one: one.id, reverse=not options.get("reverse"))
            if (options.get("search") or "").lower() in message.message.lower()
            and (not options.get("offset_id") or message.id < options["offset_id"])
            and message.id > options.get("min_id", 0)
        ]
        return found[: options["limit"]]

    async def delete_messages(self, entity: object, message_ids: list[int], *, revoke: bool = True) -> list[object]:
        _fits("delete_messages", entity, message_ids, revoke=revoke)
        await self._online("delete_messages")
        # By number alone, whatever the chat: this is how Telegram does it outside of channels.
        for messages in self._telegram.messages.values():
            messages[:] = [message for message in messages if message.id not in message_ids]
        return [types.messages.AffectedMessages(pts=1, pts_count=len(message_ids))]

    async def send_read_acknowledge(self, entity: object, *, max_id: int | None = None) -> bool:
        _fits("send_read_acknowledge", entity, max_id=max_id)
        await self._online("send_read_acknowledge")
        marked = self._marked(entity)
        messages = self._telegram.messages.get(marked, [])
        self._telegram.read_up_to[marked] = max_id or (messages[-1].id if messages else 0)
        return True

    async def send_file(self, entity: object, file: Any, **options: Any) -> types.Message:
        _fits("send_file", entity, file, **options)
        await self._online("send_file")
        data = file.read()
        assert options["file_size"] == len(data)
        for done in range(0, len(data) + 1, max(1, len(data) // 2)):
            await options["progress_callback"](done, len(data))
        await self._online("send_file")
        sent = self._telegram.write_file(self._marked(entity), data, file.name)
        sent.message, sent.out = options["caption"], True
        return sent

    async def iter_download(self, file: types.Message) -> AsyncIterator[bytes]:
        _fits("iter_download", file)
        data = self._telegram.files[file.id]
        for start in range(0, len(data), 65_536):
            await self._online("iter_download")
            yield data[start : start + 65_536]

    async def __call__(self, request: Any) -> object:
        await request.resolve(self, utils)
        assert bytes(request)
        await self._online(type(request).__name__)
        return self._ANSWERS[type(request)](self, request)

    def _send(self, request: functions.messages.SendMessageRequest) -> object:
        telegram = self._telegram
        if request.random_id in telegram.random_ids:
            raise errors.RandomIdDuplicateError(request=request)
        marked = self._marked(request.peer)
        reply = request.reply_to and types.MessageReplyHeader(reply_to_msg_id=request.reply_to.reply_to_msg_id)
        sent = telegram.write(marked, request.message, sender=ME, reply_to=reply)
        telegram.random_ids[request.random_id] = sent.id
        if not request.no_webpage:
            telegram.previewed.append(request.message)
        if marked > 0:
            return types.UpdateShortSentMessage(id=sent.id, pts=1, pts_count=1, date=STARTED, out=True)
        numbered = types.UpdateMessageID(id=sent.id, random_id=request.random_id)
        return types.Updates(updates=[numbered], users=[], chats=[], date=STARTED, seq=0)

    def _contacts(self, request: object) -> object:
        users = [self._telegram.users[number] for number in sorted(self._telegram.contacts)]
        return types.contacts.Contacts(contacts=[], saved_count=0, users=users)

    def _import(self, request: functions.contacts.ImportContactsRequest) -> object:
        wanted = request.contacts[0]
        found = [user for user in self._telegram.users.values() if f"+{user.phone}" == wanted.phone]
        for user in found:
            user.first_name, user.last_name, user.contact = wanted.first_name, wanted.last_name or None, True
            self._telegram.contacts.add(user.id)
            self._seen.add(user.id)
        return types.contacts.ImportedContacts(imported=[], popular_invites=[], retry_contacts=[], users=found)

    def _search(self, request: functions.contacts.SearchRequest) -> object:
        query = request.q.lower()
        found = [
            user
            for user in self._telegram.users.values()
            if query in utils.get_display_name(user).lower() or query in (user.username or "").lower()
        ]
        self._seen |= {user.id for user in found}
        return types.contacts.Found(my_results=[], results=[], chats=[], users=found[: request.limit])

    def _create(self, request: functions.messages.CreateChatRequest) -> object:
        telegram = self._telegram
        people = [user.user_id for user in request.users]
        number = 5000 + len(telegram.chats)
        marked = telegram.group(request.title, id=number, members=len(people) + 1)
        telegram.write(marked, "", sender=ME, action=types.MessageActionChatCreate(request.title, people))
        updates = types.Updates(updates=[], users=[], chats=[telegram.chats[number]], date=STARTED, seq=0)
        missing = [types.MissingInvitee(user_id=one) for one in people if one in telegram.not_addable]
        return types.messages.InvitedUsers(updates=updates, missing_invitees=missing)

    def _full_user(self, request: functions.users.GetFullUserRequest) -> object:
        full = types.UserFull(
            id=1, settings=types.PeerSettings(), notify_settings=types.PeerNotifySettings(), common_chats_count=0,
            about="Bakes bread",
        )  # fmt: skip
        return types.users.UserFull(full_user=full, chats=[], users=[])

    def _full_chat(self, request: Any) -> object:
        full = types.ChatFull(
            id=1, about="Plans for the summer", participants=types.ChatParticipantsForbidden(chat_id=1),
            notify_settings=types.PeerNotifySettings(),
        )  # fmt: skip
        return types.messages.ChatFull(full_chat=full, chats=[], users=[])

    _ANSWERS: dict[type, Callable[..., object]] = {  # noqa: RUF012
        functions.messages.SendMessageRequest: _send,
        functions.contacts.GetContactsRequest: _contacts,
        functions.contacts.ImportContactsRequest: _import,
        functions.contacts.SearchRequest: _search,
        functions.messages.CreateChatRequest: _create,
        functions.users.GetFullUserRequest: _full_user,
        functions.messages.GetFullChatRequest: _full_chat,
        functions.channels.GetFullChannelRequest: _full_chat,
    }

    async def _online(self, what: str) -> None:
        if not self._connected:
            raise ConnectionError("Cannot send requests while disconnected")
        try:
            await self._telegram.step(what)
        except ConnectionError:
            self._connected = False
            raise

    def _marked(self, peer: object) -> int:
        return ME if isinstance(peer, types.InputPeerSelf) else utils.get_peer_id(peer)

    def _resolve(self, name: object) -> object:
        telegram = self._telegram
        if name == "me":
            return telegram.users[ME]
        if isinstance(name, int):
            if name in self._seen and (found := telegram.entity(name)) is not None:
                return found
            raise ValueError(f"Could not find the input entity for {name}")
        everybody = [*telegram.users.values(), *telegram.chats.values()]
        spelled = str(name).lower()
        for one in everybody:
            phone = getattr(one, "phone", None)
            if (phone and f"+{phone}" == spelled and one.contact) or f"@{getattr(one, 'username', None)}" == spelled:
                self._seen.add(utils.get_peer_id(one))
                return one
        raise ValueError(f'Cannot find any entity corresponding to "{name}"')
