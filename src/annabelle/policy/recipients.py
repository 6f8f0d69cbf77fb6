"""Checks whether the person named the recipients (POL-04)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.receiving import is_for_all_of_them, is_for_the_person, is_for_whose_page_it_is, receiving
from annabelle.policy.person_words import PersonWords, content_words, find_addresses, has_hidden_characters
from annabelle.policy.seen_content import SeenThing
from annabelle.policy.turn_facts import TurnFacts

# Only the person's own contacts say who somebody is. Senders choose the name on their mail.
_CONTACT_TOOLS: Final = frozenset({"find_contact", "memory_list_contacts", "telegram_list_contacts"})
_REACHED_BY: Final = ("email", "emails", "phone", "phones", "username", "chat_id", "telegram_chat_id")
_FROM: Final = r"\b(?:from|of|by|von|vom|de|od)\s+(?:(?!(?:to|for|an|für|à|a|do|dla)\b)[\w'-]+\s+){{0,2}}<?{}"
_OFFICES: Final = content_words(
    "info support office contact service hello team admin sales help billing accounts booking shop hotel bank course"
    " school"
)
_CONTACT_SOURCES: Final = frozenset({"memory", "telegram"})


def split_recipients(value: str) -> list[str]:
    """The addresses in an argument, or its comma-separated parts if there are none."""
    found = find_addresses(value)
    if found:
        rest = value.casefold()
        for address in found:
            rest = rest.replace(address, " ")
        # A second "@" outside an address might make the mail go elsewhere.
        return found if "@" not in rest else [value]
    return [part.strip() for part in value.split(",") if part.strip()]


def find_unnamed(values: Iterable[str], turn: TurnFacts, kinds: Sequence[ActionKind]) -> list[str]:
    return [one for value in values for one in split_recipients(value) if not is_named(one, turn, kinds)]


def is_named(receiver: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether the person named the receiver by address, or by a name that their contacts resolve to this address only.

    If the order says who gets something, only those count; other people in the message do not.
    """
    if has_hidden_characters(receiver):
        return False
    address, order = receiver.casefold().strip(), turn.said_of(kinds)
    direct = _direct_recipients(turn, kinds)
    if address in turn.own or direct.names_address(receiver):
        return True
    if is_for_the_person(order.text):
        return False
    if _is_told(address, turn, order, direct):
        return True
    if order.names_address(receiver) and not (direct.addresses or _names_contact(turn, direct.words)):
        return True
    others = turn.said.addresses - {address}
    if order.addresses or _names_contact(turn, direct.words):
        return _is_the_only_writer(address, turn, direct)  # the order says who gets it
    if _attends_named_event(address, turn, order):
        return True
    if _only_wrote(address, turn) and not all(_only_wrote(other, turn) for other in others):
        return False
    return (
        turn.said.names_address(receiver)
        or _is_told(address, turn, turn.said, receiving([turn.own_words, *turn.earlier], kinds))
        or _is_the_only_writer(address, turn, direct)
        or (not others and _is_on_named_page(address, turn, order))
    )


def find_sender_names(values: Iterable[str], turn: TurnFacts) -> frozenset[str]:
    """Words by which the person may mean these receivers: sender names seen on mail, and words of the address."""
    wanted = {one.casefold() for value in values for one in split_recipients(value)}
    found = (_sender_said(thing, turn.said) for thing in turn.seen.things if thing.sender)
    seen = {word for address, called in found if address in wanted for word in called}
    # "tell carla" may mean carla@work.example; the mailbox shows who writes under that name.
    addressed = {word for one in wanted for word in content_words(one.partition("@")[0]) & turn.said.words}
    return frozenset(seen | (addressed - _OFFICES))


def _is_the_only_writer(address: str, turn: TurnFacts, direct: PersonWords) -> bool:
    """Whether the order names them, and nobody with another address writes under that name."""
    names = direct.words & turn.senders_by_name.keys()
    if not names and not (direct.addresses or _names_contact(turn, direct.words)):
        names = turn.said_now.words & turn.senders_by_name.keys()  # "a call with Carla, and write her the agenda"
    kept = (_name_words(thing) for thing in turn.seen.things if _is_contact(thing))
    known = frozenset(word for called in kept for word in called)
    return _only_writer(address, names - known, turn)


def _only_writer(address: str, names: frozenset[str], turn: TurnFacts) -> bool:
    """Whether, in the whole mailbox, each of these names belongs to this address alone."""
    # One name is not enough: a sender called "Carla Friday" would be the only Friday.
    return bool(names) and all(turn.senders_by_name.get(name) == frozenset({address}) for name in names)


def _is_on_named_page(address: str, turn: TurnFacts, order: PersonWords) -> bool:
    """Whether the order is to write to the owner of a named page, and this is the only address on it."""
    # A model that read the order was asked about this receiver.
    return (bool(turn.read_orders) or is_for_whose_page_it_is(order.text)) and bool(pages_of(address, turn))


