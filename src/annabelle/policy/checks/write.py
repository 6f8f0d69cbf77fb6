"""Reasons to ask before local data is written. There are none until foreign content was seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from posixpath import basename
from typing import Final

from annabelle.policy.checks import exfiltration
from annabelle.policy.checks.send import is_trivial_value, reasons_about_files, reasons_about_payload
from annabelle.policy.checks.targets import (
    display_name,
    is_excluded,
    is_excluded_file,
    is_file_meant,
    is_id_named,
    is_newest,
    is_one_of_many,
    is_participant,
    is_referred_to,
    was_made_here,
)
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.exclusions import without_spared
from annabelle.policy.intent.grammar import QUOTED
from annabelle.policy.person_words import content_words, find_addresses, normalize_text
from annabelle.policy.provenance import is_backed
from annabelle.policy.recipients import find_unnamed, is_sender_named, names_recipients
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.vocabulary import mentions_any

# The first letters of each month in English, German, French, Spanish and Polish.
_MONTHS: Final = (
    r"jan|janv|ene|sty", r"feb|fév|fev|lut", r"mar|mär|mars", r"apr|avr|abr|kwi", r"may|mai|mayo|maj",
    r"jun|juin|cze", r"jul|juil|lip", r"aug|août|aout|ago|sie", r"sep|set|wrz", r"oct|okt|paź", r"nov|lis",
    r"dec|dez|déc|dic|gru",
)  # fmt: skip
_MONTH: Final = "|".join(f"(?P<m{number}>(?:{names})[a-zà-ÿąćęłńóśźż]*)" for number, names in enumerate(_MONTHS, 1))
_NAMED: Final = (
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?(?:{_MONTH})\b"),
    re.compile(rf"\b(?:{_MONTH})\.?\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)"),
)
_ISO: Final = re.compile(r"\b\d{4}-(?P<month>\d{2})-(?P<day>\d{2})\b")
_WRITTEN: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ].*)?")
# Words for a date relative to another one, or for a range whose first day has no month.
_RECKONED: Final = re.compile(
    r"\b(?:before|after|prior|until|till?|from|between|vor|nach|bis|zwischen|avant|après|jusqu\w*|entre|antes|después|hasta|"
    r"przed|po)\b"
)


def contradicts_date(words: str, values: Iterable[str]) -> bool:
    """Whether the words name days of a month and all dates among the values differ."""
    text = words.casefold()
    named = _days(text)
    given = [moment for value in values if (moment := _date(value)) is not None]
    if not (named and given) or _RECKONED.search(text):
        return False
    # Allow one day more or less: times may be in another zone, and an all-day event ends on the next day.
    near = {(day.month, day.day) for moment in given for day in (moment + timedelta(shift) for shift in (-1, 0, 1))}
    return not named & near


def _days(text: str) -> set[tuple[int, int]]:
    found = {(int(match["month"]), int(match["day"])) for match in _ISO.finditer(text)}
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            month = next(number for number in range(1, 13) if match[f"m{number}"])
            found.add((month, int(match["day"])))
    return found


def _date(value: str) -> date | None:
    match = _WRITTEN.fullmatch(value.strip())
    try:
        return date.fromisoformat(match[1]) if match is not None else None
    except ValueError:
        return None


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
_LETTERS: Final = re.compile(r"[^\W_]+")
_MOST_BESIDE: Final = 2
"""Words behind the values of a call in a message that only goes on: `coffee as well`."""
_DESCRIBES: Final = re.compile(
    r"\b(?:descri\w+|agenda|notes?|details?|text|links?|address|location|place|room|title|rename|call it|beschreib\w*|"
    r"ort|raum|titel|lieu|salle|titre|lugar|sala|título|opis\w*|miejsce|tytuł)\b"
)
# Verbs that order existing content to be changed. Every other order only adds to it.
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


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    if not turn.tainted:
        return
    if traits.noun_is_enough and mentions_any(turn.topic, traits.about):
        return
    values = list(call.values(traits.values))
    if values and is_backed(values, turn.given) and not traits.existing:
        return  # only what the person said
    specific = turn.words_of(traits.wants) - _ANYTHING
    if values and specific and not all(content_words(value) & specific for value in values):
        yield "it is not about what you asked to be kept"
    if not _is_ordered(call, turn):
        yield "you did not ask for this to be written"
        return
    yield from _reasons_about_paths(call, turn)
    if traits.existing:
        for value in call.values(traits.of):
            if not _is_meant(value, turn, traits.wants):
                yield f"you did not name what it changes ({shorten(display_name(value, turn))})"
    for receiver in find_unnamed(call.values(traits.to), turn, traits.wants):
        if not (is_participant(receiver, call, turn) or _wrote_something_named(receiver, turn, traits.wants)):
            yield f"you did not name {shorten(receiver)}"
    if _is_not_what_was_dictated(call, turn):
        yield "it does not hold what you put in quotation marks"
    if contradicts_date(turn.own_words, collect_texts(call.arguments)):
        yield "its date is not the one you named"
    if _drops_the_rest(call, turn):
        yield "it would replace all that stands there"
    if traits.existing and traits.source == "calendar":
        yield from _reasons_about_event_changes(call, turn)
    yield from reasons_about_files(call, turn)
    yield from exfiltration.reasons_to_ask_for_picture(call, turn)
    if _tells_people(call, turn) or any(call.values(traits.to)):
        yield from reasons_about_payload(
            call, turn
        )  # a draft is later sent by its id, when its text is no longer checked


def _is_meant(value: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    if is_excluded(value, turn):
        return False
    if is_id_named(value, turn, kinds) or was_made_here(value, turn) or is_one_of_many(value, turn, kinds):
        return True
    return is_referred_to(value, turn, kinds) or any(is_newest(thing, turn) for thing in turn.seen.find_by_id(value))


def _drops_the_rest(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the person only wants something added, but the new text lacks existing lines."""
    traits, wants = call.traits, frozenset(call.traits.wants)
    asked = [order for order in {*turn.all_orders, *turn.clauses} if order.kinds & wants]
    added = any(_argument_or(call, name, values[0]) in values for name, values in traits.adds.items())
    if added or any(_REWRITES.match(order.words) for order in asked):
        return False
    named = {*call.values(traits.of), *call.values(traits.paths)}
    things = [thing for value in named for thing in turn.seen.find_by_id(value)]
    before = [line for thing in things for text in thing.texts("content", "text", "body") for line in text.splitlines()]
    after = normalize_text("\n".join(call.values(traits.rewrites)))
    kept = [line for line in map(normalize_text, before) if line]
    emptied = not after and any(name in call.arguments for name in traits.rewrites)
    return emptied or (bool(after) and (not kept or not all(line in after for line in kept)))


