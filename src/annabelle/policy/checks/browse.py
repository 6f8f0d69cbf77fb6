"""Reasons to ask before an action on a web page, since the site's operator sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from annabelle.core.tools import JsonObject
from annabelle.policy.checks.send import is_trivial_value, reasons_about_files
from annabelle.policy.person_words import host_of
from annabelle.policy.provenance import is_backed
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.unsolicited_read import item_named
from annabelle.policy.vocabulary import mentions_any

_SECRET: Final = "secret://"  # noqa: S105  the prefix of a handle
_FOR_SECRETS: Final = re.compile(
    r"passw|passcode|passphrase|\bpin\b|\bcode\b|secret|\blog-?in\b|\buser|e-?mail|benutzer|kennwort|mot de passe|"
    r"identifiant|"
    r"contraseña|usuario|hasło|użytkownik|card|iban|\botp\b|token|\bkey\b",
    re.IGNORECASE,
)
_SHORT_LABEL: Final = 60
_KEYS: Final = re.compile(r"(?:arrow\w+|page(?:up|down)|home|end|tab|escape|enter)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]{4,}")
_ACTS: Final = re.compile(
    r"\b(?:click|press|tap|type|fill|enter|submit|send|log ?in|sign (?:in|up)|search|select|choose|pick|upload|book|"
    r"order|buy|register|follow|accept|post|klick\w*|drück\w*|tippe?n?|füll\w*|such\w*|wähl\w*|melde|clique\w*|"
    r"remplis\w*|"
    r"choisis\w*|cherche\w*|haz clic|rellena\w*|elige|busca\w*|kliknij|wpisz|wypełnij|wybierz|wyszukaj|zaloguj)\b"
)
_LABEL: Final = re.compile(r"\"([^\"]*)\"")


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """The person must have named the page, mentioned the element and said the typed text."""
    if not _ACTS.search(turn.topic):
        yield "you did not ask for anything to be done on the page"
    page = _current_page(turn)
    if page is None or host_of(page) not in turn.said.hosts:
        yield f"you did not name the page {shorten(page or 'that is open')}"
    for ref in call.values(call.traits.refs):
        label = _label_of(ref, turn)
        named = label is not None and _fits_best(label, ref, turn)
        if not named and not call.traits.typed:
            yield f"you did not speak of “{shorten(label or ref)}”"
    for text, ref in _typed_texts(call):
        if text.startswith(_SECRET):
            yield from _doubts_of_secret(text, ref, turn)
        elif not (_KEYS.fullmatch(text) or is_trivial_value(text) or is_backed([text], turn.given)):
            yield f"“{shorten(text)}” is not what you said"
    yield from reasons_about_files(call, turn)
    if turn.unsolicited_read:
        yield "private data was read that you did not speak of"


def _doubts_of_secret(handle: str, ref: str, turn: TurnFacts) -> Iterator[str]:
    """The person must name the item, and the item must belong to a site. The browser checks which one when it types."""
    # Never type a password into a comment field, whatever the page calls it.
    if not (mentions_any(turn.own_words, ("vault",)) and _takes_secrets(ref, turn)):
        yield "a secret would be typed into the page"
    kept = (thing for result in turn.seen.results if result.source == "vault" for thing in result.things)
    item = next((one for one in kept if handle in one.texts("handle", "fields") and one.texts("title", "item")), None)
    if item is None:
        yield "it is not known what the secret is"
        return
    title = item.texts("title", "item")[0]
    if not item_named(title, turn):
        yield f"you did not name “{shorten(title)}” of your vault"
    if not item.texts("urls"):
        yield f"“{shorten(title)}” of your vault is kept for no site"


def _typed_texts(call: CallFacts) -> Iterator[tuple[str, str]]:
    """Yield each typed text with its element. For form fields only the values count: the page chooses the names."""
    into = next(call.values(call.traits.refs), "")
    for name in call.traits.typed:
        given = call.arguments.get(name)
        fields = cast("list[object]", given) if isinstance(given, list) else [given]
        for one in fields:
            field = cast("JsonObject", one) if isinstance(one, dict) else {"value": one, "ref": into}
            yield from ((text, str(field.get("ref"))) for text in collect_texts(field.get("value")) if text.strip())


def _takes_secrets(ref: str, turn: TurnFacts) -> bool:
    line = next((line for line in _page_elements(ref, turn) if f"[ref={ref}]" in line), "")
    role, _, rest = line.partition('"')
    return "textbox" in role and _FOR_SECRETS.search(rest.partition('"')[0][:_SHORT_LABEL]) is not None


def _current_page(turn: TurnFacts) -> str | None:
    for result in turn.seen.results:
        if result.tool.startswith("web_") and not result.failed:
            if result.cut:
                return None
            for thing in result.things:
                url = next(iter(thing.texts("url")), None)
                if url:
                    return url
    return None


def _fits_best(label: str, ref: str, turn: TurnFacts) -> bool:
    """Whether the person mentioned the label, and no other element matches the same words with fewer extra ones."""
    # "Click on the recipe" does not mean a button that deletes the account and every recipe.
    words = set(_WORD.findall(label.casefold()))
    said = {word for word in words if word in turn.said.text}
    beside = (set(_WORD.findall(_label(line).casefold())) for line in _page_elements(ref, turn))
    return bool(said) and not any(said <= other and len(other) < len(words) for other in beside)


def _page_elements(ref: str, turn: TurnFacts) -> list[str]:
    """The elements of the newest page snapshot that contains this reference."""
    for result in turn.seen.results:
        if result.tool.startswith("web_") and f"[ref={ref}]" in result.whole:
            return [line for line in result.whole.splitlines() if "[ref=" in line]
    return []


def _label_of(ref: str, turn: TurnFacts) -> str | None:
    return next((_label(line) for line in _page_elements(ref, turn) if f"[ref={ref}]" in line), None)


def _label(line: str) -> str:
    found = _LABEL.search(line)
    return found.group(1) if found else line.strip()
