"""Mails as Google's API describes them, into ours."""

from __future__ import annotations

import base64
import binascii
import html
from datetime import UTC, datetime
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.servers.gmail.mail.header_text import plain, read_headers
from annabelle.servers.gmail.mail.models import Draft, Filter, FilterAction, FilterCriteria, Headers, MessageSummary
from annabelle.servers.gmail.mail.parts import Part, is_file

_MAX_DEPTH = 30


def text(found: JsonObject, name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def inside(found: JsonObject, name: str) -> JsonObject:
    value = found.get(name)
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def entries(found: JsonObject, name: str) -> list[JsonObject]:
    value = found.get(name)
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]


def words(found: JsonObject, name: str) -> tuple[str, ...]:
    value = found.get(name)
    items = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


def headers_of(message: JsonObject) -> Headers:
    """The first of each name counts, as it does for every other reader."""
    given: dict[str, str] = {}
    for header in entries(inside(message, "payload"), "headers"):
        given.setdefault(text(header, "name").lower(), text(header, "value"))
    return read_headers(lambda name: given.get(name.lower(), ""))


def summary_of(message: JsonObject) -> MessageSummary:
    headers = headers_of(message)
    return MessageSummary(
        id=text(message, "id"),
        thread_id=text(message, "threadId"),
        sender=headers.sender,
        to=headers.to,
        subject=headers.subject,
        date=headers.date or _moment(text(message, "internalDate")),
        snippet=plain(html.unescape(text(message, "snippet"))),
        labels=words(message, "labelIds"),
        has_attachments=any(is_file(part) for part in part_of(inside(message, "payload")).walk()),
        cc=headers.cc,
        reply_to=headers.reply_to,
    )


def part_of(payload: JsonObject, depth: int = 0) -> Part:
    """A part of a mail. Its place among the others is its id: Google's own ids of attachments change every time."""
    body = inside(payload, "body")
    headers = {text(one, "name").lower(): text(one, "value") for one in entries(payload, "headers")}
    content_type = headers.get("content-type", "")
    size = body.get("size")
    children = entries(payload, "parts") if depth < _MAX_DEPTH else []
    data = unpack(text(body, "data")) if text(body, "data") else None
    return Part(
        id=text(payload, "partId") or "0",
        content_type=(text(payload, "mimeType") or "text/plain").lower(),
        charset=_parameter(content_type, "charset") or "utf-8",
        name=plain(text(payload, "filename")),
        attached=headers.get("content-disposition", "").lower().startswith("attachment"),
        size=size if isinstance(size, int) else len(data or b""),
        data=data,
        children=tuple(part_of(child, depth + 1) for child in children),
    )


def attachment_key(payload: JsonObject, part_id: str) -> str:
    """What Google calls the content of a part this time; empty when the content is in the part itself."""
    if (text(payload, "partId") or "0") == part_id:
        return text(inside(payload, "body"), "attachmentId")
    return next((key for key in (attachment_key(one, part_id) for one in entries(payload, "parts")) if key), "")


def draft_of(draft: JsonObject) -> Draft:
    message = inside(draft, "message")
    line = summary_of(message)
    return Draft(text(draft, "id"), line.id or None, line.to, line.subject, line.snippet, line.date)


def filter_of(found: JsonObject) -> Filter:
    criteria, action = inside(found, "criteria"), inside(found, "action")
    size, has_file = criteria.get("size"), criteria.get("hasAttachment")
    comparison = text(criteria, "sizeComparison")
    return Filter(
        id=text(found, "id"),
        criteria=FilterCriteria(
            sender=text(criteria, "from") or None,
            to=text(criteria, "to") or None,
            subject=text(criteria, "subject") or None,
            query=text(criteria, "query") or None,
            has_attachment=has_file if isinstance(has_file, bool) else None,
            size=size if isinstance(size, int) else None,
            size_comparison="larger" if comparison == "larger" else "smaller" if comparison == "smaller" else None,
        ),
        action=FilterAction(
            words(action, "addLabelIds"), words(action, "removeLabelIds"), text(action, "forward") or None
        ),
    )


def filter_json(criteria: FilterCriteria, action: FilterAction) -> JsonObject:
    asked: JsonObject = {
        "from": criteria.sender,
        "to": criteria.to,
        "subject": criteria.subject,
        "query": criteria.query,
        "hasAttachment": criteria.has_attachment,
        "size": criteria.size,
        "sizeComparison": criteria.size_comparison or ("larger" if criteria.size is not None else None),
    }
    done: JsonObject = {
        "addLabelIds": list(action.add_label_ids) or None,
        "removeLabelIds": list(action.remove_label_ids) or None,
        "forward": action.forward,
    }
    return {
        "criteria": {name: value for name, value in asked.items() if value is not None},
        "action": {name: value for name, value in done.items() if value is not None},
    }


def pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def unpack(data: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
    except (binascii.Error, ValueError):
        return b""


def _moment(milliseconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _parameter(header: str, name: str) -> str:
    for part in header.split(";")[1:]:
        key, _, value = part.partition("=")
        if key.strip().lower() == name:
            return value.strip().strip('"')
    return ""
