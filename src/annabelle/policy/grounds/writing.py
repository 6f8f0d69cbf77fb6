"""Writing inside the house needs no question, until foreign content was seen: then it takes the person's order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from posixpath import basename
from typing import Final

from annabelle.policy.dates import contradicts
from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds import showing
from annabelle.policy.grounds.sending import taken_along, unnamed_files
from annabelle.policy.grounds.targets import (
    called,
    file_meant,
    id_named,
    is_it,
    is_newest,
    is_spared,
    is_spared_file,
    made_here,
    one_of_many,
    takes_part,
)
from annabelle.policy.grounds.why import short
from annabelle.policy.intent.grammar import QUOTED
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.naming import addresses_in, content_words, plain
from annabelle.policy.people import names_receivers, sender_named, unnamed
from annabelle.policy.provenance import backed
from annabelle.policy.rules.rule import texts_of
from annabelle.policy.tools.nouns import mentions

_RUNS: Final = re.compile(
    r"\.(?:sh|bash|zsh|py|js|ts|rb|pl|ps1|bat|cmd|exe|service|desktop|plist|env|toml|ini|cfg)$|^\."
)
_ANYTHING: Final = content_words(
    "remember keep mind learn memorize says say said know read content important things rest"
)
_PLACES: Final = (
    "mail",
    "label",
    "calendar",
    "chat",
    "file",
    "note",
    "todo",
    "memory",
    "contact",
    "project",
    "qr",
    "code",
)
_WORD: Final = re.compile(r"[^\W_]{3,}")
_DESCRIBES: Final = re.compile(
    r"\b(?:descri\w+|agenda|notes?|details?|text|links?|address|location|place|room|title|rename|call it|beschreib\w*|"
    r"ort|raum|titel|lieu|salle|titre|lugar|sala|título|opis\w*|miejsce|tytuł)\b"
)
# Whoever says one of these wants what stands there to be another; every other order only adds to it.
_REWRITES: Final = re.compile(
    r"(?:update|change|edit|modify|replace|correct|fix|rewrite|overwrite|shorten|expand|improve|polish|revise|"
    r"reformat|amend|adapt|rephrase|proofread|tweak|clean|convert|sort|organi|tidy|translate|split|combine|merge|trim|"
    r"remove|delete|erase|clear|empty|turn|make (?:it|this|that|the)|swap|summari|scrap|drop|tick|check|mark|rename|"
    r"move|set|aktualisier|änder|bearbeit|ersetz|kürz|überarbeit|verbesser|korrigier|sortier|lösch|entfern|leer|mach|"
    r"räum|hak|modifie|change|corrige|raccourcis|améliore|remplace|range|supprime|efface|vide|retire|mets à jour|"
    r"coche|actualiza|modifica|cambia|acorta|mejora|reemplaza|ordena|elim|b[oó]rr|qu[ií]t|vacía|zaktualizuj|zmień|"
    r"popraw|skróć|uporządkuj|usuń|skasuj|wyczyść|odhacz)"
)
_INTO_A_FILE: Final = re.compile(
    r"\b(?:into|as|to|under|called|named|in|als|nach|namens|dans|sous|como|en|jako|do|w) ([^\s@:]+\.\w{1,5})(?![\w@:])"
)

_QUOTES: Final = "\"'“”„«»‘’ "


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    if not turn.tainted:
        return
    if traits.noun_is_enough and mentions(turn.topic, traits.about):
        return
    values = list(call.values(traits.values))
    if values and backed(values, turn.given) and not traits.existing:
        return  # nothing but what the person said
    specific = turn.words_of(traits.wants) - _ANYTHING
    if values and specific and not all(content_words(value) & specific for value in values):
        yield "it is not about what you asked to be kept"
    if not _ordered(call, turn):
        yield "you did not ask for this to be written"
        return
    yield from _unnamed_paths(call, turn)
    if traits.existing:
        for value in call.values(traits.of):
            if not _is_meant(value, turn, traits.wants):
                yield f"you did not name what it changes ({short(called(value, turn))})"
    for receiver in unnamed(call.values(traits.to), turn, traits.wants):
        if not (takes_part(receiver, call, turn) or _wrote_something_named(receiver, turn, traits.wants)):
            yield f"you did not name {short(receiver)}"
    if _is_not_what_was_dictated(call, turn):
        yield "it does not hold what you put in quotation marks"
    if contradicts(turn.own_words, texts_of(call.arguments)):
        yield "its date is not the one you named"
    if _drops_the_rest(call, turn):
        yield "it would replace all that stands there"
    if traits.existing and traits.source == "calendar":
        yield from _changed_beside(call, turn)
    yield from unnamed_files(call, turn)
    yield from showing.doubts(call, turn)
    if _tells_people(call, turn) or any(call.values(traits.to)):
        yield from taken_along(call, turn)  # a draft is sent by its id later, when nobody sees its words any more


def _is_meant(value: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    if is_spared(value, turn):
        return False
    if id_named(value, turn, kinds) or made_here(value, turn) or one_of_many(value, turn, kinds):
        return True
    return is_it(value, turn, kinds) or any(is_newest(thing, turn) for thing in turn.seen.of_id(value))


def _drops_the_rest(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the person only wants something added, and the new text has not what was there."""
    traits, asked = call.traits, turn.orders_of(call.traits.wants)
    added = any(_given(call, name, values[0]) in values for name, values in traits.adds.items())
    if added or any(_REWRITES.match(order.words) for order in asked):
        return False
    named = {*call.values(traits.of), *call.values(traits.paths)}
    things = [thing for value in named for thing in turn.seen.of_id(value)]
    before = [line for thing in things for text in thing.texts("content", "text", "body") for line in text.splitlines()]
    after = plain("\n".join(call.values(traits.rewrites)))
    kept = [line for line in map(plain, before) if line]
    emptied = not after and any(name in call.arguments for name in traits.rewrites)
    return emptied or (bool(after) and (not kept or not all(line in after for line in kept)))


