"""Finds private content that was requested by foreign content, not by the person (POL-04)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename
from typing import Final

from annabelle.core.trust import Source
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.grammar import LOOKING
from annabelle.policy.person_words import PersonWords, content_words, normalize_text
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.seen_content import SeenResult, SeenThing
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.policy.vocabulary import mentions_any, speaks_of_many, speaks_of_news

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


def find_unasked_data(text: str, said: str) -> list[str]:
    """The parts of the text with a kind of data that the person did not mention."""
    wanted = _data_kinds(said)
    if not wanted:
        return []
    parts = _PART.split(text)
    if not any(_data_kinds(part) & wanted for part in parts):
        return []
    return [part for part in parts if (kinds := _data_kinds(part)) and not kinds & wanted and _DIGITS.search(part)]


def remove_unasked_data(text: str, said: str) -> str:
    """The text without the parts from `find_unasked_data`."""
    for part in find_unasked_data(text, said):
        text = text.replace(part, " ")
    return text


def _data_kinds(text: str) -> frozenset[str]:
    return frozenset(found.group().casefold().rstrip("s") for found in _DATUM.finditer(text))


_NOUNS_OF_SOURCE: Final[dict[Source, tuple[str, ...]]] = {
    "mail": ("mail", "label", "attachment"),
    "calendar": ("calendar",),
    "chat": ("chat",),
    "file": ("file", "note", "todo", "attachment"),
    "memory": ("memory", "contact", "project", "mail", "chat", "calendar"),
    "vault": ("vault",),
    "code": ("code",),
}

_BEGINNING: Final = 12
_ALL_OF_IT: Final = re.compile(
    r"\b(?:all|both|everything|each|them|these|those|alle\w*|beide\w*|tous|toutes|todos|todas|ambos|wszyst\w+|ob(?:a|"
    r"ie))\b"
)


def is_unsolicited_read(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether this call reads private data that only foreign content mentioned."""
    if not turn.tainted or "read_private" not in call.classes:
        return False
    if opens_items(call):
        return bool(unnamed_items(call, turn))
    looked_at = call.arguments.get("working_dir") if call.traits.code else call.arguments
    values = [value for value in collect_texts(looked_at) if content_words(value)]
    spoken_of = _is_source_mentioned(call.traits.source, turn)
    if not values:
        return not spoken_of and turn.tainted_now
    return any(not (_is_named(value, turn) or (spoken_of and _is_pointed_at(value, turn))) for value in values)


def unnamed_items(call: CallFacts, turn: TurnFacts) -> list[str]:
    """The vault items that this call opens but the order does not name."""
    if not opens_items(call):
        return []
    titles = (item_title(value, turn) for value in call.values(call.traits.of))
    return [title for title in titles if not item_named(title, turn)]


def item_named(title: str, turn: TurnFacts) -> bool:
    """Whether the order contains the full title of a vault item. Mentions elsewhere do not count."""
    if turn.read_orders == ():
        return False
    words = content_words(title)
    return words <= turn.ordering.words if words else turn.ordering.contains(title)


def opens_items(call: CallFacts) -> bool:
    return call.traits.source == "vault" and bool(call.traits.of)


def item_title(value: str, turn: TurnFacts) -> str:
    """The title in `op://vault/item/field`, or the one the vault lists for an id."""
    _, reference, way = value.partition("://")
    item = way.split("/")[1] if reference and "/" in way else value
    kept = (thing for result in turn.seen.results if result.source == "vault" for thing in result.things)
    return next((text for thing in kept if thing.fields.get("id") == item for text in thing.texts("title")), item)


def _is_named(value: str, turn: TurnFacts) -> bool:
    """Whether the value itself was named, or the thing it identifies."""
    if _is_another_file(value, turn):
        return False
    if turn.said.names_path(value) or content_words(value) <= turn.said.words:
        return True
    return any(turn.seen.is_best_match(thing, turn.said.words) for thing in turn.seen.find_by_id(value))


def _is_source_mentioned(source: Source, turn: TurnFacts) -> bool:
    # An order to send something mentions mail, chats and people implicitly.
    sends = source in ("mail", "chat", "memory") and "send" in turn.order_kinds
    return sends or mentions_any(turn.topic, _NOUNS_OF_SOURCE.get(source, ()))


