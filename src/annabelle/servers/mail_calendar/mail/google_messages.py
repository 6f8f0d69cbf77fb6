"""Converts Gmail API messages, drafts and filters to our models."""

from __future__ import annotations

import base64
import binascii
import html
from datetime import UTC, datetime

from pydantic.alias_generators import to_camel

from annabelle.core.tools import JsonObject
from annabelle.servers.kit.json_access import get_object, get_objects, get_strings, get_text
from annabelle.servers.mail_calendar.mail.headers import decode_header_text, read_headers
from annabelle.servers.mail_calendar.mail.mailbox import (
    FilterAction,
    FilterCriteria,
    MailDraft,
    MailFilter,
    MailHeaders,
    MailLabel,
    MessageSummary,
)
from annabelle.servers.mail_calendar.mail.message_parser import MailPart, is_file

_MAX_DEPTH = 30
_CRITERIA = ("from", "to", "subject", "query", "has_attachment", "size", "size_comparison")


def parse_headers(message: JsonObject) -> MailHeaders:
    """The first header of each name wins, as in other mail readers."""
    given: dict[str, str] = {}
    for header in get_objects(get_object(message, "payload"), "headers"):
        given.setdefault(get_text(header, "name").lower(), get_text(header, "value"))
    return read_headers(lambda name: given.get(name.lower(), ""))


def parse_summary(message: JsonObject) -> MessageSummary:
    headers = parse_headers(message)
    return MessageSummary(
        id=get_text(message, "id"),
        thread_id=get_text(message, "threadId"),
        headers=headers,
        date=headers.date or _parse_time(get_text(message, "internalDate")),
        snippet=decode_header_text(html.unescape(get_text(message, "snippet"))),
        labels=get_strings(message, "labelIds"),
        has_attachments=any(is_file(part) for part in parse_part(get_object(message, "payload")).walk()),
    )


def parse_part(payload: JsonObject, depth: int = 0) -> MailPart:
    """A part of a mail. Its position is its id, because Google's attachment ids change with every request."""
    body = get_object(payload, "body")
    headers = {get_text(one, "name").lower(): get_text(one, "value") for one in get_objects(payload, "headers")}
    content_type = headers.get("content-type", "")
    size = body.get("size")
    children = get_objects(payload, "parts") if depth < _MAX_DEPTH else []
    data = decode_base64(get_text(body, "data")) if get_text(body, "data") else None
    return MailPart(
        id=get_text(payload, "partId") or "0",
        content_type=(get_text(payload, "mimeType") or "text/plain").lower(),
        charset=_get_parameter(content_type, "charset") or "utf-8",
        name=decode_header_text(get_text(payload, "filename")),
        attached=headers.get("content-disposition", "").lower().startswith("attachment"),
        size=size if isinstance(size, int) else len(data or b""),
        data=data,
        children=tuple(parse_part(child, depth + 1) for child in children),
    )


def attachment_key(payload: JsonObject, part_id: str) -> str:
    """Google's current attachment id of a part, empty if the content is inline."""
    if (get_text(payload, "partId") or "0") == part_id:
        return get_text(get_object(payload, "body"), "attachmentId")
    return next((key for key in (attachment_key(one, part_id) for one in get_objects(payload, "parts")) if key), "")


def parse_draft(draft: JsonObject) -> MailDraft:
    return MailDraft.from_summary(get_text(draft, "id"), parse_summary(get_object(draft, "message")))


def parse_label(found: JsonObject) -> MailLabel:
    kind = "user" if get_text(found, "type") == "user" else "system"
    return MailLabel(id=get_text(found, "id"), name=get_text(found, "name"), kind=kind)


def parse_filter(found: JsonObject) -> MailFilter:
    criteria, action = get_object(found, "criteria"), get_object(found, "action")
    if get_text(criteria, "sizeComparison") not in ("larger", "smaller"):
        criteria = {**criteria, "sizeComparison": None}
    labels = {name: list(get_strings(action, to_camel(name))) for name in ("add_label_ids", "remove_label_ids")}
    done = {**labels, "forward": get_text(action, "forward")}
    return MailFilter(
        id=get_text(found, "id"),
        criteria={
            name: value
            for name in _CRITERIA
            if isinstance(value := criteria.get(to_camel(name)), str | int) and value != ""
        },
        action={name: value for name, value in done.items() if value},
    )


def format_filter(criteria: FilterCriteria, action: FilterAction) -> JsonObject:
    """Google names the fields as we do, in camel case."""
    fields = criteria.to_fields()
    if criteria.size is not None:
        fields.setdefault("size_comparison", "larger")
    return {
        "criteria": {to_camel(name): value for name, value in fields.items()},
        "action": {to_camel(name): value for name, value in action.to_fields().items()},
    }


def encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def decode_base64(data: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        return b""


def _parse_time(milliseconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _get_parameter(header: str, name: str) -> str:
    for part in header.split(";")[1:]:
        key, _, value = part.partition("=")
        if key.strip().lower() == name:
            return value.strip().strip('"')
    return ""
