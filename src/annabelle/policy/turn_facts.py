"""The facts a decision is based on: the call and its turn. Also formats the reasons to ask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from annabelle.core.tools import JsonObject, name_in_words
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
# A plain yes refers to what the person asked for before.
_YES: Final = re.compile(
    r"(?!(?:thanks|thx|then|now|danke|stp|svp|merci|porfa|gracias|dzięki|\W)+$)"  # these words alone do not agree
    r"\W*(?:yes|yep|yup|yeah|ok|okay|sure|please|pls|thanks|thx|go (?:ahead|for it)|do (?:it|that|so)|sounds good|then|"
    r"now|confirmed|ja|jo|gerne|bitte|danke|mach (?:das|es|mal|schon)|leg los|genau|oui|ouais|stp|svp|merci|d'accord|"
    r"vas-y|allez-y|fais(?:-le| ça)|sí|si|claro|dale|hazlo|adelante|vale|por favor|porfa|gracias|tak|dobrze|jasne|"
    r"proszę|dzięki|zrób to|,|\s)+\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CallFacts:
    tool: str
    arguments: JsonObject
    traits: ToolTraits
    classes: tuple[ToolClass, ...]

    def values(self, names: tuple[str, ...]) -> Iterator[str]:
        """Yield every text in these arguments."""
        for name in names:
            yield from (text for text in collect_texts(self.arguments.get(name)) if text.strip())


@dataclass(frozen=True)
class TurnFacts:
    """Facts about a turn; `words` and `earlier` contain nothing that others wrote.

    `words` is the message this turn answers, `earlier` what the person said before, newest first. `own` holds the
    person's addresses and the current chat.
    """

    words: str = ""
    earlier: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    suspicious: bool = False
    unsolicited_read: bool = False
    seen: SeenContent = field(default_factory=SeenContent)
    own: frozenset[str] = frozenset()
    senders_by_name: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Addresses of everyone who writes under a name, for names looked up in the whole mailbox."""
    confirmed: bool = False
    """The person said yes to exactly this call beforehand."""
    read_orders: tuple[Order, ...] | None = None
    """The orders a model read in the person's words (POL-08), instead of those the grammar finds."""

    @property
    def tainted(self) -> bool:
        """Whether foreign content was seen in the conversation."""
        return bool(self.origins) or self.pasted

    @cached_property
    def tainted_now(self) -> bool:
        """Whether foreign content was seen since the person's last message, or is part of it."""
        return self.pasted or any(result.this_turn and not result.trusted for result in self.seen.results)

    @cached_property
    def own_words(self) -> str:
        return own_words(self.words)

    @cached_property
    def pasted(self) -> bool:
        """Whether the message contains text by others."""
        return holds_others(self.words)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """What the person says and dictates, this message first, without text pasted from others."""
        words = "\n".join((self.own_words, *dictated(self.words))) if self.pasted else self.words
        return (words, *self.earlier)

    @cached_property
    def said_now(self) -> PersonWords:
        return PersonWords([without_spared(self.own_words)])

    @cached_property
    def said(self) -> PersonWords:
        """What the person said in this turn and the ones before."""
        return PersonWords(without_spared(text) for text in (self.own_words, *map(own_words, self.earlier)))

    @cached_property
    def excluded(self) -> PersonWords:
        """What the person mentioned only to exclude it."""
        return PersonWords([only_spared(self.own_words)])

    @cached_property
    def all_orders(self) -> tuple[Order, ...]:
        return self.clauses if self.read_orders is None else self.read_orders

    @cached_property
    def clauses(self) -> tuple[Order, ...]:
        """The clauses that the grammar takes for orders."""
        return orders_in(self.earlier[0] if self._agreed else self.words)

    @cached_property
    def ordering_words(self) -> str:
        """The person's own words that may give the order, as they were written."""
        return own_words(self.earlier[0]) if self._agreed else self.own_words

    def with_verdict(self, kinds: Iterable[ActionKind], *, ordered: bool) -> TurnFacts:
        """The same turn with what a model read in it: one order of these kinds, or none."""
        words = self.ordering_words.replace("’", "'").casefold()
        return replace(self, read_orders=(Order(frozenset(kinds), words, words),) if ordered else ())

    @cached_property
    def ordering(self) -> PersonWords:
        """The message that gives the order: this one, or the previous one if the person only agrees to it."""
        return PersonWords([without_spared(self.ordering_words)])

    @cached_property
    def _agreed(self) -> bool:
        return bool(self.earlier) and len(self.words) < _SHORT and _YES.fullmatch(self.words) is not None

    @cached_property
    def order_kinds(self) -> frozenset[ActionKind]:
        return frozenset(kind for order in self.all_orders for kind in order.kinds)

    def orders_of(self, kinds: Iterable[ActionKind]) -> tuple[Order, ...]:
        wanted = frozenset(kinds)
        return tuple(order for order in self.all_orders if order.kinds & wanted)

    def objects_of(self, kinds: Iterable[ActionKind]) -> PersonWords:
        """The objects and destinations of orders of these kinds."""
        return PersonWords(order.objects for order in self.orders_of(kinds))

    def sources_of(self, kinds: Iterable[ActionKind]) -> frozenset[str]:
        """The files that orders of these kinds only read from: `a summary of report.md`."""
        return self.said_of(kinds).files - self.objects_of(kinds).files

    def words_of(self, kinds: Iterable[ActionKind]) -> frozenset[str]:
        """The content words in orders of these kinds."""
        return content_words(" ".join(order.words for order in self.orders_of(kinds)))

    def said_of(self, kinds: Iterable[ActionKind]) -> PersonWords:
        return PersonWords(order.words for order in self.orders_of(kinds))

    def wants(self, kinds: Iterable[ActionKind], nouns: Iterable[str]) -> bool:
        """Whether an order of these kinds mentions one of these things."""
        things = tuple(nouns)
        return any(mentions_any(order.objects, things) for order in self.orders_of(kinds))

    def things_of(self, call: CallFacts) -> list[SeenThing]:
        """The things a call answers, sends, changes or deletes, if they were seen."""
        return [thing for value in call.values(call.traits.of) for thing in self.seen.find_by_id(value)]

    @cached_property
    def topic(self) -> str:
        """The person's words that tell what the turn is about."""
        texts = [self.own_words, *(own_words(text) for text in self.earlier[:1])]
        return "\n".join(texts).lower()


_SHOWN = 80


def describe_origins(turn: TurnFacts) -> str:
    """Why this turn needs care, as the beginning of a sentence."""
    if not turn.origins:
        return ""
    shown = ", ".join(turn.origins[:2]) + (" and others" if len(turn.origins) > 2 else "")
    odd = ", and something in it looks like an attempt to give orders" if turn.suspicious else ""
    return f"This conversation has seen content from outside ({name_in_words(shown)}){odd}, and "


def shorten(value: str) -> str:
    """Shorten a value for a reason, on one line."""
    line = "".join(sign if sign.isprintable() else "�" for sign in " ".join(value.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def format_reason(turn: TurnFacts, what: str) -> str:
    """Format the full sentence: `You did not name mallory@example.com.`"""
    sentence = f"{describe_origins(turn)}{what}."
    return sentence[0].upper() + sentence[1:]