def _is_pointed_at(value: str, turn: TurnFacts) -> bool:
    """Whether the thing of this id is meant, or the words come from no foreign content."""
    things = turn.seen.find_by_id(value)
    if things:
        return any(is_thing_meant(thing, turn) for thing in things)
    if _is_another_file(value, turn):
        return False
    new = content_words(value) - turn.said.words
    if not any(map(turn.seen.others_wrote, new)):
        return True
    # Mail that was mentioned may be searched for again by its title or sender.
    return any(new <= thing.words and is_thing_meant(thing, turn) for thing in turn.seen.things if thing.sender)


def _is_another_file(value: str, turn: TurnFacts) -> bool:
    """Whether the value is a file other than those written out: a private mail is not private.txt."""
    files = PersonWords([value]).files
    return bool(files and turn.said.files) and not files <= turn.said.files and not speaks_of_many(turn.topic)


def is_thing_meant(thing: SeenThing, turn: TurnFacts) -> bool:
    """Whether the person means this thing, as one of many or as the best match."""
    seen, words = turn.seen, turn.said.words
    if speaks_of_many(turn.topic) or speaks_of_news(turn.topic):
        return True
    return seen.is_best_match(thing, words) or not seen.matches_any(thing, words)


def find_unmentioned_texts(turn: TurnFacts, kinds: Sequence[ActionKind]) -> list[str]:
    """Private texts that were seen but not mentioned by the person, for orders of these kinds."""
    files = _source_files(turn, kinds)
    texts: list[str] = []
    for result in turn.seen.results:
        if not result.private:
            continue
        if "pried" in result.labels or not _is_result_source_mentioned(result, turn, kinds):
            texts.append(result.whole)
            continue
        for thing in _named_things(result):
            meant = is_thing_meant(thing, turn) and not _is_another(thing, files)
            texts += find_unasked_data(_join_texts(thing), turn.said.text) if meant else [_join_texts(thing)]
    return texts


def find_mentioned_texts(turn: TurnFacts, kinds: Sequence[ActionKind] = ()) -> list[str]:
    """All other texts that were seen."""
    files = _source_files(turn, kinds)
    texts: list[str] = []
    for result in turn.seen.results:
        if not result.private:
            texts.append(result.whole)
        elif "pried" not in result.labels and _is_result_source_mentioned(result, turn, kinds):
            meant = (thing for thing in _named_things(result) if is_thing_meant(thing, turn))
            texts += [
                remove_unasked_data(_join_texts(one), turn.said.text) for one in meant if not _is_another(one, files)
            ]
    return texts


def _source_files(turn: TurnFacts, kinds: Sequence[ActionKind]) -> frozenset[str]:
    """The files an order takes content from: those it names, or those to be read last before it."""
    named = turn.said_of(kinds).files
    orders = turn.orders_of(kinds)
    if named or not orders or any(_ALL_OF_IT.search(order.words) for order in orders):
        return named
    text = normalize_text(turn.own_words)
    at = text.find(normalize_text(orders[0].words)[:_BEGINNING])
    looks = [match.start("verb") for match in LOOKING.finditer(text, 0, max(at, 0))]
    return PersonWords([text[looks[-1] : at]]).files if looks else frozenset()


def _is_another(thing: SeenThing, files: frozenset[str]) -> bool:
    paths = thing.texts("path")
    return bool(files and paths) and not any(basename(path).casefold() in files for path in paths)


def _is_result_source_mentioned(result: SeenResult, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    if result.source == "vault" and kinds:
        # An order to show vault items does not allow telling others.
        return mentions_any(turn.said_of(kinds).text, _NOUNS_OF_SOURCE["vault"])
    return result.source is not None and _is_source_mentioned(result.source, turn)


def _named_things(result: SeenResult) -> list[SeenThing]:
    """The things with a name that a person could mention."""
    return [thing for thing in result.things if thing.words]


def _join_texts(thing: SeenThing) -> str:
    return "\n".join(collect_texts({key: value for key, value in thing.fields.items() if not isinstance(value, dict)}))
