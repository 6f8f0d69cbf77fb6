"""Checks whether the targets of a call are those the person named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.person_words import PersonWords, content_words
from annabelle.policy.seen_content import SeenResult, SeenThing
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.vocabulary import mentions_any, says_all, speaks_of_many

_NEWEST: Final = re.compile(
    r"\b(?:newest|latest|last(?! (?:week|month|year|night|time|\w+day))|most recent)(?: \w+)? (?:e-?mail|mail|message|"
    r"one|thing)|\b(?:neueste\w*|letzte\w*)(?: \w+)? (?:e-?mail|mail|nachricht)|\bdernier\w* (?:e-?mail|mail|message|"
    r"courriel)|\b(?:últim\w* (?:correo|mensaje)|ostatni\w* (?:mail|wiadomoś)\w*)"
)
_IT: Final = re.compile(
    r"\b(?:it|this|that|es|das|-le|-la|lo|la|go|ją|je)(?: one)?\W*(?:$|[,.;!?]|\b(?:as|to|in|and|auf|als|comme|como|"
    r"jako|afterwards|then|please|pls|now|too|bitte)\b)"
)
_OPENING: Final = re.compile(r"_(?:get|read)_(?!new_)")
_MAKING: Final = re.compile(r"(?:^|_)(?:create|add|make|quick|save|new)(?:_|$)")
_PICTURED: Final = frozenset({"web_browser_take_screenshot"})


def reasons_about_ids(call: CallFacts, turn: TurnFacts, kinds: tuple[ActionKind, ...]) -> Iterator[str]:
    """Yield reasons for ids that are unknown or not named, each as part of a sentence."""
    for value in call.values(call.traits.of):
        named = (is_id_named(value, turn, kinds) or _is_numbered(value, call, turn, kinds)) and not is_excluded(
            value, turn
        )
        if not (named and _is_meant(value, turn, kinds)):
            name = shorten(display_name(value, turn))
            yield f"you did not name “{name}”" if turn.seen.find_by_id(value) else f"it is not known what {name} is"


def is_id_named(value: str, turn: TurnFacts, kinds: Sequence[ActionKind] = ()) -> bool:
    """Whether the id was said, or belongs to the thing that best matches the order."""
    telling = not value.strip().isdigit()  # a spoken number may count anything
    if telling and (turn.said.contains(value) or (content_words(value) and turn.said.names_path(value))):
        return True
    return any(is_named_by_order(thing, turn, kinds) for thing in turn.seen.find_by_id(value))


def is_excluded(value: str, turn: TurnFacts) -> bool:
    """Whether the person named this thing only to exclude it: `archive it, Bob's stays`."""
    left_alone, seen = turn.excluded.words, turn.seen
    if not left_alone:
        return False
    return any(
        seen.is_best_match(thing, left_alone) and not seen.is_best_match(thing, turn.said_now.words)
        for thing in seen.find_by_id(value)
    )


def is_excluded_file(path: str, turn: TurnFacts) -> bool:
    """Like `is_excluded`, for a file."""
    return turn.excluded.names_path(path) and not turn.said_now.names_path(path)


def _is_numbered(value: str, call: CallFacts, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """`Delete message 12`: the number refers to what the order is about."""
    orders = (order for order in turn.orders_of(kinds) if mentions_any(order.objects, call.traits.about))
    return any(PersonWords([order.words]).contains(value) for order in orders)


def _is_meant(value: str, turn: TurnFacts, kinds: tuple[ActionKind, ...]) -> bool:
    """Whether the order itself is about this id: `read Bob's mail and delete Alice's` deletes nothing of Bob's."""
    seen, words = turn.seen, turn.words_of(kinds)
    things = seen.find_by_id(value)
    if not any(seen.matches_any(thing, words) for thing in things):
        return True
    return any(seen.is_best_match(thing, words) for thing in things)


