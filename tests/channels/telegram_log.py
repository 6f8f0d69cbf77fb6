"""A Telegram whose state is a log: the double of the client's boundary, shared by a test and a server process."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from telethon import errors, utils
from telethon.tl import functions, types

from support.telegram_double import ME, ClientDouble, TelegramDouble

Entry = dict[str, Any]


def append_entry(log: Path, **entry: Any) -> int:
    """Something happens at Telegram. Its number is its line."""
    with log.open("a+b") as file:
        file.write(json.dumps({"at": time.time(), **entry}).encode() + b"\n")
    return len(read_entries(log))


def read_entries(log: Path) -> list[Entry]:
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


class LoggedTelegram(TelegramDouble):
    """Reads the log before every request, so that it knows what others did, also before this process began."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log, self._applied = log, 0
        self.blocked: set[int] = set()
        self.cuts: set[str] = set()

    def client(self) -> LoggedClient:
        made = LoggedClient(self)
        self.clients.append(made)
        return made

    async def step(self, what: str) -> None:
        self.catch_up()
        await super().step(what)

    def send(self, chat: int, text: str, random_id: int) -> int:
        number = append_entry(self._log, chat=chat, text=text, sender=ME, random_id=random_id)
        self.catch_up()
        return number

    def write_file(self, marked: int, data: bytes, name: str | None, media_type: str = "text/plain") -> types.Message:
        append_entry(self._log, chat=marked, sender=ME, file=data.hex(), name=name)
        message = super().write_file(marked, data, name, media_type)
        self._applied = len(read_entries(self._log))
        return message

    def cut(self, words: str) -> None:
        append_entry(self._log, cut_done=words)
        self.catch_up()

    def catch_up(self) -> None:
        for number, entry in enumerate(read_entries(self._log), 1):
            if number > self._applied:
                self._applied = number
                self._apply(number, entry)

    def _apply(self, number: int, entry: Entry) -> None:
        if "blocked" in entry:
            self.blocked.add(entry["blocked"])
        elif "cut" in entry:
            self.cuts.add(entry["cut"])
        elif "cut_done" in entry:
            self.cuts.discard(entry["cut_done"])
        else:
            chat = entry["chat"]
            if chat not in self.users:
                self.user(f"Person {chat}", id=chat, bot=entry.get("bot", False))
            self._last_id = number - 1
            message = self.write(chat, entry.get("text", ""), sender=entry.get("sender"))
            message.date = datetime.fromtimestamp(entry["at"], UTC)
            if "random_id" in entry:
                self.random_ids[entry["random_id"]] = number


class LoggedClient(ClientDouble):
    async def __call__(self, request: Any) -> object:
        telegram = self._telegram
        assert isinstance(telegram, LoggedTelegram)
        if not isinstance(request, functions.messages.SendMessageRequest):
            return await super().__call__(request)
        await request.resolve(self, utils)
        await self._online("send")
        chat = self._marked(request.peer)
        if chat in telegram.blocked:
            raise errors.UserIsBlockedError(request=request)
        if request.random_id in telegram.random_ids:
            raise errors.RandomIdDuplicateError(request=request)
        assert request.no_webpage
        number = telegram.send(chat, request.message, request.random_id)
        for words in telegram.cuts:
            if words in request.message:
                telegram.cut(words)
                raise ConnectionError("cut")
        return types.UpdateShortSentMessage(id=number, pts=1, pts_count=1, date=datetime.now(UTC), out=True)
