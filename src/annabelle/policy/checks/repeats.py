"""Reasons to ask when a call exceeds the orders: one order for a note allows one note."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from annabelle.policy.checks.targets import was_made_here
from annabelle.policy.intent.orders import Order
from annabelle.policy.intent.times import times
from annabelle.policy.provenance import is_backed
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.tool_traits import ToolTraits, reviewed_tools
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.policy.vocabulary import mentions_any

_COUNTED: Final = frozenset({"write_inside", "send_outside"})
_MOMENT: Final = re.compile(r"[\d\s:.TZ+/-]+")


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """Ask if the orders are already fulfilled, by this tool or another, and the call says more than the person did."""
    orders = _fitting_orders(call.traits, turn)
    if not (turn.tainted and call.traits.known and _is_counted(call.traits)) or _continues(call, turn):
        return
    done = sum(
        result.this_turn and not result.failed and (result.tool == call.tool or _fulfils(result.tool, orders, turn))
        for result in turn.seen.results
    )
    if done == 0:
        return
    counts = [times(order, spreads=call.traits.spreads) for order in orders]
    most = None if None in counts else sum(count for count in counts if count is not None)
    if most and done >= most and not _is_what_was_said(call, turn):
        yield "what you asked for was done already"


def _is_counted(traits: ToolTraits) -> bool:
    says_something = not traits.existing or bool(traits.rewrites or traits.payload)
    return says_something and bool(_COUNTED & set(traits.classes))


def _continues(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether it goes on with what its server made for the order: sends the draft, adds to the new list."""
    server = call.tool.partition("_")[0]

    def was_made(value: str) -> bool:
        makers = {thing.tool for thing in turn.seen.find_by_id(value)} - {call.tool}
        return was_made_here(value, turn) and any(maker.startswith(f"{server}_") for maker in makers)

    targets = [*call.values((*call.traits.of, *call.traits.paths))]
    if call.traits.spreads and not targets:
        return any(map(was_made, collect_texts(call.arguments)))
    return bool(targets) and all(map(was_made, targets))


def _fulfils(tool: str, orders: Sequence[Order], turn: TurnFacts) -> bool:
    """Whether a call of this tool can only have been made for these orders. Reading, clicking and moving an event may
    come before what was ordered."""
    traits = reviewed_tools().get(tool)
    if traits is None or not set(traits.classes) <= _COUNTED or traits.source == "web":
        return False
    if traits.existing and not traits.rewrites:
        return False
    fitting = _fitting_orders(traits, turn)
    return bool(fitting) and all(order in orders for order in fitting)


def _fitting_orders(traits: ToolTraits, turn: TurnFacts) -> tuple[Order, ...]:
    """The orders that mention such things, or all of the kind if none does."""
    orders = turn.orders_of(traits.wants)
    spoken = tuple(order for order in orders if mentions_any(order.objects, traits.about))
    return spoken or orders


def _is_what_was_said(call: CallFacts, turn: TurnFacts) -> bool:
    texts = [text for text in collect_texts(call.arguments) if not _MOMENT.fullmatch(text)]
    return is_backed(texts, [turn.own_words, *turn.earlier])
