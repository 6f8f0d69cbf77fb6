"""Single data in a private text: who asks for the door code of a file has not asked for the PIN beside it."""

from __future__ import annotations

import re
from typing import Final

_DATUM: Final = re.compile(
    r"\b(?:codes?|pins?|numbers?|passwords?|passwort\w*|kennwort\w*|passports?|iban|accounts?|phone|mobile|address|"
    r"login|"
    r"nummern?|kontonummer|konto|ausweis\w*|reisepass\w*|telefon\w*|adresse|numéros?|mot de passe|passeport|compte|"
    r"téléphone|"
    r"números?|contraseñas?|pasaporte|cuenta|teléfono|dirección|numer\w*|has[łl]\w*|paszport\w*|kont[oa]|adres\w*)\b",
    re.IGNORECASE,
)
_PART: Final = re.compile(r"[,;\n]|\.(?=\s|$)")
_DIGITS: Final = re.compile(r"(?:\w*\d\w*){3,}")


def data_beside(text: str, said: str) -> list[str]:
    """The parts of the text that hold a datum of another kind than those that were spoken of."""
    wanted = _kinds(said)
    if not wanted:
        return []
    parts = _PART.split(text)
    if not any(_kinds(part) & wanted for part in parts):
        return []
    return [part for part in parts if (kinds := _kinds(part)) and not kinds & wanted and _DIGITS.search(part)]


def without_data_beside(text: str, said: str) -> str:
    """The text without them."""
    for part in data_beside(text, said):
        text = text.replace(part, " ")
    return text


def _kinds(text: str) -> frozenset[str]:
    return frozenset(found.group().casefold().rstrip("s") for found in _DATUM.finditer(text))
