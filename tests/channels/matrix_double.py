"""A Matrix homeserver on this machine: the client-server API as the specification has it, over real HTTP."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from channels.bot_api_double import LoopbackServer, serve

TOKEN = "syt_a-token-of-the-double"
OWN_ID = "@annabelle:example.org"
Payload = dict[str, Any]


@dataclass
class Room:
    members: set[str]
    events: list[tuple[int, Payload]] = field(default_factory=list)
    """With the position in the stream at which each came."""
    encrypted: bool = False
    joined_at: int = 0


class MatrixDouble:
    """Rooms with their events in one stream of positions, as a homeserver has them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._position, self._ids = 1, itertools.count(1)
        self.rooms: dict[str, Room] = {}
        self.invitations: dict[str, tuple[int, str, bool]] = {}
        self.left: set[str] = set()
        self.transactions: dict[str, str] = {}
        self.account_data: dict[tuple[str, str], Payload] = {}
        self.media: dict[str, bytes] = {}
        self.calls: list[tuple[str, str]] = []
        self.refuse: Callable[[str, str, Payload], tuple[int, Payload] | None] = lambda _method, _path, _body: None
        """Called for each request; a status and a body are answered instead."""
        self.cut: Callable[[str, Payload], bool] = lambda _path, _body: False
        """Called after a request took effect; True closes the connection without an answer."""

    def invite(self, sender: str, room_id: str, *, encrypted: bool = False) -> None:
        with self._changed:
            self.rooms[room_id] = Room({sender}, encrypted=encrypted)
            self.invitations[room_id] = (self._next(), sender, encrypted)

    def say(self, room_id: str, sender: str, body: str, *, ago: float = 0.0, **content: object) -> Payload:
        """A message of somebody in a room."""
        whole = {"msgtype": "m.text", "body": body, **content}
        return self.put(room_id, sender, "m.room.message", whole, ago=ago)

    def put(self, room_id: str, sender: str, kind: str, content: Payload, *, ago: float = 0.0) -> Payload:
        event = {
            "type": kind,
            "event_id": f"$event{next(self._ids)}",
            "sender": sender,
            "origin_server_ts": int((time.time() - ago) * 1000),
            "content": content,
        }
        self.repeat(room_id, event)
        return event

    def repeat(self, room_id: str, event: Payload) -> None:
        """The same event again, further down the stream."""
        with self._changed:
            self.rooms[room_id].events.append((self._next(), event))

    def hold(self) -> threading.Condition:
        """While it is held, nobody is told what comes."""
        return self._changed

    def told(self, room_id: str) -> list[Payload]:
        """What Annabelle's account has sent into a room, edits applied and redactions gone."""
        with self._changed:
            events = [event for _, event in self.rooms[room_id].events if event.get("sender") == OWN_ID]
        shown = {event["event_id"]: dict(event["content"]) for event in events}
        for event in events:
            relation = event["content"].get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                shown.pop(event["event_id"], None)
                if relation["event_id"] in shown:
                    shown[relation["event_id"]] = event["content"]["m.new_content"]
        return [content for content in shown.values() if content]

    def answer(self, method: str, path: list[str], query: dict[str, str], body: Payload) -> tuple[int, Payload]:
        with self._changed:
            self.calls.append((method, "/".join(path)))
        match method, path:
            case "GET", ["account", "whoami"]:
                return 200, {"user_id": OWN_ID, "device_id": "DEVICE"}
            case "GET", ["profile", _]:
                return 200, {"displayname": "Annabelle"}
            case "GET", ["sync"]:
                return 200, self._sync(query)
            case "GET", ["rooms", room_id, "joined_members"]:
                return 200, {"joined": {one: {} for one in self.rooms[room_id].members}}
            case "GET", ["rooms", room_id, "messages"]:
                return 200, self._page(room_id, query)
            case "POST", ["rooms", room_id, "join"]:
                with self._changed:
                    self.invitations.pop(room_id, None)
                    self.rooms[room_id].members.add(OWN_ID)
                    self.rooms[room_id].joined_at = self._next()
                return 200, {"room_id": room_id}
            case "POST", ["rooms", room_id, "leave"]:
                with self._changed:
                    self.invitations.pop(room_id, None)
                    self.rooms[room_id].members.discard(OWN_ID)
                    self.left.add(room_id)
                return 200, {}
            case "PUT", ["rooms", room_id, "send", kind, transaction]:
                return 200, {"event_id": self._send(room_id, kind, transaction, body)}
            case "PUT", ["rooms", room_id, "redact", event_id, _]:
                with self._changed:
                    for _, event in self.rooms[room_id].events:
                        if event["event_id"] == event_id:
                            event["content"] = {}
                return 200, {"event_id": f"$event{next(self._ids)}"}
            case "PUT", ["rooms", _, "typing", _]:
                return 200, {}
            case "GET", ["user", _, "rooms", room_id, "account_data", kind]:
                kept = self.account_data.get((room_id, kind))
                return (404, {"errcode": "M_NOT_FOUND", "error": "Not found"}) if kept is None else (200, kept)
            case "PUT", ["user", _, "rooms", room_id, "account_data", kind]:
                self.account_data[room_id, kind] = body
                return 200, {}
            case _:
                return 404, {"errcode": "M_UNRECOGNIZED", "error": "Unrecognized request"}

    def _next(self) -> int:
        self._position += 1
        self._changed.notify_all()
        return self._position

    def _sync(self, query: dict[str, str]) -> Payload:
        since = int(query["since"].removeprefix("s")) if "since" in query else 0
        limit = json.loads(query["filter"])["room"]["timeline"]["limit"]
        until = time.monotonic() + int(query.get("timeout", "0")) / 1000
        with self._changed:
            while self._position <= since and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return {
                "next_batch": f"s{self._position}",
                "rooms": {
                    "join": {
                        room_id: self._room(room, since, limit)
                        for room_id, room in self.rooms.items()
                        if OWN_ID in room.members and any(at > since for at in (room.joined_at, *dict(room.events)))
                    },
                    "invite": {
                        room_id: {"invite_state": {"events": _invitation(sender, encrypted)}}
                        for room_id, (at, sender, encrypted) in self.invitations.items()
                        if at > since
                    },
                },
            }

    def _room(self, room: Room, since: int, limit: int) -> Payload:
        fresh = room.joined_at > since
        new = [(at, event) for at, event in room.events if at > since or fresh]
        shown = new[-limit:]
        return {
            "summary": {"m.joined_member_count": len(room.members)},
            "timeline": {
                "events": [event for _, event in shown],
                "limited": len(new) > limit,
                "prev_batch": f"s{shown[0][0] - 1 if shown else 0}",
            },
            "state": {"events": [{"type": "m.room.encryption"}] if room.encrypted and (fresh or since == 0) else []},
        }

    def _page(self, room_id: str, query: dict[str, str]) -> Payload:
        start, end = int(query["from"].removeprefix("s")), int(query["to"].removeprefix("s"))
        with self._changed:
            older = [(at, event) for at, event in self.rooms[room_id].events if end < at <= start][::-1]
        shown = older[: int(query["limit"])]
        more = {"end": f"s{shown[-1][0] - 1}"} if len(older) > len(shown) else {}
        return {"chunk": [event for _, event in shown], **more}

    def _send(self, room_id: str, kind: str, transaction: str, body: Payload) -> str:
        with self._changed:
            known = self.transactions.get(transaction)
        if known is not None:
            return known
        event = self.put(room_id, OWN_ID, kind, body)
        with self._changed:
            return self.transactions.setdefault(transaction, event["event_id"])


