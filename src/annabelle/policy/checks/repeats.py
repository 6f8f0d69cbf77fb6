"""Reasons to ask when a call exceeds the orders: one order for a note allows one note."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.intent.orders import Order
from annabelle.policy.intent.times import times
from annabelle.policy.provenance import is_backed
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.policy.vocabulary import mentions_any

_COUNTED: Final = frozenset({"write_inside", "send_outside"})
_MOMENT: Final = re.compile(r"[\d\s:.TZ+/-]+")


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Ask if the orders are already fulfilled and the call says more than the person did."""
    traits = call.traits
    says_something = not traits.existing or bool(traits.rewrites or traits.payload)
    if not (turn.tainted and traits.known and says_something and _COUNTED & set(traits.classes)):
        return
    done = sum(result.this_turn and not result.failed and result.tool == call.tool for result in turn.seen.results)
    if done == 0:
        return
    most = _count_allowed(call, turn)
    if most and done >= most and not _is_what_was_said(call, turn):
        yield "what you asked for was done already"


def _count_allowed(call: CallFacts, turn: TurnFacts) -> int | None:
    """The most calls that all orders of this kind together can mean; None means no limit."""
    counts = [times(order, spreads=call.traits.spreads) for order in _fitting_orders(call, turn)]
    return None if None in counts else sum(count for count in counts if count is not None)


def _fitting_orders(call: CallFacts, turn: TurnFacts) -> tuple[Order, ...]:
    """The orders that mention such things, or all of the kind if none does."""
    traits = call.traits
    orders = turn.orders_of(traits.wants)
    spoken = tuple(order for order in orders if mentions_any(order.objects, traits.about))
    return spoken or orders


def _is_what_was_said(call: CallFacts, turn: TurnFacts) -> bool:
    texts = [text for text in collect_texts(call.arguments) if not _MOMENT.fullmatch(text)]
    return is_backed(texts, [turn.own_words, *turn.earlier])
