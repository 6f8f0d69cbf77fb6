"""A Bot API on this machine: the same methods, long polling, webhooks and refusals, over real HTTP."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2 as httpx

TOKEN = "123456:a-token-of-the-double"
Payload = dict[str, Any]
BOT_ID = 1000


@dataclass
class SentMessage:
    chat_id: str
    message_id: int
    text: str
    buttons: list[tuple[str, str]] = field(default_factory=list)
    parse_mode: str | None = None
    file: bytes | None = None


def _read_buttons(given: Payload) -> list[tuple[str, str]]:
    keyboard = given.get("reply_markup", {}).get("inline_keyboard", [])
    return [(one["text"], one["callback_data"]) for row in keyboard for one in row]


class BotApiDouble:
    """Holds updates until they are acknowledged by an offset, as the real one does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._updates: list[Payload] = []
        self._numbers, self._messages = itertools.count(1), itertools.count(1)
        self.bot_id = BOT_ID
        self.reset()

    def reset(self) -> None:
        """Refuse nothing, and forget what was sent. Updates and messages are counted on."""
        self.sent: list[SentMessage] = []
        self.calls: list[tuple[str, Payload]] = []
        self.files: dict[str, bytes] = {}
        self.webhook: Payload = {}
        self.refuse: Callable[[str, Payload], tuple[int, Payload] | None] = lambda _method, _given: None
        """Called for each method; a status and a body are answered instead."""
        self.cut: Callable[[str, Payload], bool] = lambda _method, _given: False
        """Called after a method took effect; True closes the connection without an answer."""

    def become(self, bot_id: int) -> None:
        """Be another bot, which counts updates and messages anew."""
        with self._changed:
            self.bot_id, self._updates = bot_id, []
            self._numbers, self._messages = itertools.count(1), itertools.count(1)

    def say(self, text: str, /, sender: int = 7, chat: int | None = None, **more: object) -> Payload:
        """A message of a person, delivered until it is acknowledged."""
        private = chat is None
        message = {
            "message_id": next(self._messages),
            "from": {"id": sender, "is_bot": False, "first_name": f"Person {sender}"},
            "chat": {"id": sender if private else chat, "type": "private" if private else "group"},
            "date": int(time.time()),
            "text": text,
            **more,
        }
        return self.put({"message": {name: value for name, value in message.items() if value is not None}})

    def press(self, sent: SentMessage, label: str, sender: int = 7) -> Payload:
        """Press a button of a message that the bot has sent."""
        data = dict(sent.buttons)[label]
        pressed = {
            "id": f"press{next(self._messages)}",
            "from": {"id": sender, "is_bot": False, "first_name": f"Person {sender}"},
            "message": {"message_id": sent.message_id, "chat": {"id": int(sent.chat_id), "type": "private"}},
            "data": data,
        }
        return self.put({"callback_query": pressed})

    def put(self, update: Payload) -> Payload:
        with self._changed:
            whole = {"update_id": next(self._numbers), **update}
            self._updates.append(whole)
            self._changed.notify_all()
        if self.webhook.get("url"):
            self.call_webhook(whole)
        return whole

    def call_webhook(self, update: Payload) -> int:
        headers = {"X-Telegram-Bot-Api-Secret-Token": str(self.webhook.get("secret_token", ""))}
        return httpx.post(self.webhook["url"], json=update, headers=headers, timeout=30).status_code

    def texts(self, chat: int = 7) -> list[str]:
        with self._changed:
            return [one.text for one in self.sent if one.chat_id == str(chat)]

    def count(self, method: str) -> int:
        with self._changed:
            return sum(name == method for name, _ in self.calls)

    def answer(self, method: str, given: Payload, file: bytes | None) -> tuple[int, Payload]:
        with self._changed:
            self.calls.append((method, given))
        refused = self.refuse(method, given)
        if refused is not None:
            return refused
        do = getattr(self, f"_{_snake(method)}", None)
        if do is None:
            return 404, {"ok": False, "error_code": 404, "description": "Not Found: method not found"}
        return 200, {"ok": True, "result": do(given, file)}

    def _get_me(self, _given: Payload, _file: bytes | None) -> Payload:
        return {"id": self.bot_id, "is_bot": True, "first_name": "Annabelle", "username": "annabelle_bot"}

    def _get_updates(self, given: Payload, _file: bytes | None) -> list[Payload]:
        until = time.monotonic() + float(given.get("timeout", 0))
        with self._changed:
            self._updates = [one for one in self._updates if one["update_id"] >= int(given.get("offset", 0))]
            while not self._updates and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._updates[:100]

    def _send_message(self, given: Payload, _file: bytes | None) -> Payload:
        with self._changed:
            sent = SentMessage(
                str(given["chat_id"]),
                next(self._messages),
                given["text"],
                _read_buttons(given),
                given.get("parse_mode"),
            )
            self.sent.append(sent)
            self._changed.notify_all()
            return {"message_id": sent.message_id, "chat": {"id": given["chat_id"]}}

    def _send_document(self, given: Payload, file: bytes | None) -> Payload:
        sent = self._send_message({"text": "", **given}, None)
        self.sent[-1].file = file
        return sent

    def _edit_message_text(self, given: Payload, _file: bytes | None) -> bool:
        with self._changed:
            for one in self.sent:
                if one.message_id == given["message_id"]:
                    one.text, one.buttons = given["text"], _read_buttons(given)
        return True

    def _delete_messages(self, given: Payload, _file: bytes | None) -> bool:
        with self._changed:
            self.sent = [one for one in self.sent if one.message_id not in given["message_ids"]]
        return True

    def _send_chat_action(self, _given: Payload, _file: bytes | None) -> bool:
        return True

    def _answer_callback_query(self, _given: Payload, _file: bytes | None) -> bool:
        return True

    def _set_my_commands(self, _given: Payload, _file: bytes | None) -> bool:
        return True

    def _set_webhook(self, given: Payload, _file: bytes | None) -> bool:
        self.webhook = given
        return True

    def _delete_webhook(self, _given: Payload, _file: bytes | None) -> bool:
        self.webhook = {}
        return True

    def _get_file(self, given: Payload, _file: bytes | None) -> Payload:
        return {"file_id": given["file_id"], "file_path": f"documents/{given['file_id']}"}


def _snake(method: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in method)


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error."""


@contextmanager
def serve(server: LoopbackServer) -> Iterator[str]:
    """Its address, for as long as it runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def bot_api_double() -> Iterator[tuple[BotApiDouble, str]]:
    """The double and its address."""
    double = BotApiDouble()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            _, bot, method = urlsplit(self.path).path.split("/")
            given, file = _read_body(self.headers.get("content-type", ""), body)
            if bot != f"bot{TOKEN}":
                self._reply(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
                return
            status, answer = double.answer(method, given, file)
            if status == 200 and double.cut(method, given):
                self.close_connection = True
                self.connection.close()
                return
            self._reply(status, answer)

        def do_GET(self) -> None:
            content = double.files.get(urlsplit(self.path).path.rpartition("/")[2])
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def _reply(self, status: int, answer: Payload) -> None:
            blob = json.dumps(answer).encode()
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


def _read_body(content_type: str, body: bytes) -> tuple[Payload, bytes | None]:
    if not content_type.startswith("multipart/"):
        return cast("Payload", json.loads(body or b"{}")), None
    boundary = content_type.partition("boundary=")[2].encode()
    given: Payload = {}
    file: bytes | None = None
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = head.partition(b'name="')[2].partition(b'"')[0].decode()
        if b"filename=" in head:
            file = content
        else:
            given[name] = content.decode()
    return given, file
