"""Typed interface to the used part of the IMAP library."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Protocol, cast

import imapclient
from imapclient import imap_utf7
from imapclient.exceptions import IMAPClientError
from imapclient.imapclient import _literal as literal  # pyright: ignore  no public name; sends bytes as they are

from annabelle.core.connections import MailServerAddress
from annabelle.servers.mail_calendar.mail.search_query import Criteria, SearchText

SECONDS = 30.0
"""Seconds a server may be silent after sign-in."""

_LIFE_SECONDS = 5.0

_LISTED = re.compile(
    rb'\((?P<flags>[^)]*)\) (?P<between>"(?:\\.|[^"\\])*"|NIL) (?P<name>.*)', re.IGNORECASE | re.DOTALL
)


class _FolderLister(Protocol):
    def list(self) -> tuple[str, list[bytes | tuple[bytes, bytes] | None]]: ...


class ImapClient(Protocol):
    def login(self, username: str, password: str) -> object: ...
    def plain_login(self, identity: str, password: str) -> object: ...
    def starttls(self, ssl_context: ssl.SSLContext | None = None) -> object: ...
    def logout(self) -> object: ...
    def shutdown(self) -> None: ...
    def socket(self) -> socket.socket: ...
    def noop(self) -> object: ...
    def has_capability(self, capability: str) -> bool: ...
    def select_folder(self, folder: str, readonly: bool = False) -> dict[bytes, object]: ...
    def folder_status(self, folder: str, what: Sequence[str]) -> dict[bytes, int]: ...
    def create_folder(self, folder: str) -> object: ...
    def delete_folder(self, folder: str) -> object: ...
    def subscribe_folder(self, folder: str) -> object: ...
    def search(self, criteria: Sequence[bytes], charset: str | None = None) -> list[int]: ...
    def fetch(self, messages: Sequence[int], data: Sequence[str]) -> Mapping[int, Mapping[bytes, object]]: ...
    def append(self, folder: str, msg: bytes, flags: Sequence[bytes] = ()) -> bytes: ...
    def copy(self, messages: Sequence[int], folder: str) -> object: ...
    def move(self, messages: Sequence[int], folder: str) -> object: ...
    def add_flags(self, messages: Sequence[int], flags: Sequence[bytes], silent: bool = False) -> object: ...
    def remove_flags(self, messages: Sequence[int], flags: Sequence[bytes], silent: bool = False) -> object: ...
    def uid_expunge(self, messages: Sequence[int]) -> object: ...


def open_client(server: MailServerAddress, seconds: float, context: ssl.SSLContext) -> ImapClient:
    """Connect, with the account's encryption, without signing in."""
    timeout = imapclient.SocketTimeout(connect=seconds, read=seconds)
    client = imapclient.IMAPClient(
        server.host,
        port=server.port,
        ssl=server.security == "tls",
        ssl_context=context,
        timeout=timeout,  # pyright: ignore[reportArgumentType]  documented, not declared
    )
    opened = cast("ImapClient", client)
    if server.security == "starttls":
        opened.starttls(context)
    return opened


def check_alive(client: ImapClient) -> None:
    """Raise if an idle connection has broken. Waits only briefly."""
    client.socket().settimeout(_LIFE_SECONDS)
    client.noop()
    set_long_timeout(client)


def set_long_timeout(client: ImapClient) -> None:
    """Allow longer waits, as for a search of all mail."""
    client.socket().settimeout(SECONDS)


def encode_search(criteria: Criteria) -> list[bytes]:
    """Encode search criteria. Text is sent as a literal, so that it cannot be taken for a keyword."""
    words: list[bytes] = []
    for one in criteria:
        if isinstance(one, SearchText):
            words.append(cast("bytes", literal(one.value.encode("utf-8", "replace"))))
        elif isinstance(one, list):
            inside = [*encode_search(one), b"ALL)"]  # a literal cannot be followed by a parenthesis
            inside[0] = b"(" + inside[0]
            words += inside
        elif isinstance(one, date):
            words.append(imap_date(one).encode())
        else:
            words.append(str(one).encode())
    return words


ListedFolder = tuple[frozenset[bytes], str, str]
"""Flags in lower case, hierarchy delimiter and name of a folder."""


def list_folders(client: ImapClient) -> list[ListedFolder]:
    """All folders. Parsed here, because the library rejects the whole list if one name has an unmatched bracket."""
    inner = cast("_FolderLister", client._imap)  # pyright: ignore  no public access to the raw response
    kind, lines = inner.list()
    if kind != "OK":
        raise IMAPClientError("LIST failed")
    found: list[ListedFolder] = []
    for line in lines:
        whole, literal_name = line if isinstance(line, tuple) else (line, None)
        match = _LISTED.match(whole or b"")
        if match is None:
            continue
        name = literal_name if literal_name is not None else _unquote(match["name"])
        flags = frozenset(flag.lower() for flag in match["flags"].split())
        found.append((flags, _unquote(match["between"]).decode("ascii", "replace") or "/", imap_utf7.decode(name)))
    return found


def _unquote(word: bytes) -> bytes:
    if word.upper() == b"NIL":
        return b""
    return re.sub(rb"\\(.)", rb"\1", word[1:-1]) if word.startswith(b'"') else word


def imap_date(day: date) -> str:
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{day.day:02}-{months[day.month - 1]}-{day.year:04}"
