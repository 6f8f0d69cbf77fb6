"""Reasons to ask before something is sent, or written to a calendar that others can see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename
from typing import Final

from annabelle.policy.checks.targets import (
    is_id_named,
    is_named_by_order,
    is_newest,
    is_participant,
    is_thing_named,
    was_made_here,
    was_pictured_here,
)
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.order_question import find_file
from annabelle.policy.person_words import content_words, has_hidden_characters, normalize_text
from annabelle.policy.private_values import leaks_private_text
from annabelle.policy.provenance import is_backed
from annabelle.policy.recipients import (
    answered,
    find_unnamed,
    is_named,
    is_sender_named,
    order_names_a_sender,
    sender_spoken_of,
)
from annabelle.policy.seen_content import SeenThing
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.unsolicited_read import find_mentioned_texts, find_unmentioned_texts

_CURRENCY: Final = (
    r"(?:€|\$|£|¥|eur\b|euros?\b|usd\b|dollars?\b|bucks\b|gbp\b|pounds?\b|chf\b|francs?\b|franken\b|zł|pln\b)"
)
_NUMBER: Final = r"\d{1,3}(?:[.,' ]\d{3})*(?:[.,]\d{1,2})?|\d{1,9}(?:[.,]\d{1,2})?"
_SUM: Final = re.compile(rf"{_CURRENCY}\s?({_NUMBER})(?!\d)|(?<![\d.,])({_NUMBER})\s?{_CURRENCY}", re.IGNORECASE)
_CENTS: Final = re.compile(r"[.,]0{1,2}$")


def contradicts_sum(words: str, texts: Iterable[str]) -> bool:
    """Whether the words name amounts of money and the texts name different ones."""
    named = _sums(words)
    return bool(named) and not set().union(*map(_sums, texts)) <= named


def _sums(text: str) -> set[str]:
    """Amounts by their digits, so that 2,400 equals 2400.00."""
    found = (match[1] or match[2] for match in _SUM.finditer(text[:20_000]))
    return {re.sub(r"\D", "", _CENTS.sub("", number)) for number in found}


_WITHOUT: Final = r"\b(?:without|except|but not|not|ohne|außer|nicht|sans|sauf|sin|excepto|bez|oprócz)\b"
_OUT_OF: Final = r"\b(?:in|inside|from|out of|im|in der|aus|von|dans|en|w|z)\b"
_EVERYONE: Final = re.compile(
    r"\b(?:reply|answer|respond|write)(?: back)?(?: to)? (?:them )?(?:all|everyone|everybody)\b|reply-all|"
    r"\bto (?:all|everyone|everybody)\b|\ban alle\b|\ballen\b|\bà tous\b|\ba todos\b|\bdo wszystkich\b|\bwszystkim\b"
)

_CUT: Final = "…"
"""Ends a list of addresses that was truncated."""

# An IBAN or a wallet address: such payments cannot be reversed.
_ACCOUNT: Final = re.compile(
    r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b|\b(?:bc1|0x)[0-9a-zA-Z]{25,60}\b"
)
_PAYING: Final = re.compile(
    r"\b(?:iban|accounts?|bank|payment|pay|invoice|bill|transfer|wallet|konto\w*|zahl\w*|rechnung\w*|überweis\w*|compte|"
    r"pay\w+|facture|virement|cuenta|pag\w+|factura|transferencia|kont\w+|zapła\w*|rachun\w*|przelew\w*|faktur\w*)\b"
)


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    if not set(traits.wants) & turn.order_kinds:
        yield "you did not ask for this to be sent"
    for receiver in find_unnamed(call.values(traits.to), turn, traits.wants):
        if not is_participant(receiver, call, turn):
            yield f"you did not name {shorten(receiver)}"
    yield from _reasons_about_replies(call, turn)
    yield from reasons_about_files(call, turn)
    if not traits.known:
        yield from _reasons_about_unknown_tool(call, turn)
    yield from reasons_about_payload(call, turn)


def reasons_about_payload(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    if turn.unsolicited_read:
        yield "private data was read that you did not speak of"
    payload = list(call.values(call.traits.payload))
    if contradicts_sum(turn.own_words, payload):
        yield "its sum is not the one you named"
    if _tells_where_to_pay(payload, turn):
        yield "it tells where to pay, which you did not say"
    if _tells_of_the_vault(payload, call, turn):
        yield "it tells what is in your vault"
    kinds = call.traits.wants
    if turn.seen.hides_private and not is_backed(payload, turn.given):
        yield "more private data was read than the text can be held against"
    elif leaks_private_text(
        payload, find_unmentioned_texts(turn, kinds), [turn.said.text, *find_mentioned_texts(turn, kinds)]
    ):
        yield "the text holds private data that you did not speak of"


def _tells_of_the_vault(payload: Sequence[str], call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the text names vault items. An order to show them does not allow telling others."""
    kept = (thing for result in turn.seen.results if result.source == "vault" for thing in result.things)
    names = frozenset(word for thing in kept for name in thing.titles for word in content_words(name))
    told = content_words(" ".join(payload)) & names
    return bool(told - turn.said_of(call.traits.wants).words)


