"""The decision on one call of an agent. Pure: the same facts always give the same answer (POL-02, POL-04).

A person's rules come first. Then one idea protects them: content gives no orders. What goes out, destroys, executes or
changes who Annabelle is needs the person's own words behind it, this turn's order and the very name of whom or what it
is about; else they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from annabelle.core.trust import Decision, Label, ToolClass
from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds import (
    browsing,
    calendars,
    controlling,
    counting,
    destroying,
    executing,
    sending,
    ways_out,
    writing,
)
from annabelle.policy.grounds.why import doubt, short
from annabelle.policy.pointing import pried, unnamed_items
from annabelle.policy.rules.rule import Rule, RuledCall, matches

_SHOWN: Final = 2
_MOST_VALUES: Final = 300
_MOST_CHARS: Final = 30_000
_GROUNDS: Final[dict[ToolClass, Callable[[CallFacts, TurnFacts], Iterator[str]]]] = {
    "destroy": destroying.doubts,
    "execute": executing.doubts,
    "control": controlling.doubts,
    "write_inside": writing.doubts,
}


def decide(call: CallFacts, turn: TurnFacts, rules: Sequence[Rule] = ()) -> Decision:
    """Allow, ask or refuse, with the reasons for the person and what is known of whatever comes back."""
    labels = labels_of(call, turn)
    ruled = RuledCall(call.tool, call.classes, call.arguments, _about(call, turn) if rules else ())
    fitting = [rule for rule in rules if matches(rule, ruled)]
    for kind in ("never", "ask"):
        said = [f"Your rule says: {rule.words}" for rule in fitting if rule.kind == kind]
        if said:
            verdict = "refuse" if kind == "never" else "ask"
            return Decision(verdict=verdict, reasons=tuple(said[:_SHOWN]), classes=call.classes, labels=labels)
    doubts = list(dict.fromkeys(_doubts(call, turn)))
    allowed = not turn.suspicious and any(rule.kind == "allow" and _covers(rule, call) for rule in fitting)
    if not doubts or allowed:
        return Decision(classes=call.classes, labels=labels)
    reasons = [doubt(turn, " and ".join(doubts[:_SHOWN]))]
    return Decision(verdict="ask", reasons=tuple(reasons), classes=call.classes, labels=labels)


def labels_of(call: CallFacts, turn: TurnFacts) -> tuple[Label, ...]:
    """What is known of the result before it is there."""
    found: list[Label] = []
    if call.traits.private or "read_private" in call.classes:
        found.append("private")
    if pried(call, turn):
        found.append("pried")
    return tuple(found)


def needs_facts(call: CallFacts) -> bool:
    """Whether anything depends on the turn at all: a clock is asked without a look at it."""
    return bool(call.classes or call.traits.urls or call.traits.queries)


def _doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if call.classes and _is_too_much(call):
        yield "it is about more than can be looked at"
        return
    if "send_outside" in call.classes:
        on_a_page = call.traits.refs or call.traits.typed or call.traits.source == "web"
        yield from (browsing if on_a_page else sending).doubts(call, turn)
    for one in call.classes:
        if one in _GROUNDS:
            yield from _GROUNDS[one](call, turn)
    if unnamed := unnamed_items(call, turn):
        yield from (f"you did not name “{short(title)}” of your vault" for title in unnamed)
    elif call.traits.source == "vault" and pried(call, turn):
        yield "you did not speak of what is in the vault"
    yield from calendars.doubts(call, turn)
    yield from counting.doubts(call, turn)
    yield from ways_out.doubts(call, turn)


def _is_too_much(call: CallFacts) -> bool:
    """Whether nobody could have named all of it one by one."""
    traits = call.traits
    values = [*call.values((*traits.to, *traits.of, *traits.files, *traits.paths, *traits.urls))]
    return len(values) > _MOST_VALUES or sum(map(len, values)) > _MOST_CHARS


def _covers(rule: Rule, call: CallFacts) -> bool:
    """Whether an allowance speaks of everyone and everything this call is about: what it leaves open is not allowed.

    Only what is said is free, and that only in tools we know: an update of another's may bring a hidden recipient.
    """
    traits = call.traits
    telling = {*traits.to, *traits.of, *traits.paths, *traits.files, *traits.urls, *traits.code, *traits.values}
    free = set(traits.payload) - telling if traits.known else set[str]()
    given = (name for name, value in call.arguments.items() if value not in (None, "", [], {}))
    return bool(rule.match.tools) and all(name in rule.match.arguments or name in free for name in given)


def _about(call: CallFacts, turn: TurnFacts) -> tuple[str, ...]:
    return tuple(
        text for thing in turn.things_of(call) for text in (thing.label, *thing.texts("to", "cc", "bcc", "attendees"))
    )
