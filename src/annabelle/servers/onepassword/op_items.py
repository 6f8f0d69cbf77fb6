"""The data `op` returns, which fields are secret, and handles for secrets."""

from __future__ import annotations

import base64
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from annabelle.core.errors import RetryByModel
from annabelle.core.secrets.patterns import ANY_SECRET
from annabelle.core.secrets.redactor import is_secret_name


class _OpModel(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class OpVault(_OpModel):
    id: str
    name: str
    items: int | None = Field(default=None, description="How many items it holds, where 1Password says so")


class OpUrl(_OpModel):
    href: str = ""


class OpSection(_OpModel):
    id: str = ""
    label: str = ""


class OpField(_OpModel):
    id: str = ""
    type: str = "STRING"
    purpose: str = ""
    label: str = ""
    value: str | None = Field(default=None, repr=False)
    totp: str | None = Field(default=None, repr=False)
    section: OpSection | None = None

    @property
    def name(self) -> str:
        return self.label or self.id or self.type.lower()


class OpFile(_OpModel):
    name: str = ""


class OpOverview(_OpModel):
    id: str
    title: str = ""
    category: str = ""
    vault: OpVault | None = None
    tags: list[str] = []
    urls: list[OpUrl] = []
    additional_information: str = ""


class OpItem(OpOverview):
    fields: list[OpField] = Field(default=[], repr=False)
    files: list[OpFile] = []


VAULTS = TypeAdapter(list[OpVault])
OVERVIEWS = TypeAdapter(list[OpOverview])
ITEM = TypeAdapter(OpItem)


_HARMLESS_TYPES = frozenset(
    ["URL", "EMAIL", "DATE", "MONTH_YEAR", "PHONE", "ADDRESS", "MENU", "GENDER", "CREDIT_CARD_TYPE", "REFERENCE"]
)
# Here even plain text is secret: card and account numbers, notes, words of a wallet.
_SECRET_CATEGORIES = frozenset(
    {
        "BANK_ACCOUNT", "CREDIT_CARD", "CRYPTO_WALLET", "DOCUMENT", "DRIVER_LICENSE", "MEDICAL_RECORD", "PASSPORT",
        "SECURE_NOTE", "SOCIAL_SECURITY_NUMBER", "SSH_KEY",
    }
)  # fmt: skip


def is_secret_field(field: OpField, category: str) -> bool:
    """Whether the value must be hidden. User names and URLs may be shown; notes never, since people keep codes in
    them."""
    if field.type in _HARMLESS_TYPES:
        return False
    if field.type != "STRING" or field.purpose in ("PASSWORD", "NOTES"):
        return True
    if field.purpose == "USERNAME":
        return False
    name = field.name.strip().replace(" ", "_")
    return (
        category.upper() in _SECRET_CATEGORIES
        or is_secret_name(name)
        or ANY_SECRET.search(field.value or "") is not None
    )


def redact_address(url: str) -> str:
    """A URL without user name, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    # The query may contain a sign-in token.
    return parts._replace(netloc=host, query="", fragment="").geturl()


PREFIX = "secret://onepassword/"
_MAX_HANDLES = 500
_RANDOM_BYTES = 10


@dataclass(frozen=True, slots=True)
class HandleHolder:
    """The agent and user a handle was issued to. Nobody else can use it."""

    agent_id: str | None
    user_id: str | None


@dataclass(frozen=True, slots=True)
class HeldSecret:
    """The value of a handle, or a reference to read each time, as for one-time codes. `sites` are the item's URLs."""

    item: str
    label: str
    value: str | None = field(default=None, repr=False)
    reference: str | None = None
    sites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _IssuedHandle:
    secret: HeldSecret
    holder: HandleHolder
    until: float


class SecretHandles:
    """Issues handles that expire. If there are too many, the oldest are dropped."""

    def __init__(
        self, *, seconds: float, most: int = _MAX_HANDLES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self._most, self._clock = most, clock
        self._issued: OrderedDict[str, _IssuedHandle] = OrderedDict()

    def __len__(self) -> int:
        return len(self._issued)

    def issue(self, secret: HeldSecret, holder: HandleHolder) -> str:
        self._forget_old()
        handle = PREFIX + base64.b32encode(secrets.token_bytes(_RANDOM_BYTES)).decode().lower()
        self._issued[handle] = _IssuedHandle(secret, holder, self._clock() + self.seconds)
        while len(self._issued) > self._most:
            self._issued.popitem(last=False)
        return handle

    def resolve(self, handle: str, holder: HandleHolder) -> HeldSecret:
        """The secret of a handle. Expired, unknown and foreign handles raise the same error."""
        self._forget_old()
        kept = self._issued.get(handle)
        if kept is None or kept.holder != holder:
            raise RetryByModel(
                "This handle of a secret is not known, or no longer.",
                hint="Read the secret again with onepassword_read_secret, and use the new handle.",
            )
        return kept.secret

    def _forget_old(self) -> None:
        now = self._clock()
        while self._issued and next(iter(self._issued.values())).until <= now:
            self._issued.popitem(last=False)
