"""A Gmail mailbox over Google's API."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable
from email.message import EmailMessage
from typing import TypeVar
from urllib.parse import quote

from annabelle.core.errors import Conflict, NotAllowed, NotFound, OutcomeUnknown, TooLarge
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.mail_calendar.google_session import GoogleSession
from annabelle.servers.mail_calendar.mail import google_messages as wire
from annabelle.servers.mail_calendar.mail.mailbox import (
    ArrivedMails,
    AttachmentContent,
    FilterAction,
    FilterCriteria,
    FoundMails,
    MailDraft,
    MailFilter,
    MailLabel,
    MailMessage,
    MessageSummary,
    SendOutcome,
)
from annabelle.servers.mail_calendar.mail.message_parser import extract_body, file_name, find_attachment
from annabelle.servers.mail_calendar.mail.outgoing_mail import keep_thread

T = TypeVar("T")

_ME = "/gmail/v1/users/me"
_LABELS = f"{_ME}/labels"
_SYSTEM = frozenset({"INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "UNREAD", "STARRED", "IMPORTANT"})
_AT_ONCE = 8
_MAX_PAGES = 10
_PARTS = "partId,mimeType,filename,headers,body(size,attachmentId)"
_LINE = f"id,threadId,labelIds,snippet,internalDate,payload({_PARTS},parts({_PARTS},parts({_PARTS},parts({_PARTS}))))"
"""Fields of a message without its content."""
_INLINE_BYTES = 3_000_000
"""Larger mails must be uploaded."""


async def gather_limited(ask: Callable[[str], Awaitable[T]], ids: Iterable[str]) -> list[T]:
    """Results in order, with few concurrent requests because of Google's rate limit."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def ask_when_free(item: str) -> T:
        async with gate:
            return await ask(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask_when_free(item)) for item in ids]
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    return [task.result() for task in tasks]


