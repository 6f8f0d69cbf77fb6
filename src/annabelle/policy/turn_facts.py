"""What a decision is made from: the call, the turn it is made in, and how a reason to ask is worded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from annabelle.core.tools import JsonObject
from annabelle.core.trust import ToolClass
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.exclusions import only_spared, without_spared
from annabelle.policy.intent.orders import Order, orders_in
from annabelle.policy.intent.own_words import dictated, holds_others, own_words
from annabelle.policy.person_words import PersonWords, content_words
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.seen_content import SeenContent, SeenThing
from annabelle.policy.tool_traits import ToolTraits
from annabelle.policy.vocabulary import mentions_any

_SHORT: Final = 60
# Who answers a question with nothing but yes means what they asked for before.
_YES: Final = re.compile(
    r"(?!(?:thanks|thx|then|now|danke|stp|svp|merci|porfa|gracias|dzięki|\W)+$)"  # which says nothing by itself
    r"\W*(?:yes|yep|yup|yeah|ok|okay|sure|please|pls|thanks|thx|go (?:ahead|for it)|do (?:it|that|so)|sounds good|then|"
    r"now|confirmed|ja|jo|gerne|bitte|danke|mach (?:das|es|mal|schon)|leg los|genau|oui|ouais|stp|svp|merci|d'accord|"
    r"vas-y|allez-y|fais(?:-le| ça)|sí|si|claro|dale|hazlo|adelante|vale|por favor|porfa|gracias|tak|dobrze|jasne|"
    r"proszę|dzięki|zrób to|,|\s)+\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call, and what its tool is known to do."""

    tool: str
    arguments: JsonObject
    traits: ToolTraits
    classes: tuple[ToolClass, ...]

    def values(self, names: tuple[str, ...]) -> Iterator[str]:
        """Every text in these arguments."""
        for name in names:
            yield from (text for text in collect_texts(self.arguments.get(name)) if text.strip())


@dataclass(frozen=True)
class TurnFacts:
    """`words` is the message this turn answers, `earlier` what the person said before it, newest first. Nothing that
    anybody else wrote is in them. `own` are the person's own addresses and the chat they are talking in."""

    words: str = ""
    earlier: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    suspicious: bool = False
    unsolicited_read: bool = False
    seen: SeenContent = field(default_factory=SeenContent)
    own: frozenset[str] = frozenset()
    senders_by_name: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Of names that were looked up in the whole mailbox: the addresses of all who write under them."""

    @property
    def tainted(self) -> bool:
        """Whether foreign content was seen anywhere in the conversation."""
        return bool(self.origins) or self.pasted

    @cached_property
    def tainted_now(self) -> bool:
        """Whether it was seen since the person's last message, or stands in it."""
        return self.pasted or any(result.this_turn and not result.trusted for result in self.seen.results)

    @cached_property
    def own_words(self) -> str:
        return own_words(self.words)

    @cached_property
    def pasted(self) -> bool:
        """Whether the message holds words of others."""
        return holds_others(self.words)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """What the person says and dictates, this message first: all of it but what they paste of others."""
        words = "\n".join((self.own_words, *dictated(self.words))) if self.pasted else self.words
        return (words, *self.earlier)

    @cached_property
    def said_now(self) -> PersonWords:
        """What the person said in this turn."""
        return PersonWords([without_spared(self.own_words)])

    @cached_property
    def said(self) -> PersonWords:
        """What the person said in this turn and the ones just before."""
        return PersonWords(without_spared(text) for text in (self.own_words, *map(own_words, self.earlier)))

    @cached_property
    def excluded(self) -> PersonWords:
        """What the person said in this turn only to have it left alone."""
        return PersonWords([only_spared(self.own_words)])

    @cached_property
    def all_orders(self) -> tuple[Order, ...]:
        """What the person orders in this turn."""
        return orders_in(self.earlier[0] if self._agreed else self.words)

    @cached_property
    def ordering(self) -> PersonWords:
        """The message that orders: this one, or the one before where they only agree to what that one said."""
        return PersonWords([without_spared(own_words(self.earlier[0]))]) if self._agreed else self.said_now

    @cached_property
    def _agreed(self) -> bool:
        return bool(self.earlier) and len(self.words) < _SHORT and _YES.fullmatch(self.words) is not None

    @cached_property
    def order_kinds(self) -> frozenset[ActionKind]:
        """The kinds of it."""
        return frozenset(kind for order in self.all_orders for kind in order.kinds)

    def orders_of(self, kinds: Iterable[ActionKind]) -> tuple[Order, ...]:
        """The orders of these kinds."""
        wanted = frozenset(kinds)
        return tuple(order for order in self.all_orders if order.kinds & wanted)

    def objects_of(self, kinds: Iterable[ActionKind]) -> PersonWords:
        """What orders of these kinds are done to, and where it goes."""
        return PersonWords(order.objects for order in self.orders_of(kinds))

    def sources_of(self, kinds: Iterable[ActionKind]) -> frozenset[str]:
        """The files that orders of these kinds only take something from: `a summary of report.md`."""
        return self.said_of(kinds).files - self.objects_of(kinds).files

    def words_of(self, kinds: Iterable[ActionKind]) -> frozenset[str]:
        """The words that can name something in orders of these kinds."""
        return content_words(" ".join(order.words for order in self.orders_of(kinds)))

    def said_of(self, kinds: Iterable[ActionKind]) -> PersonWords:
        """The words of orders of these kinds alone."""
        return PersonWords(order.words for order in self.orders_of(kinds))

    def wants(self, kinds: Iterable[ActionKind], nouns: Iterable[str]) -> bool:
        """Whether an order of one of these kinds is about one of these things."""
        things = tuple(nouns)
        return any(mentions_any(order.objects, things) for order in self.orders_of(kinds))

    def things_of(self, call: CallFacts) -> list[SeenThing]:
        """The things a call answers, sends, changes or deletes, as far as they were seen."""
        return [thing for value in call.values(call.traits.of) for thing in self.seen.find_by_id(value)]

    @cached_property
    def topic(self) -> str:
        """The words that say what the turn is about."""
        texts = [self.own_words, *(own_words(text) for text in self.earlier[:1])]
        return "\n".join(texts).lower()


_SHOWN = 80


def describe_origins(turn: TurnFacts) -> str:
    """What makes a turn one to be careful in, as the beginning of a sentence."""
    if not turn.origins:
        return ""
    shown = ", ".join(turn.origins[:2]) + (" and others" if len(turn.origins) > 2 else "")
    return f"This conversation has seen content from outside ({shown}), and "


def shorten(value: str) -> str:
    """A value as it is shown in a reason: on one line, and not too long."""
    line = "".join(sign if sign.isprintable() else "�" for sign in " ".join(value.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def format_reason(turn: TurnFacts, what: str) -> str:
    """The sentence: `you did not name mallory@example.com`."""
    sentence = f"{describe_origins(turn)}{what}."
    return sentence[0].upper() + sentence[1:]
