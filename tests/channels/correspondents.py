"""People in each channel, for tests that all channels must pass: who writes, and what reaches them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from channels import matrix_double
from channels.bot_api_double import TOKEN, BotApiDouble, bot_api_double
from channels.matrix_double import MatrixDouble


class Correspondents(Protocol):
    """One channel seen from the other side. `account` is what the channel calls a person."""

    name: str
    settings: dict[str, str]
    doubles_are_impossible: bool
    """Whether a part that is sent again is the same message there."""

    def new_account(self, number: int) -> str: ...

    def say(self, account: str, text: str) -> Any:
        """A message of a person. What is returned can be delivered again."""
        ...

    def deliver_again(self, account: str, update: Any) -> None: ...

    def say_as_program(self, account: str, text: str) -> None: ...

    def texts(self, account: str) -> list[str]:
        """The words that reached a person, message by message."""
        ...

    def refuse_messages(self, account: str) -> None:
        """From now on nothing can be sent to this person."""
        ...

    def cut_connection_at(self, words: str) -> None:
        """Break the connection once, after a message with these words was taken."""
        ...


class TelegramPeople:
    name = "telegram"
    doubles_are_impossible = False

    def __init__(self, bot: BotApiDouble, address: str) -> None:
        self.bot = bot
        self.settings = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_API_URL": address}
        self._refused: set[str] = set()
        bot.refuse = self._refuse

    def new_account(self, number: int) -> str:
        return str(7000 + number)

    def say(self, account: str, text: str) -> Any:
        return self.bot.say(text, int(account))

    def deliver_again(self, account: str, update: Any) -> None:
        self.bot.put({"message": update["message"]})

    def say_as_program(self, account: str, text: str) -> None:
        self.bot.say(text, int(account), **{"from": {"id": int(account), "is_bot": True, "first_name": "Loop"}})

    def texts(self, account: str) -> list[str]:
        return [_read_words(one) for one in self.bot.texts(int(account))]

    def refuse_messages(self, account: str) -> None:
        self._refused.add(account)

    def cut_connection_at(self, words: str) -> None:
        cuts = iter([True])
        self.bot.cut = lambda method, given: (
            method == "sendMessage" and words in str(given.get("text")) and next(cuts, False)
        )

    def _refuse(self, method: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if method == "sendMessage" and str(given["chat_id"]) in self._refused:
            return 403, {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"}
        return None


class MatrixPeople:
    name = "matrix"
    doubles_are_impossible = True

    def __init__(self, homeserver: MatrixDouble, address: str) -> None:
        self.homeserver = homeserver
        self.settings = {"MATRIX_HOMESERVER": address, "MATRIX_ACCESS_TOKEN": matrix_double.TOKEN}
        self._refused: set[str] = set()
        homeserver.refuse = self._refuse

    def new_account(self, number: int) -> str:
        return f"@person{number}:example.org"

    def room(self, account: str) -> str:
        return f"!room-of-{account.partition(':')[0][1:]}:example.org"

    def say(self, account: str, text: str) -> Any:
        if self.room(account) not in self.homeserver.rooms:
            self.homeserver.invite(account, self.room(account))
        return self.homeserver.say(self.room(account), account, text)

    def deliver_again(self, account: str, update: Any) -> None:
        self.homeserver.repeat(self.room(account), update)

    def say_as_program(self, account: str, text: str) -> None:
        self.homeserver.say(self.room(account), account, text, msgtype="m.notice")

    def texts(self, account: str) -> list[str]:
        return [str(one["body"]) for one in self.homeserver.told(self.room(account))]

    def refuse_messages(self, account: str) -> None:
        self._refused.add(self.room(account))

    def cut_connection_at(self, words: str) -> None:
        cuts = iter([True])
        self.homeserver.cut = lambda _path, body: words in str(body.get("body")) and next(cuts, False)

    def _refuse(self, method: str, path: str, _body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if method == "PUT" and "/send/" in path and path.split("/")[1] in self._refused:
            return 403, {"errcode": "M_FORBIDDEN", "error": "You are not in the room."}
        return None


def _read_words(marked: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", marked))


@contextmanager
def telegram_people() -> Iterator[TelegramPeople]:
    with bot_api_double() as (bot, address):
        yield TelegramPeople(bot, address)


@contextmanager
def matrix_people() -> Iterator[MatrixPeople]:
    with matrix_double.matrix_double() as (homeserver, address):
        yield MatrixPeople(homeserver, address)


EVERY_CHANNEL = {"telegram": telegram_people, "matrix": matrix_people}