class GoogleMailbox:
    def __init__(self, session: GoogleSession) -> None:
        self.address, self._session = session.email, session
        self.filters_note: str | None = None

    @property
    def rejected(self) -> bool:
        return self._session.rejected

    async def find(self, query: str, labels: tuple[str, ...], count: int, page_token: str | None) -> FoundMails:
        params = {
            "q": query or None,
            "labelIds": list(await self._resolve_labels(labels)),
            "maxResults": count,
            "pageToken": page_token or None,
        }
        page = await self._session.request("GET", f"{_ME}/messages", params=params)
        return FoundMails(await self._load_summaries(_ids_of(page)), wire.get_text(page, "nextPageToken") or None)

    async def read(self, message_id: str) -> MailMessage:
        message = await self._load_message(message_id)

        def parse_message(stop: StopSign) -> MailMessage:  # a long mail must not block the event loop
            content = extract_body(wire.parse_part(wire.get_object(message, "payload")))
            return MailMessage(wire.parse_summary(message), content)

        return await in_thread(parse_message)

    async def list_arrivals(self, cursor: str | None, count: int) -> ArrivedMails:
        """Without a cursor, or with an expired one, the mails of the last day."""
        if cursor is None or not cursor.isdecimal():
            return await self._list_last_day(count)
        try:
            ids, behind, more = await self._read_history(cursor, count)
        except NotFound:
            return await self._list_last_day(count)
        found = await self._load_summaries(ids)
        return ArrivedMails([line for line in found if "INBOX" in line.labels], behind, more)

    async def attachment(self, message_id: str, attachment_id: str, max_bytes: int) -> AttachmentContent:
        payload = wire.get_object(await self._load_message(message_id), "payload")
        part = find_attachment(wire.parse_part(payload), attachment_id)
        if part.size > max_bytes:
            raise TooLarge(
                f"The attachment has {part.size} bytes; at most {max_bytes} are fetched.",
                hint="MAIL_ATTACHMENT_MAX_BYTES sets the limit.",
            )
        data = part.data
        if data is None:
            key = wire.attachment_key(payload, attachment_id)
            if not key:
                raise NotAllowed("Google does not give this part of the mail on its own.", field="attachment_id")
            path = f"{_path_of('messages', message_id)}/attachments/{quote(key, safe='')}"
            data = wire.decode_base64(wire.get_text(await self._session.request("GET", path), "data"))
        return AttachmentContent(file_name(part), part.content_type, data)

    async def send(self, mail: EmailMessage, thread_id: str | None) -> SendOutcome:
        message_id = str(mail["Message-ID"])
        before = await self._find_sent(message_id)
        if before is not None:
            return before
        try:
            sent = await self._submit("POST", "messages/send", mail, _thread_fields(thread_id))
        except OutcomeUnknown:
            found = await self._find_sent(message_id)
            if found is None:
                raise
            return found.model_copy(update={"already_sent": False})
        return _to_outcome(sent)

    async def trash(self, message_id: str) -> str:
        await self._session.request("POST", f"{_path_of('messages', message_id)}/trash", repeatable=True)
        return message_id

    async def relabel(self, message_id: str, add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, list[str]]:
        change = {
            "addLabelIds": list(await self._resolve_labels(add)),
            "removeLabelIds": list(await self._resolve_labels(remove)),
        }
        path = f"{_path_of('messages', message_id)}/modify"
        return message_id, list(
            wire.get_strings(await self._session.request("POST", path, json=change, repeatable=True), "labelIds")
        )

    async def drafts(self, count: int) -> list[MailDraft]:
        page = await self._session.request("GET", f"{_ME}/drafts", params={"maxResults": count})
        found = await gather_limited(self._load_draft, _ids_of(page, "drafts"))
        return [wire.parse_draft(draft) for draft in found if draft]

    async def create_draft(self, mail: EmailMessage, thread_id: str | None) -> MailDraft:
        made = await self._submit("POST", "drafts", mail, {"message": _thread_fields(thread_id)})
        return await self._reload_draft(made)

    async def replace_draft(self, draft_id: str, mail: EmailMessage) -> MailDraft:
        former = await self._session.request("GET", _path_of("drafts", draft_id), params={"format": "metadata"})
        message = wire.get_object(former, "message")
        keep_thread(mail, wire.parse_headers(message))
        thread = wire.get_text(message, "threadId") if mail["In-Reply-To"] else None
        path = f"drafts/{quote(draft_id, safe='')}"
        return await self._reload_draft(await self._submit("PUT", path, mail, {"message": _thread_fields(thread)}))

    async def send_draft(self, draft_id: str) -> SendOutcome:
        try:
            sent = await self._session.request("POST", f"{_ME}/drafts/send", json={"id": draft_id})
        except OutcomeUnknown:
            if await self._load_draft(draft_id):
                raise
            return SendOutcome()  # Google removes a draft only if it was sent or deleted
        return _to_outcome(sent)

    async def delete_draft(self, draft_id: str) -> None:
        await self._session.request("DELETE", _path_of("drafts", draft_id))

    async def labels(self) -> list[MailLabel]:
        page = await self._session.request("GET", _LABELS)
        return [wire.parse_label(one) for one in wire.get_objects(page, "labels")]

    async def create_label(self, name: str) -> MailLabel:
        shown = {"labelListVisibility": "labelShow", "messageListVisibility": "show"}
        try:
            made = await self._session.request("POST", _LABELS, json={"name": name, **shown})
        except Conflict as error:
            raise Conflict(f"There is a label {name} already.", field="name") from error
        return wire.parse_label({**made, "type": "user"})

    async def delete_label(self, label_id: str) -> MailLabel:
        label = await self._find_label(label_id)
        if label.kind == "system":
            raise NotAllowed(f"{label.name} belongs to the mailbox and can not be deleted.", field="label_id")
        await self._session.request("DELETE", f"{_LABELS}/{quote(label.id, safe='')}")
        return label

    async def filters(self) -> list[MailFilter]:
        page = await self._session.request("GET", f"{_ME}/settings/filters")
        return [wire.parse_filter(one) for one in wire.get_objects(page, "filter")]

    async def filter(self, filter_id: str) -> MailFilter:
        return wire.parse_filter(await self._session.request("GET", _path_of("settings/filters", filter_id)))

    async def create_filter(self, criteria: FilterCriteria, action: FilterAction) -> MailFilter:
        add = await self._resolve_labels(tuple(action.add_label_ids or ()))
        remove = await self._resolve_labels(tuple(action.remove_label_ids or ()))
        known = action.model_copy(update={"add_label_ids": list(add), "remove_label_ids": list(remove)})
        asked = wire.format_filter(criteria, known)
        return wire.parse_filter(await self._session.request("POST", f"{_ME}/settings/filters", json=asked))

    async def delete_filter(self, filter_id: str) -> None:
        await self._session.request("DELETE", _path_of("settings/filters", filter_id))

    async def close(self) -> None:
        """The session belongs to the account."""

    async def _read_history(self, cursor: str, count: int) -> tuple[list[str], str, bool]:
        """Ids in order of arrival. If there are too many, the cursor is after the last one returned."""
        ids: list[str] = []
        behind, page_token = cursor, None
        for _ in range(_MAX_PAGES):
            params = {
                "startHistoryId": cursor,
                "historyTypes": "messageAdded",
                "labelId": "INBOX",
                "maxResults": 100,
                "pageToken": page_token,
            }
            page = await self._session.request("GET", f"{_ME}/history", params=params)
            for record in wire.get_objects(page, "history"):
                added = [wire.get_object(one, "message") for one in wire.get_objects(record, "messagesAdded")]
                new = [one for message in added if (one := wire.get_text(message, "id")) and one not in ids]
                if ids and len(ids) + len(new) > count:
                    return ids, behind, True
                ids += new
                behind = wire.get_text(record, "id") or behind
            page_token = wire.get_text(page, "nextPageToken") or None
            if page_token is None:
                return ids, wire.get_text(page, "historyId") or behind, False
        return ids, behind, True

    async def _list_last_day(self, count: int) -> ArrivedMails:
        # Read the cursor first, so that mail arriving meanwhile is seen twice rather than never.
        cursor = wire.get_text(await self._session.request("GET", f"{_ME}/profile"), "historyId")
        params = {"q": "newer_than:1d", "labelIds": ["INBOX"], "maxResults": count}
        page = await self._session.request("GET", f"{_ME}/messages", params=params)
        found = await self._load_summaries(_ids_of(page))
        return ArrivedMails(found[::-1], cursor, bool(wire.get_text(page, "nextPageToken")))

    async def _resolve_labels(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Ids of labels given by id or name. Makes no request if all are clearly ids."""
        if all(label.startswith("Label_") or label in _SYSTEM for label in labels):
            return labels
        return tuple([(await self._find_label(label)).id for label in labels])

    async def _find_label(self, label: str) -> MailLabel:
        known = await self.labels()
        same = [one for one in known if one.id == label] or [one for one in known if one.name.lower() == label.lower()]
        if not same:
            raise NotFound(
                f"There is no label {label[:100]!r}.", hint="list_labels shows them, create_label makes one."
            )
        return same[0]

    async def _load_message(self, message_id: str, **fields: str) -> JsonObject:
        return await self._session.request("GET", _path_of("messages", message_id), params={"format": "full", **fields})

    async def _load_summaries(self, ids: Iterable[str]) -> list[MessageSummary]:
        """Summaries in this order, without mails deleted meanwhile."""
        found = await gather_limited(self._load_summary, ids)
        return [line for line in found if line is not None]

    async def _load_summary(self, message_id: str) -> MessageSummary | None:
        try:
            return wire.parse_summary(await self._load_message(message_id, fields=_LINE))
        except NotFound:
            return None

    async def _load_draft(self, draft_id: str) -> JsonObject:
        try:
            return await self._session.request("GET", _path_of("drafts", draft_id), params={"format": "full"})
        except NotFound:
            return {}

    async def _reload_draft(self, answer: JsonObject) -> MailDraft:
        """The current draft. Google's response to a change has only ids."""
        return wire.parse_draft(await self._load_draft(wire.get_text(answer, "id")) or answer)

    async def _find_sent(self, message_id: str) -> SendOutcome | None:
        params = {"q": f"in:sent rfc822msgid:{message_id.strip('<>')}", "maxResults": 1}
        page = await self._session.request("GET", f"{_ME}/messages", params=params)
        found = wire.get_objects(page, "messages")
        return _to_outcome(found[0], already_sent=True) if found else None

    async def _submit(self, method: str, path: str, mail: EmailMessage, around: JsonObject) -> JsonObject:
        """Send a mail with its metadata as JSON or, if it is large, as an upload."""
        data = mail.as_bytes()
        if len(data) <= _INLINE_BYTES:
            raw = {"raw": wire.encode_base64(data)}
            body = (
                {"message": {**wire.get_object(around, "message"), **raw}} if "message" in around else {**around, **raw}
            )
            return await self._session.request(method, f"{_ME}/{path}", json=body)
        edge = secrets.token_hex(16)
        pieces = [
            f"--{edge}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(around)}\r\n".encode(),
            f"--{edge}\r\nContent-Type: message/rfc822\r\n\r\n".encode(),
            data,
            f"\r\n--{edge}--\r\n".encode(),
        ]
        return await self._session.request(
            method,
            f"/upload{_ME}/{path}",
            params={"uploadType": "multipart"},
            content=b"".join(pieces),
            headers={"Content-Type": f"multipart/related; boundary={edge}"},
        )


def _path_of(kind: str, one: str) -> str:
    return f"{_ME}/{kind}/{quote(one, safe='')}"


def _ids_of(page: JsonObject, kind: str = "messages") -> list[str]:
    return [wire.get_text(one, "id") for one in wire.get_objects(page, kind)]


def _to_outcome(sent: JsonObject, *, already_sent: bool = False) -> SendOutcome:
    return SendOutcome(
        id=wire.get_text(sent, "id"), thread_id=wire.get_text(sent, "threadId"), already_sent=already_sent
    )


def _thread_fields(thread_id: str | None) -> JsonObject:
    return {"threadId": thread_id} if thread_id else {}