def _is_not_what_was_dictated(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the only order quotes a text that the call lacks: `put 'bridge walk' into my calendar`."""
    traits, orders = call.traits, turn.orders_of(call.traits.wants)
    paths = {*call.values((*traits.paths, *traits.files))}
    says_something = any(not (text in paths or is_trivial_value(text)) for text in collect_texts(call.arguments))
    if traits.existing or not says_something or len(orders) != 1 or not _quotes(orders[0].words):
        return False
    text = normalize_text("\n".join(collect_texts(call.arguments)))
    return not any(quote in text for quote in _quotes(turn.own_words))


def _quotes(text: str) -> list[str]:
    return [found.group().strip(_QUOTES) for found in QUOTED.finditer(normalize_text(text))]


def _reasons_about_event_changes(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Changes to an event that the person did not mention. Moving it must not rename it or remove attendees."""
    events = turn.things_of(call)
    there = [text for event in events for text in event.texts(*call.traits.payload)]
    for text in call.values(call.traits.payload):
        if text not in there and not is_backed([text], turn.given) and not _DESCRIBES.search(turn.topic):
            yield f"you did not say “{shorten(text)}”"
    people = {one for event in events for one in event.addresses("attendees")}
    kept = {one for text in call.values(("attendees",)) for one in find_addresses(text)}
    if "attendees" in call.arguments and people - kept and "delete" not in turn.order_kinds:
        yield "it would take people off the event"


def _argument_or(call: CallFacts, name: str, default: str) -> str:
    return next(iter(call.values((name,))), default)


def _tells_people(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether others see the change: all attendees see an event."""
    return any(thing.texts("attendees") for thing in turn.things_of(call))


def _is_ordered(call: CallFacts, turn: TurnFacts) -> bool:
    traits = call.traits
    if turn.read_orders:
        return True  # a model was asked about just this act and its object
    if not set(traits.wants) & turn.order_kinds:
        written = any(_is_written_into(path, turn) for path in call.values(traits.paths))
        return not traits.existing and (written or _goes_on(call, turn))
    named = any(turn.said.names_path(value) for value in call.values(traits.paths)) or any(
        _is_meant(value, turn, traits.wants) for value in call.values(traits.of)
    )
    if named or set(traits.enough) & turn.order_kinds or turn.wants(traits.wants, traits.about):
        return True
    return _has_no_other_place(call, turn)


def _goes_on(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the message only names something else for the order before it, as `coffee too` does."""
    if turn.read_orders is not None or not turn.earlier:
        return False
    texts = list(collect_texts(call.arguments))
    called, said = (_LETTERS.findall(text.casefold()) for text in (" ".join(texts), without_spared(turn.own_words)))
    # A word in front may deny or doubt it: "no coffee", "maybe coffee".
    begins = bool(said) and said[0] in called and "?" not in turn.own_words
    is_fragment = begins and len({*said} - {*called}) <= _MOST_BESIDE
    before = replace(turn, words=turn.earlier[0], earlier=())
    return is_fragment and is_backed(texts, (turn.own_words, turn.earlier[0])) and _is_ordered(call, before)


def _has_no_other_place(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the order names no place and this is the only one mentioned: `what is on my list? add butter`."""
    traits = call.traits
    placeless = [order for order in turn.orders_of(traits.wants) if not mentions_any(order.objects, _PLACES)]
    if traits.keeps and any(mentions_any(order.words, ("saving",)) for order in placeless):
        return True
    elsewhere = [place for place in _PLACES if place not in traits.about]
    spoken_of = mentions_any(turn.own_words, traits.about) and not mentions_any(turn.own_words, elsewhere)
    return bool(placeless) and spoken_of


def _is_written_into(path: str, turn: TurnFacts) -> bool:
    """`Summarise a.md into b.md` orders a file without a verb."""
    wanted = re.escape(normalize_text(path))
    return (
        re.search(
            rf"\b(?:into|as|to|under|als|nach|unter|in|dans|sous|como|en|jako|do|w) {wanted}(?![\w/])",
            turn.said_now.text,
        )
        is not None
    )


def _reasons_about_paths(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    replaces = call.traits.existing or any(call.arguments.get(flag) for flag in call.traits.replaces)
    for path in call.values(call.traits.paths):
        said = turn.said
        if is_excluded_file(path, turn):
            yield f"you wanted {shorten(path)} to be left alone"
            continue
        if said.names_path(path) and not (replaces and not is_file_meant(path, turn, call.traits.wants)):
            continue
        if said.names_folder(f"{path}/x") and not replaces:
            continue
        if was_made_here(path, turn) or _same_name_elsewhere(path, call, turn):
            continue
        name = basename(path.rstrip("/")).casefold()
        targets = {found.rpartition("/")[2] for found in _INTO_A_FILE.findall(turn.said_now.text)}
        elsewhere = (said.files and not any(word in said.text for word in _WORD.findall(name))) or targets
        if replaces or elsewhere or _RUNS.search(name) or ".." in path or path.startswith("/"):
            yield f"you did not name {shorten(path)}"


def _same_name_elsewhere(path: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether a named file keeps its name in a named folder."""
    others = (other for other in call.values(call.traits.paths) if other != path and turn.said.names_path(other))
    return turn.said.names_folder(path) and any(basename(other) == basename(path) for other in others)


def _wrote_something_named(receiver: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether the receiver sent a mail that was mentioned. This is enough for a draft, since nothing is sent yet."""
    if names_recipients(turn, kinds):
        return False
    things = (thing for thing in turn.seen.things if receiver in thing.addresses("sender"))
    return any(is_sender_named(thing, turn, kinds) for thing in things)