def _is_not_what_was_dictated(call: CallFacts, turn: TurnFacts) -> bool:
    """`Put 'bridge walk' into my calendar` means no event of another name, where it is the only thing to be made."""
    orders = turn.orders_of(call.traits.wants)
    if call.traits.existing or len(orders) != 1 or not _quotes(orders[0].words):
        return False
    text = plain("\n".join(texts_of(call.arguments)))
    return not any(quote in text for quote in _quotes(turn.own_words))


def _quotes(text: str) -> list[str]:
    return [found.group().strip(_QUOTES) for found in QUOTED.finditer(plain(text))]


def _changed_beside(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """What of an event is changed that nobody spoke of: to move it is neither to rename it nor to take people off."""
    events = turn.things_of(call)
    there = [text for event in events for text in event.texts(*call.traits.payload)]
    for text in call.values(call.traits.payload):
        if text not in there and not backed([text], turn.given) and not _DESCRIBES.search(turn.topic):
            yield f"you did not say “{short(text)}”"
    people = {one for event in events for one in event.addresses("attendees")}
    kept = {one for text in call.values(("attendees",)) for one in addresses_in(text)}
    if "attendees" in call.arguments and people - kept and "delete" not in turn.orders:
        yield "it would take people off the event"


def _given(call: CallFacts, name: str, default: str) -> str:
    return next(iter(call.values((name,))), default)


def _tells_people(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether somebody else gets to see the change: an event is shown to all who are invited."""
    return any(thing.texts("attendees") for thing in turn.things_of(call))


def _ordered(call: CallFacts, turn: TurnFacts) -> bool:
    traits = call.traits
    if not set(traits.wants) & turn.orders:
        return any(_put_into(path, turn) for path in call.values(traits.paths)) and not traits.existing
    named = any(turn.said.path(value) for value in call.values(traits.paths)) or any(
        _is_meant(value, turn, traits.wants) for value in call.values(traits.of)
    )
    if named or set(traits.enough) & turn.orders or turn.wants(traits.wants, traits.about):
        return True
    return _goes_nowhere_else(call, turn)


def _goes_nowhere_else(call: CallFacts, turn: TurnFacts) -> bool:
    """`Find a recipe and save it`; `what is on my list? add butter`: the order says no place, and none but this one is
    spoken of."""
    traits = call.traits
    placeless = [order for order in turn.orders_of(traits.wants) if not mentions(order.objects, _PLACES)]
    if traits.keeps and any(mentions(order.words, ("saving",)) for order in placeless):
        return True
    elsewhere = [place for place in _PLACES if place not in traits.about]
    spoken_of = mentions(turn.own_words, traits.about) and not mentions(turn.own_words, elsewhere)
    return bool(placeless) and spoken_of


def _put_into(path: str, turn: TurnFacts) -> bool:
    """`Summarise a.md into b.md` orders a file without a verb for it."""
    wanted = re.escape(plain(path))
    return (
        re.search(
            rf"\b(?:into|as|to|under|als|nach|unter|in|dans|sous|como|en|jako|do|w) {wanted}(?![\w/])", turn.now.text
        )
        is not None
    )


def _unnamed_paths(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    replaces = call.traits.existing or any(call.arguments.get(flag) for flag in call.traits.replaces)
    for path in call.values(call.traits.paths):
        said = turn.said
        if is_spared_file(path, turn):
            yield f"you wanted {short(path)} to be left alone"
            continue
        if said.path(path) and not (replaces and not file_meant(path, turn, call.traits.wants)):
            continue
        if said.folder(f"{path}/x") and not replaces:
            continue
        if made_here(path, turn) or _same_name_elsewhere(path, call, turn):
            continue
        name = basename(path.rstrip("/")).casefold()
        targets = {found.rpartition("/")[2] for found in _INTO_A_FILE.findall(turn.now.text)}
        elsewhere = (said.files and not any(word in said.text for word in _WORD.findall(name))) or targets
        if replaces or elsewhere or _RUNS.search(name) or ".." in path or path.startswith("/"):
            yield f"you did not name {short(path)}"


def _same_name_elsewhere(path: str, call: CallFacts, turn: TurnFacts) -> bool:
    """A file that was named and goes under its name to a folder that was named."""
    others = (other for other in call.values(call.traits.paths) if other != path and turn.said.path(other))
    return turn.said.folder(path) and any(basename(other) == basename(path) for other in others)


def _wrote_something_named(receiver: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Nothing goes out yet: the address of somebody whose mail was spoken of may be written down."""
    if names_receivers(turn, kinds):
        return False
    things = (thing for thing in turn.seen.things if receiver in thing.addresses("sender"))
    return any(sender_named(thing, turn, kinds) for thing in things)
