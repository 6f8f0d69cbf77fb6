"""Sending needs no question when the person ordered it, named who gets it, and it takes nothing along unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from posixpath import basename
from typing import Final

from annabelle.policy.amounts import contradicts
from annabelle.policy.carrying import carries
from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.targets import (
    id_named,
    is_newest,
    made_here,
    order_names,
    pictured_here,
    takes_part,
    thing_named,
)
from annabelle.policy.grounds.why import short
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.naming import content_words, plain
from annabelle.policy.people import (
    answered,
    is_named,
    order_names_a_sender,
    sender_named,
    sender_spoken_of,
    unnamed,
)
from annabelle.policy.pointing import not_pointed_at, pointed_at
from annabelle.policy.provenance import backed
from annabelle.policy.seen import Thing

_WITHOUT: Final = r"\b(?:without|except|but not|not|ohne|außer|nicht|sans|sauf|sin|excepto|bez|oprócz)\b"
_OUT_OF: Final = r"\b(?:in|inside|from|out of|im|in der|aus|von|dans|en|w|z)\b"
_EVERYONE: Final = re.compile(
    r"\b(?:reply|answer|respond|write)(?: back)?(?: to)? (?:them )?(?:all|everyone|everybody)\b|reply-all|"
    r"\bto (?:all|everyone|everybody)\b|\ban alle\b|\ballen\b|\bà tous\b|\ba todos\b|\bdo wszystkich\b|\bwszystkim\b"
)

_CUT: Final = "…"
"""Ends a line of addresses that was too long to show."""

# An IBAN, or the address of a wallet: who pays there has paid for good.
_ACCOUNT: Final = re.compile(
    r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b|\b(?:bc1|0x)[0-9a-zA-Z]{25,60}\b"
)
_PAYING: Final = re.compile(
    r"\b(?:iban|accounts?|bank|payment|pay|invoice|bill|transfer|wallet|konto\w*|zahl\w*|rechnung\w*|überweis\w*|compte|"
    r"pay\w+|facture|virement|cuenta|pag\w+|factura|transferencia|kont\w+|zapła\w*|rachun\w*|przelew\w*|faktur\w*)\b"
)


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Why a person should look at it before it goes out."""
    traits = call.traits
    if not set(traits.wants) & turn.orders:
        yield "you did not ask for this to be sent"
    for receiver in unnamed(call.values(traits.to), turn, traits.wants):
        if not takes_part(receiver, call, turn):
            yield f"you did not name {short(receiver)}"
    yield from _answered(call, turn)
    yield from unnamed_files(call, turn)
    if not traits.known:
        yield from _unknown(call, turn)
    yield from taken_along(call, turn)


