"""What a call may name: vaults, items, categories and references, so that none of it can be read as an option."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from annabelle.core.errors import InvalidArguments

CATEGORIES = (
    "API Credential", "Bank Account", "Credit Card", "Crypto Wallet", "Database", "Document", "Driver License",
    "Email Account", "Identity", "Login", "Medical Record", "Membership", "Outdoor License", "Passport", "Password",
    "Reward Program", "Secure Note", "Server", "Social Security Number", "Software License", "SSH Key",
    "Wireless Router",
)  # fmt: skip
_BY_KEY = {name.lower(): name for name in CATEGORIES}
_REFERENCE = re.compile(r"op://[^/?]+(?:/[^/?]+){2,3}(?:\?[a-z-]+=[a-z]+)?")


def checked_name(text: str, field: str) -> str:
    """A vault or item as it is given to the command."""
    name = text.strip()
    if not name:
        raise InvalidArguments(f"{field} is empty.", field=field)
    if name.startswith("-"):
        raise InvalidArguments(
            f"{field} begins with a dash, which the 1Password command reads as an option.",
            hint="Use the id instead.",
            field=field,
        )
    _refuse_control(name, field)
    return name


def checked_reference(text: str) -> str:
    reference = text.strip()
    _refuse_control(reference, "reference")
    if not _REFERENCE.fullmatch(reference):
        raise InvalidArguments(
            "The reference is not one of 1Password.",
            hint="It reads op://vault/item/field or op://vault/item/section/field.",
            field="reference",
        )
    return reference


def checked_categories(names: Iterable[str]) -> list[str]:
    """As the command spells them; SECURE_NOTE and secure-note are understood too."""
    chosen: list[str] = []
    for name in names:
        known = _BY_KEY.get(re.sub(r"[\s_-]+", " ", name.strip()).lower())
        if known is None:
            raise InvalidArguments(
                "There is no such category.", hint=f"There are {', '.join(CATEGORIES)}.", field="categories"
            )
        chosen.append(known)
    return list(dict.fromkeys(chosen))


def _refuse_control(text: str, field: str) -> None:
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in text):
        raise InvalidArguments(f"{field} has characters that no name has.", field=field)
