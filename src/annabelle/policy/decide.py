"""Decides on one call of an agent. Pure: the same facts always give the same decision (POL-02, POL-04).

A person's rules come first. Content never gives orders: a call that sends, deletes, executes or changes Annabelle needs
an order from the person in this turn that names its target. Otherwise the person is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from annabelle.core.trust import Label, PolicyDecision, ToolClass
from annabelle.policy import standing_order
from annabelle.policy.checks import browse, delete, execute, exfiltration, repeats, send, write
from annabelle.policy.rules.rule import RuledCall, StandingRule, matches
from annabelle.policy.turn_facts import CallFacts, TurnFacts, format_reason, shorten
from annabelle.policy.unsolicited_read import is_unsolicited_read, unnamed_items

_SHOWN: Final = 2
_MOST_VALUES: Final = 300
_MOST_CHARS: Final = 30_000
_CHECKS: Final[dict[ToolClass, Callable[[CallFacts, TurnFacts], Iterator[str]]]] = {
    "destroy": delete.reasons_to_ask,
    "execute": execute.reasons_to_ask,
    "control": execute.reasons_to_ask_for_control,
    "write_inside": write.reasons_to_ask,
}


def decide(call: CallFacts, turn: TurnFacts, rules: Sequence[StandingRule] = ()) -> PolicyDecision:
    """Allow, ask or refuse, with the reasons for the person and the labels of the result."""
    labels = derive_labels(call, turn)
    ruled = RuledCall(call.tool, call.classes, call.arguments, _describe_targets(call, turn) if rules else ())
    fitting = [rule for rule in rules if matches(rule, ruled)]
    for kind in ("never", "ask"):
        said = [f"Your rule says: {rule.words}" for rule in fitting if rule.kind == kind]
        if said:
            verdict = "refuse" if kind == "never" else "ask"
            return PolicyDecision(verdict=verdict, reasons=tuple(said[:_SHOWN]), classes=call.classes, labels=labels)
    doubts = [] if turn.confirmed else list(dict.fromkeys(_reasons_to_ask(call, turn)))
    allowed = not turn.suspicious and any(rule.kind == "allow" and _covers(rule, call) for rule in fitting)
    order = _order_of(call, turn)
    if not doubts or allowed:
        return PolicyDecision(classes=call.classes, labels=labels, order=order)
    reasons = [format_reason(turn, " and ".join(doubts[:_SHOWN]))]
    if order:
        reasons.append(f"As your order I took: {' and '.join(f'“{words}”' for words in order)}.")
    return PolicyDecision(verdict="ask", reasons=tuple(reasons), classes=call.classes, labels=labels, order=order)


def _order_of(call: CallFacts, turn: TurnFacts) -> tuple[str, ...]:
    # Most calls only read and want no order, so the person's words need not be parsed for them.
    orders = turn.orders_of(call.traits.wants) if call.classes and call.traits.wants else ()
    return tuple(dict.fromkeys(shorten(order.words) for order in orders[:_SHOWN]))


def derive_labels(call: CallFacts, turn: TurnFacts) -> tuple[Label, ...]:
    """The labels of the result, known before the call is made."""
    found: list[Label] = []
    if call.traits.private or "read_private" in call.classes:
        found.append("private")
    if is_unsolicited_read(call, turn):
        found.append("pried")
    return tuple(found)


def needs_facts(call: CallFacts) -> bool:
    """Whether the decision depends on the turn; asking for the time does not."""
    return bool(call.classes or call.traits.urls or call.traits.queries)


def _reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if standing := [*standing_order.reasons_to_ask(call, turn)]:
        yield from standing
        return
    if call.classes and _is_too_much(call):
        yield "it is about more than can be looked at"
        return
    if "send_outside" in call.classes:
        on_a_page = call.traits.refs or call.traits.typed or call.traits.source == "web"
        yield from (browse if on_a_page else send).reasons_to_ask(call, turn)
    for one in call.classes:
        if one in _CHECKS:
            yield from _CHECKS[one](call, turn)
    if unnamed := unnamed_items(call, turn):
        yield from (f"you did not name “{shorten(title)}” of your vault" for title in unnamed)
    elif call.traits.source == "vault" and is_unsolicited_read(call, turn):
        yield "you did not speak of what is in the vault"
    yield from send.reasons_to_ask_for_calendar(call, turn)
    yield from repeats.reasons_to_ask(call, turn)
    yield from exfiltration.reasons_to_ask(call, turn)


def _is_too_much(call: CallFacts) -> bool:
    """Whether the call has more targets than a person could name."""
    traits = call.traits
    values = [*call.values((*traits.to, *traits.of, *traits.files, *traits.paths, *traits.urls))]
    return len(values) > _MOST_VALUES or sum(map(len, values)) > _MOST_CHARS


def _covers(rule: StandingRule, call: CallFacts) -> bool:
    """Whether an allow rule covers all arguments. Text is free for reviewed tools; others may add hidden recipients."""
    traits = call.traits
    telling = {*traits.to, *traits.of, *traits.paths, *traits.files, *traits.urls, *traits.code, *traits.values}
    free = set(traits.payload) - telling if traits.known else set[str]()
    given = (name for name, value in call.arguments.items() if value not in (None, "", [], {}))
    return bool(rule.match.tools) and all(name in rule.match.arguments or name in free for name in given)


def _describe_targets(call: CallFacts, turn: TurnFacts) -> tuple[str, ...]:
    return tuple(
        text for thing in turn.things_of(call) for text in (thing.label, *thing.texts("to", "cc", "bcc", "attendees"))
    )
