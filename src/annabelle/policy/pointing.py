"""Whether the person's words point at what is read, or only foreign content does: then it was pried (POL-04)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename
from typing import Final

from annabelle.core.trust import Source
from annabelle.policy.data import data_beside, without_data_beside
from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.intent.grammar import LOOKING
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.naming import Said, content_words, plain
from annabelle.policy.rules.rule import texts_of
from annabelle.policy.seen import SeenResult, Thing
from annabelle.policy.tools.nouns import mentions, speaks_of_many, speaks_of_news

_SPOKEN_OF_AS: Final[dict[Source, tuple[str, ...]]] = {
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


def pried(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether this call reads something private that nobody but foreign content has spoken of."""
    if not turn.tainted or "read_private" not in call.classes:
        return False
    if _opens_items(call):
        return bool(unnamed_items(call, turn))
    looked_at = call.arguments.get("working_dir") if call.traits.code else call.arguments
    values = [value for value in texts_of(looked_at) if content_words(value)]
    spoken_of = _spoken_of(call.traits.source, turn)
    if not values:
        return not spoken_of and turn.tainted_now
    return any(not (_said(value, turn) or (spoken_of and _pointed(value, turn))) for value in values)


def unnamed_items(call: CallFacts, turn: TurnFacts) -> list[str]:
    """The items of the vault this call opens and the order does not name."""
    if not _opens_items(call):
        return []
    titles = (_title_of(value, turn) for value in call.values(call.traits.of))
    return [title for title in titles if not item_named(title, turn)]


def item_named(title: str, turn: TurnFacts) -> bool:
    """Whether the whole title of a vault item stands in the order: what is spoken of elsewhere opens nothing."""
    words = content_words(title)
    return words <= turn.ordering.words if words else turn.ordering.verbatim(title)


def _opens_items(call: CallFacts) -> bool:
    return call.traits.source == "vault" and bool(call.traits.of)


def _title_of(value: str, turn: TurnFacts) -> str:
    """The title in `op://vault/item/field`, or the one that the vault itself lists for an id."""
    _, reference, way = value.partition("://")
    item = way.split("/")[1] if reference and "/" in way else value
    kept = (thing for result in turn.seen.results if result.source == "vault" for thing in result.things)
    return next((text for thing in kept if thing.fields.get("id") == item for text in thing.texts("title")), item)


def _said(value: str, turn: TurnFacts) -> bool:
    """Whether it was named: by itself, or as the thing its id stands for."""
    if _another_file(value, turn):
        return False
    if turn.said.path(value) or content_words(value) <= turn.said.words:
        return True
    return any(turn.seen.best_named(thing, turn.said.words) for thing in turn.seen.of_id(value))


def _spoken_of(source: Source, turn: TurnFacts) -> bool:
    # Who orders that something is sent speaks of mail, chats and people, whatever the words for it.
    sends = source in ("mail", "chat", "memory") and "send" in turn.orders
    return sends or mentions(turn.topic, _SPOKEN_OF_AS.get(source, ()))


def _pointed(value: str, turn: TurnFacts) -> bool:
    """An id by the thing it stands for; words by not standing in what others wrote."""
    things = turn.seen.of_id(value)
    if things:
        return any(thing_pointed_at(thing, turn) for thing in things)
    if _another_file(value, turn):
        return False
    new = content_words(value) - turn.said.words
    if not any(map(turn.seen.others_wrote, new)):
        return True
    # Who was told of a mail may look for it again by what it goes by.
    return any(new <= thing.words and thing_pointed_at(thing, turn) for thing in turn.seen.things if thing.sender)


def _another_file(value: str, turn: TurnFacts) -> bool:
    """Whether it is a file, and not one of those the person wrote out: a private mail is no private.txt."""
    files = Said([value]).files
    return bool(files and turn.said.files) and not files <= turn.said.files and not speaks_of_many(turn.topic)


def thing_pointed_at(thing: Thing, turn: TurnFacts) -> bool:
    """Whether it is what the person speaks of: as one of many, or as this one rather than another."""
    seen, words = turn.seen, turn.said.words
    if speaks_of_many(turn.topic) or speaks_of_news(turn.topic):
        return True
    return seen.best_named(thing, words) or not seen.names_one(thing, words)


def not_pointed_at(turn: TurnFacts, kinds: Sequence[ActionKind]) -> list[str]:
    """The private texts in what was seen that the person did not speak of, where something of these kinds is done."""
    files = _looked_into(turn, kinds)
    texts: list[str] = []
    for result in turn.seen.results:
        if not result.private:
            continue
        if "pried" in result.labels or not _source_spoken_of(result, turn, kinds):
            texts.append(result.whole)
            continue
        for thing in _leaves(result):
            meant = thing_pointed_at(thing, turn) and not _is_another(thing, files)
            texts += data_beside(_all_of(thing), turn.said.text) if meant else [_all_of(thing)]
    return texts


def pointed_at(turn: TurnFacts, kinds: Sequence[ActionKind] = ()) -> list[str]:
    """All other texts in what was seen."""
    files = _looked_into(turn, kinds)
    texts: list[str] = []
    for result in turn.seen.results:
        if not result.private:
            texts.append(result.whole)
        elif "pried" not in result.labels and _source_spoken_of(result, turn, kinds):
            meant = (thing for thing in _leaves(result) if thing_pointed_at(thing, turn))
            texts += [without_data_beside(_all_of(one), turn.said.text) for one in meant if not _is_another(one, files)]
    return texts


def _looked_into(turn: TurnFacts, kinds: Sequence[ActionKind]) -> frozenset[str]:
    """The files that what is done is taken from: those the order names, or the ones that were to be read last before
    it. `What is the code in a.txt? And mail Bob what b.md says` takes nothing from a.txt."""
    named = turn.said_of(kinds).files
    orders = turn.orders_of(kinds)
    if named or not orders or any(_ALL_OF_IT.search(order.words) for order in orders):
        return named
    text = plain(turn.own_words)
    at = text.find(plain(orders[0].words)[:_BEGINNING])
    looks = [match.start("verb") for match in LOOKING.finditer(text, 0, max(at, 0))]
    return Said([text[looks[-1] : at]]).files if looks else frozenset()


def _is_another(thing: Thing, files: frozenset[str]) -> bool:
    paths = thing.texts("path")
    return bool(files and paths) and not any(basename(path).casefold() in files for path in paths)


def _source_spoken_of(result: SeenResult, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    if result.source == "vault" and kinds:
        # To be shown what is in there is one thing, to have it told to others another.
        return mentions(turn.said_of(kinds).text, _SPOKEN_OF_AS["vault"])
    return result.source is not None and _spoken_of(result.source, turn)


def _leaves(result: SeenResult) -> list[Thing]:
    """The things a person could speak of: those with a name of their own."""
    return [thing for thing in result.things if thing.words]


def _all_of(thing: Thing) -> str:
    return "\n".join(texts_of({key: value for key, value in thing.fields.items() if not isinstance(value, dict)}))