def pages_of(address: str, turn: TurnFacts) -> list[str]:
    """The pages the person named and that were read since, if this is the only address on them."""
    pages, addresses = list[str](), set[str]()
    for result in turn.seen.results:
        urls = (url for thing in result.things for url in thing.texts("url"))
        if result.this_turn and result.source == "web" and (named := [*filter(turn.said.names_page, urls)]):
            pages += named
            addresses.update(find_addresses(result.whole))
    return pages if addresses == {address} else []


def _only_wrote(address: str, turn: TurnFacts) -> bool:
    """Whether the person mentions this address only as a sender."""
    mentioned = turn.said.text.count(address)
    return mentioned > 0 and mentioned == len(re.findall(_FROM.format(re.escape(address)), turn.said.text))


def names_recipients(turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether an order of these kinds names a recipient, by address or as a contact."""
    direct = _direct_recipients(turn, kinds)
    return bool(direct.addresses) or _names_contact(turn, direct.words)


def _direct_recipients(turn: TurnFacts, kinds: Sequence[ActionKind]) -> PersonWords:
    return receiving((order.words for order in turn.orders_of(kinds)), kinds)


def _attends_named_event(address: str, turn: TurnFacts, order: PersonWords) -> bool:
    """`Everyone in the team meeting`: the attendees of the named event."""
    if not is_for_all_of_them(order.text):
        return False
    events = (thing for thing in turn.seen.things if thing.texts("attendees"))
    meant = [event for event in events if turn.seen.is_best_match(event, order.words)]
    return any(address in event.addresses("attendees") for event in meant)


def _is_told(receiver: str, turn: TurnFacts, order: PersonWords, direct: PersonWords) -> bool:
    """Whether the order names them as recipient, or mentions them and names no other contact."""
    if _is_resolved(receiver, turn, direct.words):
        return True
    return _is_resolved(receiver, turn, order.words) and not _names_contact(turn, direct.words)


def _names_contact(turn: TurnFacts, words: frozenset[str]) -> bool:
    return any(_is_contact(thing) and _name_words(thing) & words for thing in turn.seen.things)


def _is_resolved(receiver: str, turn: TurnFacts, words: frozenset[str]) -> bool:
    people = [thing for thing in turn.seen.things if _is_contact(thing)]
    mine = [thing for thing in people if receiver.lstrip("@") in _addresses_of(thing)]
    called = max((_name_words(thing) & words for thing in mine), key=len, default=frozenset[str]())
    reached = {address for thing in mine for address in _addresses_of(thing)}
    # If somebody else matches the name equally well, it is ambiguous.
    rivals = (_name_words(thing) for thing in people if not _addresses_of(thing) & reached)
    return bool(called) and not any(called <= rival for rival in rivals)


def _is_contact(thing: SeenThing) -> bool:
    if thing.tool not in _CONTACT_TOOLS or not _addresses_of(thing) or thing.fields.get("trust") == "untrusted":
        return False
    sources = thing.texts("sources")
    return not sources or bool(_CONTACT_SOURCES & set(sources))


def _addresses_of(thing: SeenThing) -> frozenset[str]:
    return frozenset(text.casefold().lstrip("@") for text in thing.texts(*_REACHED_BY))


def _name_words(thing: SeenThing) -> frozenset[str]:
    return content_words(" ".join(thing.texts("name", "title", "username")))


def is_sender_named(thing: SeenThing, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether the sender was named by address or name, in the order itself if it names one."""
    bound = order_names_a_sender(turn, kinds) or names_recipients(turn, kinds)
    said = turn.said_of(kinds) if bound else turn.said
    address, called = _sender_said(thing, said)
    if address in said.addresses or (address and _is_resolved(address, turn, said.words)):
        return True
    # Senders choose their own names: one that two share identifies neither, and a contact's name no stranger.
    others = (_sender_said(other, said) for other in turn.seen.things)
    kept = (
        _name_words(other) for other in turn.seen.things if _is_contact(other) and address not in _addresses_of(other)
    )
    if not called or any(called & also for also in kept):
        return False
    if any(called <= also for other, also in others if other != address):
        return False
    return not address or _only_writer(address, called, turn)


def sender_spoken_of(thing: SeenThing, turn: TurnFacts) -> bool:
    """Whether the person said a name of its sender. Then that name must match, whatever else fits."""
    return bool(_sender_said(thing, turn.said)[1])


def answered(thing: SeenThing, turn: TurnFacts) -> tuple[str, ...]:
    """Who a reply goes to: Reply-To before From, and the recipients if the mail is the person's own."""
    writers = thing.addresses("reply_to") or thing.addresses("sender")
    others = tuple(one for one in writers if one not in turn.own)
    return others or tuple(one for one in thing.addresses("to") if one not in turn.own)


def order_names_a_sender(turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether the order mentions a sender of mail that was seen."""
    order = turn.said_of(kinds)
    found = (_sender_said(thing, order) for thing in turn.seen.things)
    return any(called or address in order.addresses for address, called in found)


def _sender_said(thing: SeenThing, said: PersonWords) -> tuple[str, frozenset[str]]:
    """The sender's address and the words of the name that were said. Several addresses are joined, to match none."""
    boxes = thing.mailboxes
    name = " ".join(called or address.partition("@")[0] for called, address in boxes) if boxes else thing.sender
    return " ".join(address for _, address in boxes), content_words(name) & said.words
