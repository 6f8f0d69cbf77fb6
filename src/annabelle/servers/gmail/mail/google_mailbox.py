"""A mailbox at Google, over its own API."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from email.message import EmailMessage
from urllib.parse import quote

from annabelle.core.errors import NotAllowed, NotFound, OutcomeUnknown, TooLarge
from annabelle.core.tools import JsonObject
from annabelle.servers.gmail.google import GoogleSession
from annabelle.servers.gmail.mail import google_messages as wire
from annabelle.servers.gmail.mail.at_once import some_at_once
from annabelle.servers.gmail.mail.google_arrivals import arrived
from annabelle.servers.gmail.mail.google_labels import GoogleLabels
from annabelle.servers.gmail.mail.models import (
    Arrived,
    AttachmentContent,
    Draft,
    Filter,
    FilterAction,
    FilterCriteria,
    Found,
    Label,
    Message,
    MessageSummary,
    Sent,
)
from annabelle.servers.gmail.mail.outgoing import keep_thread
from annabelle.servers.gmail.mail.parts import content_of, file_name, is_file
from annabelle.servers.kit import StopSign, in_thread

ME = "/gmail/v1/users/me"
_PARTS = "partId,mimeType,filename,headers,body(size,attachmentId)"
LINE = f"id,threadId,labelIds,snippet,internalDate,payload({_PARTS},parts({_PARTS},parts({_PARTS},parts({_PARTS}))))"
"""All of a mail but what is in it."""
_INLINE_BYTES = 3_000_000
"""A larger mail is uploaded, as Google wants it."""


class GoogleMailbox:
    """The mail of the connected Google account."""

    def __init__(self, session: GoogleSession) -> None:
        self._session = session
        self._labels = GoogleLabels(session)

    @property
    def address(self) -> str:
        return self._session.email

    @property
    def rejected(self) -> bool:
        return self._session.rejected

    @property
    def filters_note(self) -> str | None:
        return None

    async def find(self, query: str, labels: tuple[str, ...], count: int, page_token: str | None) -> Found:
        params = {
            "q": query or None,
            "labelIds": list(await self._labels.ids(labels)),
            "maxResults": count,
            "pageToken": page_token or None,
        }
        page = await self._session.request("GET", f"{ME}/messages", params=params)
        lines = await self.lines(wire.text(one, "id") for one in wire.entries(page, "messages"))
        return Found(lines, wire.text(page, "nextPageToken") or None)

    async def lines(self, ids: Iterable[str]) -> list[MessageSummary]:
        """Lines for mails, in this order; one that vanished meanwhile is left out."""
        found = await some_at_once(self._line, ids)
        return [line for line in found if line is not None]

    async def read(self, message_id: str) -> Message:
        message = await self._session.request("GET", _of("messages", message_id), params={"format": "full"})

        def work(stop: StopSign) -> Message:  # a mail may be long, and others are waiting
            content = content_of(wire.part_of(wire.inside(message, "payload")))
            return Message(wire.summary_of(message), wire.headers_of(message), content)

        return await in_thread(work)

    async def arrived(self, cursor: str | None, count: int) -> Arrived:
        return await arrived(self._session, self.lines, cursor, count)

    async def attachment(self, message_id: str, attachment_id: str, max_bytes: int) -> AttachmentContent:
        message = await self._session.request("GET", _of("messages", message_id), params={"format": "full"})
        payload = wire.inside(message, "payload")
        parts = {part.id: part for part in wire.part_of(payload).walk() if is_file(part)}
        if attachment_id not in parts:
            raise NotFound(
                "The mail has no such attachment.", hint="list_attachments shows them.", field="attachment_id"
            )
        part = parts[attachment_id]
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
            path = f"{_of('messages', message_id)}/attachments/{quote(key, safe='')}"
            data = wire.unpack(wire.text(await self._session.request("GET", path), "data"))
        return AttachmentContent(file_name(part), part.content_type, data)

    async def send(self, mail: EmailMessage, thread_id: str | None) -> Sent:
        message_id = str(mail["Message-ID"])
        before = await self._sent_with(message_id)
        if before is not None:
            return before
        try:
            sent = await self._submit("POST", "messages/send", mail, _thread(thread_id))
        except OutcomeUnknown:
            found = await self._sent_with(message_id)
            if found is None:
                raise
            return Sent(found.id, found.thread_id)
        return Sent(wire.text(sent, "id"), wire.text(sent, "threadId"))

    async def trash(self, message_id: str) -> str:
        await self._session.request("POST", f"{_of('messages', message_id)}/trash", repeatable=True)
        return message_id

    async def relabel(self, message_id: str, add: tuple[str, ...], remove: tuple[str, ...]) -> tuple[str, list[str]]:
        change = {
            "addLabelIds": list(await self._labels.ids(add)),
            "removeLabelIds": list(await self._labels.ids(remove)),
        }
        path = f"{_of('messages', message_id)}/modify"
        return message_id, list(
            wire.words(await self._session.request("POST", path, json=change, repeatable=True), "labelIds")
        )

    async def drafts(self, count: int) -> list[Draft]:
        page = await self._session.request("GET", f"{ME}/drafts", params={"maxResults": count})
        found = await some_at_once(self._draft, [wire.text(one, "id") for one in wire.entries(page, "drafts")])
        return [wire.draft_of(draft) for draft in found if draft]

    async def create_draft(self, mail: EmailMessage, thread_id: str | None) -> Draft:
        made = await self._submit("POST", "drafts", mail, {"message": _thread(thread_id)})
        return await self._written(made)

    async def replace_draft(self, draft_id: str, mail: EmailMessage) -> Draft:
        former = await self._session.request("GET", _of("drafts", draft_id), params={"format": "metadata"})
        message = wire.inside(former, "message")
        keep_thread(mail, wire.headers_of(message))
        thread = wire.text(message, "threadId") if mail["In-Reply-To"] else None
        path = f"drafts/{quote(draft_id, safe='')}"
        return await self._written(await self._submit("PUT", path, mail, {"message": _thread(thread)}))

    async def send_draft(self, draft_id: str) -> Sent:
        try:
            sent = await self._session.request("POST", f"{ME}/drafts/send", json={"id": draft_id})
        except OutcomeUnknown:
            if await self._draft(draft_id):
                raise
            return Sent(None)  # Google takes a draft away when, and only when, it was sent or deleted
        return Sent(wire.text(sent, "id"), wire.text(sent, "threadId"))

    async def delete_draft(self, draft_id: str) -> None:
        await self._session.request("DELETE", _of("drafts", draft_id))

    async def labels(self) -> list[Label]:
        return await self._labels.all()

    async def create_label(self, name: str) -> Label:
        return await self._labels.create(name)

    async def delete_label(self, label_id: str) -> Label:
        return await self._labels.delete(label_id)

    async def filters(self) -> list[Filter]:
        page = await self._session.request("GET", f"{ME}/settings/filters")
        return [wire.filter_of(one) for one in wire.entries(page, "filter")]

    async def filter(self, filter_id: str) -> Filter:
        return wire.filter_of(await self._session.request("GET", _of("settings/filters", filter_id)))

    async def create_filter(self, criteria: FilterCriteria, action: FilterAction) -> Filter:
        known = FilterAction(
            await self._labels.ids(action.add_label_ids),
            await self._labels.ids(action.remove_label_ids),
            action.forward,
        )
        asked = wire.filter_json(criteria, known)
        return wire.filter_of(await self._session.request("POST", f"{ME}/settings/filters", json=asked))

    async def delete_filter(self, filter_id: str) -> None:
        await self._session.request("DELETE", _of("settings/filters", filter_id))

    async def close(self) -> None:
        """Nothing is held here; the session belongs to the account."""

    async def _line(self, message_id: str) -> MessageSummary | None:
        try:
            params = {"format": "full", "fields": LINE}
            return wire.summary_of(await self._session.request("GET", _of("messages", message_id), params=params))
        except NotFound:
            return None

    async def _draft(self, draft_id: str) -> JsonObject:
        try:
            return await self._session.request("GET", _of("drafts", draft_id), params={"format": "full"})
        except NotFound:
            return {}

    async def _written(self, answer: JsonObject) -> Draft:
        """A draft as it is now; Google's answer to a change has only its ids."""
        return wire.draft_of(await self._draft(wire.text(answer, "id")) or answer)

    async def _sent_with(self, message_id: str) -> Sent | None:
        params = {"q": f"in:sent rfc822msgid:{message_id.strip('<>')}", "maxResults": 1}
        page = await self._session.request("GET", f"{ME}/messages", params=params)
        for one in wire.entries(page, "messages"):
            return Sent(wire.text(one, "id"), wire.text(one, "threadId"), already=True)
        return None

    async def _submit(self, method: str, path: str, mail: EmailMessage, around: JsonObject) -> JsonObject:
        """Hand a mail over, with what goes around it; inside of JSON, or as an upload when it is large."""
        data = mail.as_bytes()
        if len(data) <= _INLINE_BYTES:
            raw = {"raw": wire.pack(data)}
            body = {"message": {**wire.inside(around, "message"), **raw}} if "message" in around else {**around, **raw}
            return await self._session.request(method, f"{ME}/{path}", json=body)
        edge = secrets.token_hex(16)
        pieces = [
            f"--{edge}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(around)}\r\n".encode(),
            f"--{edge}\r\nContent-Type: message/rfc822\r\n\r\n".encode(),
            data,
            f"\r\n--{edge}--\r\n".encode(),
        ]
        return await self._session.request(
            method,
            f"/upload{ME}/{path}",
            params={"uploadType": "multipart"},
            content=b"".join(pieces),
            headers={"Content-Type": f"multipart/related; boundary={edge}"},
        )


def _of(kind: str, one: str) -> str:
    return f"{ME}/{kind}/{quote(one, safe='')}"


def _thread(thread_id: str | None) -> JsonObject:
    return {"threadId": thread_id} if thread_id else {}
