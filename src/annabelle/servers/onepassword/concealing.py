"""Which fields of an item are secrets. What is not known to be harmless is one."""

from __future__ import annotations

from urllib.parse import urlsplit

from annabelle.core.redact import is_secret_name
from annabelle.core.secret_shapes import ANY_SHAPE
from annabelle.servers.onepassword.items import OpField

_HARMLESS_TYPES = frozenset(
    ["URL", "EMAIL", "DATE", "MONTH_YEAR", "PHONE", "ADDRESS", "MENU", "GENDER", "CREDIT_CARD_TYPE", "REFERENCE"]
)
# Here even plain text is what the item is kept secret for: numbers of cards and accounts, notes, words of a wallet.
_SECRET_CATEGORIES = frozenset(
    {
        "BANK_ACCOUNT", "CREDIT_CARD", "CRYPTO_WALLET", "DOCUMENT", "DRIVER_LICENSE", "MEDICAL_RECORD", "PASSPORT",
        "SECURE_NOTE", "SOCIAL_SECURITY_NUMBER", "SSH_KEY",
    }
)  # fmt: skip


def is_concealed(field: OpField, category: str) -> bool:
    """Whether its value must not be shown. Usernames and addresses may be; notes never: people keep codes in them."""
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
        or ANY_SHAPE.search(field.value or "") is not None
    )


def shown_address(url: str) -> str:
    """A web address without the name and password that may stand in it."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    # What comes after the path may be a token of a link that signs its bearer in.
    return parts._replace(netloc=host, query="", fragment="").geturl()