def _invitation(sender: str, encrypted: bool) -> list[Payload]:
    member = {"type": "m.room.member", "sender": sender, "state_key": OWN_ID, "content": {"membership": "invite"}}
    return [member, {"type": "m.room.encryption"}] if encrypted else [member]


@contextmanager
def matrix_double() -> Iterator[tuple[MatrixDouble, str]]:
    """The double and its address."""
    double = MatrixDouble()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_request(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if self.headers.get("authorization") != f"Bearer {TOKEN}":
                self._reply(401, {"errcode": "M_UNKNOWN_TOKEN", "error": "Unrecognised access token"})
                return
            if "/media/" in parts.path:
                self._answer_media(parts.path, content)
                return
            path = [unquote(one) for one in parts.path.removeprefix("/_matrix/client/v3/").split("/")]
            body = json.loads(content or b"{}")
            refused = double.refuse(self.command, "/".join(path), body)
            status, answer = refused or double.answer(self.command, path, query, body)
            if status == 200 and double.cut("/".join(path), body):
                self.close_connection = True
                self.connection.close()
                return
            self._reply(status, answer)

        do_GET = do_POST = do_PUT = handle_request

        def _answer_media(self, path: str, content: bytes) -> None:
            name = path.rpartition("/")[2]
            if name == "upload":
                key = f"media{len(double.media)}"
                double.media[key] = content
                self._reply(200, {"content_uri": f"mxc://example.org/{key}"})
                return
            known = double.media.get(name) if "/client/v1/" in path else None
            if known is None:
                self._reply(404, {"errcode": "M_NOT_FOUND", "error": "Not found"})
                return
            self._reply(200, known)

        def _reply(self, status: int, answer: Payload | bytes) -> None:
            blob = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(blob)))
                self.end_headers()
                self.wfile.write(blob)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with serve(LoopbackServer(("127.0.0.1", 0), Handler)) as address:
        yield double, address