def taken_along(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """What goes out beside what was ordered."""
    if turn.suspicious:
        yield "something in it looks like an attempt to give orders"
    if not turn.tainted:
        return
    if turn.pried:
        yield "private data was read that you did not speak of"
    payload = list(call.values(call.traits.payload))
    if contradicts(turn.own_words, payload):
        yield "its sum is not the one you named"
    if _tells_where_to_pay(payload, turn):
        yield "it tells where to pay, which you did not say"
    if _tells_of_the_vault(payload, call, turn):
        yield "it tells what is in your vault"
    kinds = call.traits.wants
    if turn.seen.hides_private and not backed(payload, turn.given):
        yield "more private data was read than the text can be held against"
    elif carries(payload, not_pointed_at(turn, kinds), [turn.said.text, *pointed_at(turn, kinds)]):
        yield "the text holds private data that you did not speak of"


def _tells_of_the_vault(payload: Sequence[str], call: CallFacts, turn: TurnFacts) -> bool:
    """Whether it names what is kept there. To be shown it is one thing, to have others told another."""
    kept = (thing for result in turn.seen.results if result.source == "vault" for thing in result.things)
    names = frozenset(word for thing in kept for name in thing.called for word in content_words(name))
    told = content_words(" ".join(payload)) & names
    return bool(told - turn.said_of(call.traits.wants).words)


def _tells_where_to_pay(payload: Sequence[str], turn: TurnFacts) -> bool:
    """Whether there is an account in it that the person did not say, and they spoke of none."""
    accounts = [found.group() for text in payload for found in _ACCOUNT.finditer(text)]
    return bool(accounts) and _PAYING.search(turn.topic) is None and not backed(accounts, turn.given)


def unnamed_files(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    for path in call.values(call.traits.files):
        # Who writes file names in full does not mean another file by a mere word: a private mail is no private.txt.
        meant = turn.said.path(path) and not (turn.said.files and not _named_in_full(path, turn))
        meant = meant and not (_left_out(path, turn) or _only_looked_into(path, turn, call))
        if not (meant or pictured_here(path, turn)):
            yield f"you did not name the file {short(path)}"


def _left_out(path: str, turn: TurnFacts) -> bool:
    """`Without private.txt` names it, too."""
    return _stands_behind(rf"{_WITHOUT}\s+(?:\S+\s+)?", path, turn)


def _only_looked_into(path: str, turn: TurnFacts, call: CallFacts) -> bool:
    """`Look up the code in private.txt and mail it`: what is found there goes, not the file."""
    if turn.said_of(call.traits.wants).path(path):
        return False
    return _stands_behind(rf"{_OUT_OF}\s+", path, turn)


def _stands_behind(words: str, path: str, turn: TurnFacts) -> bool:
    name = re.escape(plain(basename(path.rstrip("/"))))
    return re.search(rf"{words}\S*{name}", turn.said.text) is not None


def _named_in_full(path: str, turn: TurnFacts) -> bool:
    name = basename(path.rstrip("/"))
    return "." not in name or name.casefold() in turn.said.files


def _answered(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Whoever gets an answer, a draft or a change of an event is told by the thing, not by the call."""
    for value in call.values(call.traits.of):
        things = turn.seen.of_id(value)
        if not things:
            if not id_named(value, turn) or call.traits.known:
                yield "it is not known who would get it"
            continue
        for receiver in dict.fromkeys(one for thing in things for one in _strangers(thing, call, turn)):
            yield f"you did not name {short(receiver)}"
        if _to_everyone(call) and not _EVERYONE.search(turn.said_of(call.traits.wants).text):
            others = [one for thing in things for one in thing.texts("to", "cc")]
            if not any("cc" in thing.fields for thing in things) or any(one.endswith(_CUT) for one in others):
                yield "it is not known who would get it"
            yield from (f"you did not name {short(one)}" for one in unnamed(others, turn, call.traits.wants))


def _strangers(thing: Thing, call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    kinds = call.traits.wants
    if thing.tool == call.tool:
        return  # what came back from sending it before
    if "draft_id" in thing.fields:
        yield from unnamed(thing.texts("to", "cc", "bcc"), turn, kinds)
    elif "sender" in thing.fields:
        if not _is_meant(thing, turn, kinds) or _may_be_another(thing, turn, kinds):
            yield thing.sender
        sender = thing.addresses("sender")
        yield from (one for one in answered(thing, turn) if one not in sender and not is_named(one, turn, kinds))
    elif not thing_named(thing, turn):
        yield next(iter(thing.called), thing.tool)


def _is_meant(thing: Thing, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    # Whoever writes a mail chooses its subject and when it comes: both tell it only where the order names nobody.
    by_itself = order_names(thing, turn, kinds) or is_newest(thing, turn)
    by_name = order_names_a_sender(turn, kinds) or sender_spoken_of(thing, turn)
    return sender_named(thing, turn, kinds) or (by_itself and not by_name)


def _may_be_another(thing: Thing, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """`What did the shop write, and Bob?` – `Reply to him`: the order names neither, and two were spoken of."""
    if turn.seen.names_one(thing, turn.words_of(kinds)) or is_newest(thing, turn):
        return False
    spoken_of = (one for one in turn.seen.things if one.sender and _is_meant(one, turn, kinds))
    return len({one.addresses("sender") for one in spoken_of}) > 1


def _to_everyone(call: CallFacts) -> bool:
    return any(call.arguments.get(flag) for flag in call.traits.everyone)


def _unknown(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """A tool that nobody reviewed: what it is about must be the person's own words, and its text too in doubt."""
    traits = call.traits
    for value in call.values((*traits.of, *traits.urls)):
        if not (id_named(value, turn) or turn.said.page(value) or made_here(value, turn) or says_nothing(value)):
            yield f"you did not name {short(value)}"
    if turn.tainted and not backed(call.values(traits.payload), turn.given):
        yield "its text is not what you said"


def says_nothing(value: str) -> bool:
    """Flags and small numbers."""
    return value in ("true", "false") or (value.isdigit() and len(value) < 3)
