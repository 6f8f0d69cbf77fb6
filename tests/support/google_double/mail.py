"""The mail part of the double: one mailbox, with the answers Google's API gives about it."""

from __future__ import annotations

import base64
import email
import itertools
import json
import time
from dataclasses import dataclass, field
from email.message import Message
from email.policy import default
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from support.google_double.app import problem
from support.google_double.mail_query import fits

ME = "/gmail/v1/users/me"
SYSTEM = ("INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "UNREAD", "STARRED", "IMPORTANT")


@dataclass
class Mail:
    id: str
    thread: str
    labels: set[str]
    data: bytes
    at: float

    @property
    def parsed(self) -> Message:
        return email.message_from_bytes(self.data, policy=default)

    @property
    def message_id(self) -> str:
        return str(self.parsed["Message-ID"] or "")


@dataclass
class MailPart:
    """`deliver` is what the world does; everything else comes over HTTP."""

    address: str = "ada@example.com"
    mails: dict[str, Mail] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    filters: dict[str, dict[str, Any]] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    history: list[tuple[int, str]] = field(default_factory=list)
    history_begins: int = 0
    """What is older is forgotten, and asked for in vain."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(100))

    def clear(self) -> None:
        """An empty mailbox, as at first."""
        fresh = MailPart(self.address)
        for name in ("mails", "drafts", "labels", "filters", "sent", "history", "history_begins"):
            setattr(self, name, getattr(fresh, name))

    def deliver(self, data: bytes, *, labels: tuple[str, ...] = ("INBOX", "UNREAD"), age: float = 0) -> str:
        """A mail comes in, and the filters are applied to it."""
        mail = self._keep(data, set(labels), self._thread_of(data), age)
        for kept in self.filters.values():
            if fits(mail, self._query_of(kept["criteria"]), self):
                mail.labels |= set(kept["action"].get("addLabelIds", []))
                mail.labels -= set(kept["action"].get("removeLabelIds", []))
        if "INBOX" in mail.labels:
            self.history.append((next(self._numbers), mail.id))
        return mail.id

    @property
    def routes(self) -> list[BaseRoute]:
        def route(path: str, method: str, handler: Any) -> BaseRoute:
            return Route(f"{ME}/{path}", handler, methods=[method])

        return [
            route("profile", "GET", self._profile),
            route("history", "GET", self._history),
            route("messages", "GET", self._list),
            route("messages/send", "POST", self._send),
            Route(f"/upload{ME}/messages/send", self._send, methods=["POST"]),
            route("messages/{id}", "GET", self._get),
            route("messages/{id}/trash", "POST", self._trash),
            route("messages/{id}/modify", "POST", self._modify),
            route("messages/{id}/attachments/{key}", "GET", self._attachment),
            route("drafts", "GET", self._drafts),
            route("drafts", "POST", self._create_draft),
            Route(f"/upload{ME}/drafts", self._create_draft, methods=["POST"]),
            route("drafts/send", "POST", self._send_draft),
            route("drafts/{id}", "GET", self._get_draft),
            route("drafts/{id}", "PUT", self._put_draft),
            route("drafts/{id}", "DELETE", self._delete_draft),
            route("labels", "GET", self._labels),
            route("labels", "POST", self._create_label),
            route("labels/{id}", "DELETE", self._delete_label),
            route("settings/filters", "GET", self._filters),
            route("settings/filters", "POST", self._create_filter),
            route("settings/filters/{id}", "GET", self._get_filter),
            route("settings/filters/{id}", "DELETE", self._delete_filter),
        ]

    def _keep(self, data: bytes, labels: set[str], thread: str | None, age: float = 0) -> Mail:
        number = next(self._numbers)
        mail = Mail(f"m{number}", thread or f"t{number}", labels, data, time.time() - age)
        self.mails[mail.id] = mail
        return mail

    def _thread_of(self, data: bytes) -> str | None:
        known = str(email.message_from_bytes(data).get("In-Reply-To", ""))
        return next((mail.thread for mail in self.mails.values() if known and mail.message_id == known), None)

    @staticmethod
    def _query_of(criteria: dict[str, Any]) -> str:
        words = [f'{name}:"{criteria[name]}"' for name in ("from", "to", "subject") if name in criteria]
        if criteria.get("hasAttachment"):
            words.append("has:attachment")
        if "size" in criteria:
            words.append(f"{criteria['sizeComparison']}:{criteria['size']}")
        return " ".join([*words, criteria.get("query", "")])

    async def _profile(self, request: Request) -> Response:
        return JSONResponse({"emailAddress": self.address, "historyId": str(next(self._numbers))})

    async def _history(self, request: Request) -> Response:
        start = int(request.query_params["startHistoryId"])
        if start < self.history_begins:
            return problem(404, "Requested entity was not found.", "notFound")
        records = [
            {"id": str(number), "messagesAdded": [{"message": {"id": one}}]}
            for number, one in self.history
            if number > start
        ]
        return JSONResponse({"history": records, "historyId": str(next(self._numbers))})

    async def _list(self, request: Request) -> Response:
        query, count = request.query_params.get("q", ""), int(request.query_params.get("maxResults", 100))
        labels = set(request.query_params.getlist("labelIds"))
        start = int(request.query_params.get("pageToken", 0))
        hidden = {"TRASH", "SPAM"} - labels
        if "in:trash" in query or "in:anywhere" in query:
            hidden = set()
        found = [
            mail
            for mail in sorted(self.mails.values(), key=lambda one: (one.at, one.id), reverse=True)
            if labels <= mail.labels and not hidden & mail.labels and fits(mail, query, self)
        ]
        page: dict[str, Any] = {
            "messages": [{"id": mail.id, "threadId": mail.thread} for mail in found[start : start + count]],
            "resultSizeEstimate": len(found),
        }
        if start + count < len(found):
            page["nextPageToken"] = str(start + count)
        return JSONResponse(page)

    async def _get(self, request: Request) -> Response:
        mail = self.mails.get(request.path_params["id"])
        return JSONResponse(_message(mail, request.query_params.get("format", "full"))) if mail else _gone()

    async def _send(self, request: Request) -> Response:
        around, data = await _submitted(request)
        self.sent.append(data)
        thread = around.get("threadId")
        known = thread in {mail.thread for mail in self.mails.values()}
        mail = self._keep(data, {"SENT"}, thread if known else self._thread_of(data))
        return JSONResponse({"id": mail.id, "threadId": mail.thread, "labelIds": ["SENT"]})

    async def _trash(self, request: Request) -> Response:
        mail = self.mails.get(request.path_params["id"])
        if mail is None:
            return _gone()
        mail.labels = (mail.labels - {"INBOX"}) | {"TRASH"}
        return JSONResponse(_message(mail, "minimal"))

    async def _modify(self, request: Request) -> Response:
        mail, change = self.mails.get(request.path_params["id"]), await request.json()
        if mail is None:
            return _gone()
        named = {*change.get("addLabelIds", []), *change.get("removeLabelIds", [])}
        if not named <= {*SYSTEM, *self.labels}:
            return problem(400, "Invalid label", "invalidArgument")
        mail.labels = (mail.labels | set(change.get("addLabelIds", []))) - set(change.get("removeLabelIds", []))
        return JSONResponse(_message(mail, "minimal"))

    async def _attachment(self, request: Request) -> Response:
        mail = self.mails.get(request.path_params["id"])
        keys = _keys(mail) if mail else {}
        data = keys.get(request.path_params["key"])
        return JSONResponse({"size": len(data), "data": _pack(data)}) if data is not None else _gone()

    async def _drafts(self, request: Request) -> Response:
        listed = [{"id": one, "message": {"id": mail}} for one, mail in reversed(self.drafts.items())]
        return JSONResponse({"drafts": listed[: int(request.query_params.get("maxResults", 100))]})

    async def _create_draft(self, request: Request) -> Response:
        around, data = await _submitted(request)
        mail = self._keep(data, {"DRAFT"}, around.get("message", {}).get("threadId"))
        self.drafts[f"r{mail.id}"] = mail.id
        return JSONResponse({"id": f"r{mail.id}", "message": {"id": mail.id, "threadId": mail.thread}})

    async def _get_draft(self, request: Request) -> Response:
        draft = request.path_params["id"]
        if draft not in self.drafts:
            return _gone()
        mail = self.mails[self.drafts[draft]]
        return JSONResponse({"id": draft, "message": _message(mail, request.query_params.get("format", "full"))})

    async def _put_draft(self, request: Request) -> Response:
        draft = request.path_params["id"]
        if draft not in self.drafts:
            return _gone()
        around, data = await _submitted(request)
        del self.mails[self.drafts[draft]]
        mail = self._keep(data, {"DRAFT"}, around.get("message", {}).get("threadId"))
        self.drafts[draft] = mail.id
        return JSONResponse({"id": draft, "message": {"id": mail.id, "threadId": mail.thread}})

    async def _send_draft(self, request: Request) -> Response:
        draft = (await request.json())["id"]
        if draft not in self.drafts:
            return _gone()
        mail = self.mails[self.drafts.pop(draft)]
        mail.labels = {"SENT"}
        self.sent.append(mail.data)
        return JSONResponse({"id": mail.id, "threadId": mail.thread, "labelIds": ["SENT"]})

    async def _delete_draft(self, request: Request) -> Response:
        if request.path_params["id"] not in self.drafts:
            return _gone()
        del self.mails[self.drafts.pop(request.path_params["id"])]
        return Response(status_code=204)

    async def _labels(self, request: Request) -> Response:
        system = [{"id": name, "name": name, "type": "system"} for name in SYSTEM]
        own = [{"id": one, "name": name, "type": "user"} for one, name in self.labels.items()]
        return JSONResponse({"labels": [*system, *own]})

    async def _create_label(self, request: Request) -> Response:
        name = (await request.json())["name"]
        if name in self.labels.values():
            return problem(409, "Label name exists or conflicts", "aborted")
        made = f"Label_{next(self._numbers)}"
        self.labels[made] = name
        return JSONResponse({"id": made, "name": name, "type": "user"})

    async def _delete_label(self, request: Request) -> Response:
        if self.labels.pop(request.path_params["id"], None) is None:
            return _gone()
        for mail in self.mails.values():
            mail.labels.discard(request.path_params["id"])
        return Response(status_code=204)

    async def _filters(self, request: Request) -> Response:
        return JSONResponse({"filter": list(self.filters.values())} if self.filters else {})

    async def _create_filter(self, request: Request) -> Response:
        asked = await request.json()
        if asked["action"].get("forward"):
            return problem(400, "Unrecognized forwarding address", "invalidArgument")
        made = {"id": f"F{next(self._numbers)}", **asked}
        self.filters[made["id"]] = made
        return JSONResponse(made)

    async def _get_filter(self, request: Request) -> Response:
        found = self.filters.get(request.path_params["id"])
        return JSONResponse(found) if found else _gone()

    async def _delete_filter(self, request: Request) -> Response:
        return Response(status_code=204) if self.filters.pop(request.path_params["id"], None) else _gone()


def _gone() -> Response:
    return problem(404, "Requested entity was not found.", "notFound")


async def _submitted(request: Request) -> tuple[dict[str, Any], bytes]:
    """What goes around the mail, and the mail: from JSON, or from an upload in two parts."""
    body = await request.body()
    kind = request.headers["content-type"]
    if not kind.startswith("multipart/related"):
        around = json.loads(body)
        raw = around.get("raw") or around["message"]["raw"]
        return around, base64.urlsafe_b64decode(raw)
    edge = kind.partition("boundary=")[2].encode()
    _, about, mail, _ = body.split(b"--" + edge)
    return json.loads(about.partition(b"\r\n\r\n")[2]), mail.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


def _message(mail: Mail, how: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": mail.id,
        "threadId": mail.thread,
        "labelIds": sorted(mail.labels),
        "internalDate": str(int(mail.at * 1000)),
        "sizeEstimate": len(mail.data),
        "snippet": "",
    }
    if how == "minimal":
        return shown
    raw = email.message_from_bytes(mail.data)
    payload = _payload(raw, "", mail)
    if how == "metadata":
        payload = {"mimeType": payload["mimeType"], "headers": payload["headers"]}
    body = mail.parsed.get_body(("plain", "html")) if how == "full" else None
    text = body.get_content() if body is not None else ""
    return {**shown, "snippet": " ".join(text.split())[:100].replace("&", "&amp;"), "payload": payload}


def _payload(part: Message, place: str, mail: Mail) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "partId": place,
        "mimeType": part.get_content_type(),
        "filename": part.get_filename() or "",
        "headers": [{"name": name, "value": str(value)} for name, value in part.items()],
        "body": {"size": 0},
    }
    payload = part.get_payload()
    if isinstance(payload, list):
        shown["parts"] = [
            _payload(one, f"{place}.{number}" if place else str(number), mail) for number, one in enumerate(payload)
        ]
    else:
        data = part.get_payload(decode=True) or b""
        shown["body"] = {"size": len(data)}
        if part.get_filename():
            # Google's ids of attachments are new in every answer.
            shown["body"]["attachmentId"] = f"A{time.monotonic_ns()}-{place}"
        else:
            shown["body"]["data"] = _pack(data)
    return shown


class _Keys(dict[str, bytes]):
    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key.partition("-")[2], default)


def _keys(mail: Mail) -> _Keys:
    found = _Keys()

    def walk(part: Message, place: str) -> None:
        payload = part.get_payload()
        if isinstance(payload, list):
            for number, one in enumerate(payload):
                walk(one, f"{place}.{number}" if place else str(number))
        else:
            found[place] = part.get_payload(decode=True) or b""

    walk(email.message_from_bytes(mail.data), "")
    return found


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
