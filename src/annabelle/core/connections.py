"""Connected accounts: written by `annabelle connect`, read by the servers that use them.

Each is one file in the home that only its owner can read. It is never put into an environment, a log or a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from annabelle.core.errors import ConfigMistake, StorageTrouble, explain_os_error
from annabelle.core.home import Home, write_atomically

M = TypeVar("M", bound=BaseModel)

# Errors must not quote the file: a traceback would show its secrets.
_KEPT = ConfigDict(extra="forbid", hide_input_in_errors=True)


class GoogleAccount(BaseModel):
    """Mail and calendar at Google, by a refresh token that the user can revoke there."""

    model_config = _KEPT

    email: str
    client_id: str
    client_secret: SecretStr
    refresh_token: SecretStr
    scopes: list[str] = Field(default_factory=list[str])


class MailServerAddress(BaseModel):
    """Address of a mail server. `tls` encrypts from the first byte, `starttls` after the greeting."""

    model_config = _KEPT

    host: str
    port: int = Field(ge=1, le=65535)
    security: str = Field(default="tls", pattern="^(tls|starttls|none)$")


class MailAccount(BaseModel):
    """A mailbox: IMAP to read, SMTP to send, and optionally CalDAV for the calendar."""

    model_config = _KEPT

    address: str
    username: str
    password: SecretStr
    imap: MailServerAddress
    smtp: MailServerAddress
    caldav_url: str | None = None
    caldav_username: str | None = None
    caldav_password: SecretStr | None = None


class TelegramAccount(BaseModel):
    """A signed-in Telegram account. The session gives full access to the account."""

    model_config = _KEPT

    api_id: int
    api_hash: SecretStr
    session: SecretStr
    phone: str = ""
    name: str = ""


KINDS: dict[str, type[BaseModel]] = {"google": GoogleAccount, "mail": MailAccount, "telegram": TelegramAccount}
SERVERS = {"google": "gmail", "mail": "gmail", "telegram": "telegram"}
"""The server that uses each kind of account."""


def connection_file(home: Home, kind: str) -> Path:
    return home.connections / f"{kind}.json"


def read_connection(home: Home, kind: str, model: type[M]) -> M | None:
    """Reads the account of this kind, None if there is none. An unreadable file is a ConfigMistake."""
    file = connection_file(home, kind)
    try:
        return model.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigMistake(
            f"{file.name} of the connected accounts can not be read.",
            hint=f"Connect again: annabelle connect {kind}",
            field=kind,
        ) from error


class ConnectionFile(Generic[M]):
    """The file of one account, read again only when it has changed. Until then, it gives the same object."""

    def __init__(self, home: Home, kind: str, model: type[M]) -> None:
        self._home, self._kind, self._model = home, kind, model
        self._stamp: tuple[int, int, int] | None = None
        self._account: M | None = None

    def load(self) -> M | None:
        """The account, None if there is none. An unreadable file is a ConfigMistake."""
        try:
            status = connection_file(self._home, self._kind).stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            stamp = None
        if stamp is None or stamp != self._stamp:
            self._account = read_connection(self._home, self._kind, self._model)
            self._stamp = stamp
        return self._account


def write_connection(home: Home, kind: str, account: BaseModel) -> None:
    """Stores the account atomically."""
    hint = f"Fix {home.connections} and connect again."
    with explain_os_error(StorageTrouble, "The account could not be kept", hint=hint):
        home.connections.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.connections.chmod(0o700)
        write_atomically(connection_file(home, kind), _dump_with_secrets(account), 0o600)


def remove_connection(home: Home, kind: str) -> bool:
    """Deletes the account's file and returns whether there was one."""
    try:
        connection_file(home, kind).unlink()
    except FileNotFoundError:
        return False
    return True


def _dump_with_secrets(account: BaseModel) -> str:
    """Dumps an account with its secrets in clear text, only for its own file."""

    def reveal(value: object) -> object:
        if isinstance(value, SecretStr):
            return value.get_secret_value()
        if isinstance(value, BaseModel):
            return {name: reveal(getattr(value, name)) for name in type(value).model_fields}
        return value

    return _AnyFields.model_validate(reveal(account)).model_dump_json(indent=2)


class _AnyFields(BaseModel):
    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """One kind of account. `account` is the name its owner knows, or None."""

    kind: str
    account: str | None
    state: Literal["connected", "missing", "damaged"]


def read_state(home: Home, kind: str) -> ConnectionState:
    """The state of one kind; an unreadable file is a state, not a failure."""
    try:
        account = read_connection(home, kind, KINDS[kind])
    except ConfigMistake:
        return ConnectionState(kind, None, "damaged")
    return (
        ConnectionState(kind, None, "missing")
        if account is None
        else ConnectionState(kind, account_name(account), "connected")
    )


def account_name(account: BaseModel) -> str:
    """The name by which the owner knows an account."""
    match account:
        case GoogleAccount(email=email):
            return email
        case MailAccount(address=address):
            return address
        case TelegramAccount(phone=phone, name=name):
            return " ".join(filter(None, (name, phone)))
        case _:
            return ""
