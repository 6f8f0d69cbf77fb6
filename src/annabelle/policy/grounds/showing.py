"""What others read off a picture that is made: a code at the door leads whoever scans it where it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.why import short
from annabelle.policy.naming import addresses_in, pages_in
from annabelle.policy.pointing import pointed_at

_LONG_NUMBER: Final = re.compile(r"\+?[A-Z]{0,2}\d(?:[ ./-]?\w?\d){5,}")
_LINK: Final = re.compile(
    r"\b(?:links?|urls?|(?:web|home)?(?:site|page)s?|web address|booking|menu|adresse|webseite|seite|lien|enlace|"
    r"página|dirección|stron\w+|odnośnik\w*)\b"
)
_MAIL: Final = re.compile(r"\b(?:e-?mail|mail|address|adresse|correo|dirección|adres\w*|contact|kontakt|vcard)\b")
_DIGITS: Final = re.compile(
    r"\b(?:numbers?|phone|tel|mobile|iban|account|wi-?fi|wlan|password|code|contact|vcard|nummer|telefon\w*|konto|"
    r"passwort|numéro|téléphone|compte|número|teléfono|cuenta|contraseña|numer\w*|kont\w+|hasł\w*)\b"
)


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """An address or a number in it is one the person gave, or the only one where they sent us to look for one."""
    for text in call.values(call.traits.shown):
        for find, spoken_of in ((_pages, _LINK), (addresses_in, _MAIL), (_numbers, _DIGITS)):
            given = find(turn.said.text)
            for one in find(text):
                if one not in given and not _is_the_one(one, find, spoken_of, turn):
                    yield f"you did not name {short(one)}"


def _is_the_one(value: str, find: Callable[[str], list[str]], spoken_of: re.Pattern[str], turn: TurnFacts) -> bool:
    if spoken_of.search(turn.topic) is None:
        return False
    return {one for text in pointed_at(turn) for one in find(text)} - {*find(turn.said.text)} == {value}


def _pages(text: str) -> list[str]:
    # The end of a mail address is no page.
    addresses = " ".join(addresses_in(text))
    return [page for page in pages_in(text) if page not in addresses]


def _numbers(text: str) -> list[str]:
    return [re.sub(r"\W", "", found.group()).casefold() for found in _LONG_NUMBER.finditer(text)]