def is_named_by_order(thing: SeenThing, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether an order names this thing, or the person does if no order names any of its kind."""
    seen, orders = turn.seen, (PersonWords([order.words]).words for order in turn.orders_of(kinds))
    naming = [words for words in orders if seen.matches_any(thing, words)]
    return any(
        seen.is_best_match(thing, words) and not seen.is_from_another_sender(thing, words)
        for words in naming or [turn.said.words]
    )


def is_thing_named(thing: SeenThing, turn: TurnFacts) -> bool:
    return turn.seen.is_best_match(thing, turn.said.words)


def is_newest(thing: SeenThing, turn: TurnFacts) -> bool:
    """Whether the person means the newest, and this thing comes first in the list."""
    if turn.seen.hides_some_now or not _NEWEST.search(turn.own_words.casefold()):
        return False
    # Use the oldest result: its content may have caused later listings.
    lists = (result.things for result in reversed(turn.seen.results) if result.this_turn)
    first = next((other for things in lists for other in things if other.kind == thing.kind), None)
    return first is not None and first.fields.get("id") == thing.fields.get("id") is not None


def is_referred_to(value: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """`Read Bob's mail and archive it`: the order points back, and only this thing of its kind was opened or listed."""
    if turn.seen.hides_some_now or not any(_IT.search(order.words) for order in turn.orders_of(kinds)):
        return False
    results = [result for result in turn.seen.results if result.this_turn and "pried" not in result.labels]
    opened = [result for result in results if _OPENING.search(result.tool)]
    return any(
        (_ids_of(thing.kind, opened) or _ids_of(thing.kind, results)) == {str(thing.fields.get("id"))}
        for thing in turn.seen.find_by_id(value)
        if thing.kind
    )


def _ids_of(kind: str, results: Iterable[SeenResult]) -> set[str]:
    things = (thing for result in results for thing in result.things if thing.kind == kind)
    return {str(thing.fields.get("id")) for thing in things}


def was_made_here(value: str, turn: TurnFacts) -> bool:
    """Whether a tool created it in this conversation."""
    return any(_MAKING.search(thing.tool) for thing in turn.seen.find_by_id(value))


def was_written_here(value: str, turn: TurnFacts) -> bool:
    """Whether a tool created it in this conversation, or wrote its text."""
    tools = (reviewed_tools().get(thing.tool) for thing in turn.seen.find_by_id(value))
    return was_made_here(value, turn) or any(tool is not None and (tool.rewrites or tool.payload) for tool in tools)


def was_pictured_here(path: str, turn: TurnFacts) -> bool:
    """Whether it is a screenshot taken since the person's last message."""
    results = (result for result in turn.seen.results if result.this_turn and result.tool in _PICTURED)
    return any(path in thing.texts("path") for result in results for thing in result.things)


def is_participant(address: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the address is already on the changed event, so that the call tells it nothing new."""
    return any(address.casefold() in thing.addresses("attendees") for thing in turn.things_of(call))


def is_one_of_many(value: str, turn: TurnFacts, kinds: Sequence[ActionKind]) -> bool:
    """Whether the order means all such things without naming one: `mark my unread mails as read`."""
    things = turn.seen.find_by_id(value)
    orders = [order.words for order in turn.orders_of(kinds) if speaks_of_many(order.words)]
    spoken = [PersonWords([words]).words for words in orders] or [turn.said.words]
    if not (orders or speaks_of_many(turn.own_words)):
        return False
    return bool(things) and any(not any(turn.seen.matches_any(thing, said) for thing in things) for said in spoken)


def is_path_named(path: str, turn: TurnFacts, kinds: tuple[ActionKind, ...]) -> bool:
    """Whether the person named this file, or all files of a folder it is in."""
    if is_excluded_file(path, turn):
        return False
    if turn.said.names_path(path):
        return is_file_meant(path, turn, kinds)
    orders = ((order.words, PersonWords([order.words])) for order in turn.orders_of(kinds))
    return any(says_all(words) and not said.files and said.names_folder(path) for words, said in orders)


def is_file_meant(path: str, turn: TurnFacts, kinds: tuple[ActionKind, ...]) -> bool:
    """Whether the order is about this file rather than only reading from it."""
    name = basename(path.rstrip("/")).casefold()
    files = turn.objects_of(kinds).files
    if files or name in turn.said.files:
        return (not files or name in files) and name not in turn.sources_of(kinds)
    # Without a full file name, a word means the file only if the order itself contains it.
    return turn.objects_of(kinds).names_path(path)


def display_name(value: str, turn: TurnFacts) -> str:
    """The name a person would use for this id."""
    things = turn.seen.find_by_id(value)
    return next(iter(things[0].titles), "") or things[0].sender or things[0].tool if things else value