def _tells_where_to_pay(payload: Sequence[str], turn: TurnFacts) -> bool:
    """Whether the text contains an account that the person did not say, and they mentioned no payment."""
    accounts = [found.group() for text in payload for found in _ACCOUNT.finditer(text)]
    return bool(accounts) and _PAYING.search(turn.topic) is None and not is_backed(accounts, turn.given)


def reasons_about_files(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    for path in call.values(call.traits.files):
        # Someone who writes file names in full does not mean private.txt by "a private mail".
        named = turn.said.names_path(path) or (bool(turn.read_orders) and bool(find_file(turn.ordering_words, path)))
        meant = named and not (turn.said.files and not _is_named_in_full(path, turn))
        meant = meant and not (_is_left_out(path, turn) or _is_only_a_source(path, turn, call))
        if not (meant or was_pictured_here(path, turn)):
            yield f"you did not name the file {shorten(path)}"


def _is_left_out(path: str, turn: TurnFacts) -> bool:
    """`Without private.txt` also names the file."""
    return _follows_words(rf"{_WITHOUT}\s+(?:\S+\s+)?", path, turn)


def _is_only_a_source(path: str, turn: TurnFacts, call: CallFacts) -> bool:
    """`Look up the code in private.txt and mail it` sends the code, not the file."""
    if turn.said_of(call.traits.wants).names_path(path):
        return False
    return _follows_words(rf"{_OUT_OF}\s+", path, turn)


def _follows_words(words: str, path: str, turn: TurnFacts) -> bool:
    name = re.escape(normalize_text(basename(path.rstrip("/"))))
    return re.search(rf"{words}\S*{name}", turn.said.text) is not None


def _is_named_in_full(path: str, turn: TurnFacts) -> bool:
    name = basename(path.rstrip("/"))
    return "." not in name or name.casefold() in turn.said.files


def _reasons_about_replies(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Replies, drafts and event changes go to the people on the object, which the call does not list."""
    for value in call.values(call.traits.of):
        things = turn.seen.find_by_id(value)
        if not things:
            if not is_id_named(value, turn) or call.traits.known:
                yield "it is not known who would get it"
            continue
        for receiver in dict.fromkeys(one for thing in things for one in _unnamed_recipients(thing, call, turn)):
            yield f"you did not name {shorten(receiver)}"
        if _is_to_everyone(call) and not _EVERYONE.search(turn.said_of(call.traits.wants).text):
            others = [one for thing in things for one in thing.texts("to", "cc")]
            if not any("cc" in thing.fields for thing in things) or any(one.endswith(_CUT) for one in others):
                yield "it is not known who would get it"
            yield from (f"you did not name {shorten(one)}" for one in find_unnamed(others, turn, call.traits.wants))


def _unnamed_recipients(thing: SeenThing, call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    kinds = call.traits.wants
    if thing.tool == call.tool:
        return  # the result of sending it before
    if "draft_id" in thing.fields:
        yield from find_unnamed(thing.texts("to", "cc", "bcc"), turn, kinds)
    elif "sender" in thing.fields:
        if not _is_meant(thing, turn, kinds) or _may_be_another(thing, turn, kinds):
            yield thing.sender
        sender = thing.addresses("sender")
        yield from (one for one in answered(thing, turn) if one not in sender and not is_named(one, turn, kinds))
    elif not is_thing_named(thing, turn):
        yield next(iter(thing.titles), thing.tool)


def _is_meant(thing: SeenThing, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    # The sender of a mail chooses its subject and date, so these identify it only if the order names nobody.
    by_itself = is_named_by_order(thing, turn, kinds) or is_newest(thing, turn)
    by_name = order_names_a_sender(turn, kinds) or sender_spoken_of(thing, turn)
    return is_sender_named(thing, turn, kinds) or (by_itself and not by_name)


def _may_be_another(thing: SeenThing, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether the order is ambiguous: `What did the shop write, and Bob?`, then `Reply to him`."""
    if turn.seen.matches_any(thing, turn.words_of(kinds)) or is_newest(thing, turn):
        return False
    spoken_of = (one for one in turn.seen.things if one.sender and _is_meant(one, turn, kinds))
    return len({one.addresses("sender") for one in spoken_of}) > 1


def _is_to_everyone(call: CallFacts) -> bool:
    return any(call.arguments.get(flag) for flag in call.traits.everyone)


def _reasons_about_unknown_tool(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """For unreviewed tools, targets must be the person's own words; once tainted, the text too."""
    traits = call.traits
    for value in call.values((*traits.of, *traits.urls)):
        if not (
            is_id_named(value, turn)
            or turn.said.names_page(value)
            or was_made_here(value, turn)
            or is_trivial_value(value)
        ):
            yield f"you did not name {shorten(value)}"
    if turn.tainted and not is_backed(call.values(traits.payload), turn.given):
        yield "its text is not what you said"


def is_trivial_value(value: str) -> bool:
    """Flags and small numbers."""
    return value in ("true", "false") or (value.isdigit() and len(value) < 3)


_MAIN: Final = "primary"
_LISTS: Final = "gmail_list_calendars"
_NOUN: Final = r"(?:cal[ae]nd[ae]r|diary|kalender|calendrier|agenda|calendario|kalendarz\w*)"
# "The family calendar", "Bob's calendar"; "the calendar called Family"; and as one word, "Familienkalender".
_BEFORE: Final = re.compile(
    rf"\b(?:my|our|the|in|into|on|to|den|dem|meinen|unseren|im|mon|le|mi|el|do|w) ((?:[\w'-]+ ){{1,2}}){_NOUN}\b"
)
_BEHIND: Final = re.compile(
    rf"\b{_NOUN}(?: (?:called|named|of|for|de la|de|del|du|namens|von|für|o nazwie))? ([\w'-]+(?: [\w'-]+)?)"
)
_WITHIN: Final = re.compile(rf"\b(\w{{3,}}?)-?{_NOUN}\b")
_ALIKE: Final = 5


def reasons_to_ask_for_calendar(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """The main calendar and the event's own calendar are fine; any other must be named as a calendar."""
    if not turn.tainted:
        return
    for value in call.values(call.traits.within):
        if _is_main_calendar(value, turn):
            continue
        if not (_holds_event(value, call, turn) or _is_calendar_named(value, turn)):
            yield f"you did not name the calendar {shorten(_calendar_name(value, turn))}"
        if "write_inside" in call.classes:
            yield from reasons_about_payload(call, turn)  # others may see it


def _is_main_calendar(value: str, turn: TurnFacts) -> bool:
    known = [thing.fields.get("primary") is True for thing in _calendars(value, turn)]
    return value == _MAIN or value.casefold() in turn.own or (bool(known) and all(known))


def _holds_event(value: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the changed event was seen in this calendar and in no other."""
    places = {place for thing in turn.things_of(call) for place in thing.texts("calendar_id")}
    return places == {value}


def _is_calendar_named(value: str, turn: TurnFacts) -> bool:
    if has_hidden_characters(value):
        return False
    text = turn.said.text
    spoken = content_words(
        " ".join(found for pattern in (_BEFORE, _BEHIND, _WITHIN) for found in pattern.findall(text))
    )
    names = content_words(value) if not _calendars(value, turn) else content_words(_calendar_name(value, turn))
    return any(one[:_ALIKE] == other[:_ALIKE] for one in names for other in spoken)


def _calendar_name(value: str, turn: TurnFacts) -> str:
    return next((name for thing in _calendars(value, turn) for name in thing.texts("name")), value)


def _calendars(value: str, turn: TurnFacts) -> list[SeenThing]:
    return [thing for thing in turn.seen.find_by_id(value) if thing.tool == _LISTS]
