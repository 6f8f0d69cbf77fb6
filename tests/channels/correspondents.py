"""People in each channel, for tests that all channels must pass: who writes, and what reaches them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from channels import matrix_double
from channels.bot_api_double import TOKEN, BotApiDouble, bot_api_double
from channels.matrix_double import MatrixDouble
from channels.telegram_log import append_entry, read_entries
from support.mail_servers import DOMAIN, MailServers, start_mail_servers
from support.telegram_double import ME


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

    def files(self, account: str) -> list[bytes]:
        """The files that reached this person."""
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

    def files(self, account: str) -> list[bytes]:
        return [one.file for one in self.bot.sent if one.chat_id == account and one.file is not None]

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

    def files(self, account: str) -> list[bytes]:
        shown = [one for one in self.homeserver.told(self.room(account)) if one["msgtype"] == "m.file"]
        return [self.homeserver.media[str(one["url"]).rpartition("/")[2]] for one in shown]

    def refuse_messages(self, account: str) -> None:
        self._refused.add(self.room(account))

    def cut_connection_at(self, words: str) -> None:
        cuts = iter([True])
        self.homeserver.cut = lambda _path, body: words in str(body.get("body")) and next(cuts, False)

    def _refuse(self, method: str, path: str, _body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if method == "PUT" and "/send/" in path and path.split("/")[1] in self._refused:
            return 403, {"errcode": "M_FORBIDDEN", "error": "You are not in the room."}
        return None


AUTHSERV_ID = "mx.example.com"
VOUCHED_FOR = f"{AUTHSERV_ID}; dmarc=pass header.from={DOMAIN}"


class EmailPeople:
    name = "email"
    doubles_are_impossible = False

    def __init__(self, servers: MailServers) -> None:
        self.servers, self.address = servers, servers.new_address()
        self.settings = {
            "EMAIL_CHANNEL_ADDRESS": self.address,
            "EMAIL_CHANNEL_PASSWORD": servers.password,
            "EMAIL_CHANNEL_IMAP_HOST": "127.0.0.1",
            "EMAIL_CHANNEL_IMAP_PORT": str(servers.imap_port),
            "EMAIL_CHANNEL_IMAP_SECURITY": "none",
            "EMAIL_CHANNEL_SMTP_HOST": "127.0.0.1",
            "EMAIL_CHANNEL_SMTP_PORT": str(servers.smtp_port),
            "EMAIL_CHANNEL_SMTP_SECURITY": "none",
            "EMAIL_CHANNEL_AUTHSERV_ID": AUTHSERV_ID,
        }

    def new_account(self, number: int) -> str:
        return f"person{number}@{DOMAIN}"

    def say(self, account: str, text: str) -> EmailMessage:
        mail = self.write(account, text)
        self.deliver_again(account, mail)
        return mail

    def write(self, account: str, text: str, **headers: str) -> EmailMessage:
        mail = EmailMessage()
        written = {
            "Authentication-Results": VOUCHED_FOR,
            "From": account,
            "To": self.address,
            "Subject": "Re: our talk",
            "In-Reply-To": f"<earlier@{DOMAIN}>",
            "Message-ID": make_msgid(domain=DOMAIN),
            "Date": formatdate(),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        for name, value in written.items():
            mail[name] = value
        mail.set_content(text)
        return mail

    def deliver_again(self, account: str, update: EmailMessage) -> None:
        self.servers.deliver(self.address, update.as_bytes())

    def say_as_program(self, account: str, text: str) -> None:
        self.deliver_again(account, self.write(account, text, Auto_Submitted="auto-generated"))

    def mails(self, account: str) -> list[EmailMessage]:
        return [parse(one.content) for one in self.servers.sent_to(account)]

    def texts(self, account: str) -> list[str]:
        return [read_body(mail) for mail in self.mails(account)]

    def files(self, account: str) -> list[bytes]:
        parts = [part for mail in self.mails(account) for part in mail.iter_attachments()]
        return [part.get_payload(decode=True) for part in parts]  # type: ignore[misc]

    def refuse_messages(self, account: str) -> None:
        self.servers.refused.add(account)

    def cut_connection_at(self, words: str) -> None:
        cuts = iter([True])
        self.servers.hang_up_after = lambda content: words in read_body(parse(content)) and next(cuts, False)


class TelegramAccountPeople:
    name = "telegram_account"
    doubles_are_impossible = True

    def __init__(self, log: Path) -> None:
        self.log = log
        self.settings = {
            "TELEGRAM_ACCOUNT_CHANNEL": "true",
            "EXTRA_SERVERS_PATH": str(Path(__file__).parent / "account_servers"),
            "TELEGRAM_DOUBLE_LOG": str(log),
        }
        self.own_message("The account is used.", 1)  # or it has no chat yet

    def new_account(self, number: int) -> str:
        return str(8000 + number)

    def say(self, account: str, text: str) -> Any:
        return append_entry(self.log, chat=int(account), text=text)

    def deliver_again(self, account: str, update: Any) -> None:
        """Telegram does not repeat by itself; a cursor that was not stored does, which a killed hub shows."""

    def say_as_program(self, account: str, text: str) -> None:
        append_entry(self.log, chat=int(account), text=f"I was away when you wrote this {text}")
        append_entry(self.log, chat=int(account) + 500_000, text=text, bot=True)

    def own_message(self, text: str, chat: int = ME) -> None:
        """What the owner writes in the app, by default into Saved Messages."""
        append_entry(self.log, chat=chat, text=text, sender=ME)

    def texts(self, account: str) -> list[str]:
        entries = [one for one in read_entries(self.log) if "random_id" in one]
        return [one["text"] for one in entries if one["chat"] == int(account)]

    def files(self, account: str) -> list[bytes]:
        entries = [one for one in read_entries(self.log) if "file" in one and one["chat"] == int(account)]
        return [bytes.fromhex(one["file"]) for one in entries]

    def refuse_messages(self, account: str) -> None:
        append_entry(self.log, blocked=int(account))

    def cut_connection_at(self, words: str) -> None:
        append_entry(self.log, cut=words)


def parse(content: bytes) -> EmailMessage:
    return message_from_bytes(content, policy=policy.default)


def read_body(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    return part.get_content().replace("\r\n", "\n").strip()


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


@contextmanager
def email_people() -> Iterator[EmailPeople]:
    with start_mail_servers() as servers:
        yield EmailPeople(servers)


@contextmanager
def telegram_account_people() -> Iterator[TelegramAccountPeople]:
    with TemporaryDirectory() as folder:
        yield TelegramAccountPeople(Path(folder) / "telegram.jsonl")


EVERY_CHANNEL = {
    "telegram": telegram_people,
    "telegram_account": telegram_account_people,
    "matrix": matrix_people,
    "email": email_people,
}
