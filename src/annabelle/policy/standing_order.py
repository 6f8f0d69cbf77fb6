"""What a skill would be ordered to do by itself, read once when it is made and shown in full (POL-09)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.text import escape_invisible_json
from annabelle.core.tools import JsonObject
from annabelle.policy.intent.orders import orders_in
from annabelle.policy.person_words import PersonWords
from annabelle.policy.rules.rule import collect_texts
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten

_EVENTS: Final = ("keywords", "memory")
_WORDS: Final = ("description", "instructions")
_SPOKEN_TIMES: Final = ("when", "in_minutes", "in_hours")
_REMINDER: Final = frozenset({"skill_id", "message", "name", *_SPOKEN_TIMES})
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """What counts as the person's words in the runs of a skill, and what bounds them."""

    tools: tuple[str, ...]
    orders: tuple[str, ...]
    receivers: tuple[str, ...]
    files: tuple[str, ...]
    pages: tuple[str, ...]
    token_budget: int | None

    def describe(self) -> str:
        """Everything it may do, in one line."""
        parts = {
            "tools": self.tools,
            "orders": [f"“{words}”" for words in self.orders],
            "receivers": self.receivers,
            "files": self.files,
            "pages": self.pages,
            "tokens a run": [f"{self.token_budget:,}"] if self.token_budget else (),
        }
        return "; ".join(f"{name}: {', '.join(values)}" for name, values in parts.items() if values)

    def to_json(self) -> JsonObject:
        return {
            "tools": list(self.tools),
            "orders": list(self.orders),
            "receivers": list(self.receivers),
            "files": list(self.files),
            "pages": list(self.pages),
            "token_budget": self.token_budget,
        }


def read_standing_order(
    instructions: str, tools: Iterable[str], plan: JsonObject | None = None, token_budget: int | None = None
) -> StandingOrder:
    """The orders in the instructions as policy reads them in each run, or the one call of a plan as it is."""
    words = PersonWords([instructions if plan is None else "\n".join(collect_texts(plan.get("arguments")))])
    called = () if plan is None else (f"{plan['tool']} {escape_invisible_json(plan.get('arguments'))}",)
    return StandingOrder(
        tools=tuple(dict.fromkeys(tool for tool in (*tools, *([str(plan["tool"])] if plan else ())) if tool)),
        orders=called or tuple(order.words for order in orders_in(instructions)),
        receivers=tuple(sorted(words.addresses)),
        files=tuple(sorted(words.files)),
        pages=tuple(sorted(words.pages)),
        token_budget=token_budget,
    )


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """What runs by itself is asked about, always, with all it would order.

    A reminder at a time is its own confirmation; once foreign content was read, only if the person said that time.
    """
    given = call.arguments
    if not call.traits.standing:
        return
    config = given.get("trigger_config")
    times = {**given, **(cast("JsonObject", config) if isinstance(config, dict) else {})}
    events = [name for name in _EVENTS if times.get(name)]
    told = [name for name in call.traits.standing if given.get(name)]
    if events or (told and not (given.get("message") and told == ["instructions"])):
        order = _read(given, events, times)
        yield "it would run by itself from then on" + (f", and your yes is for all of this: {order}" if order else "")
    elif turn.tainted and given.get("message"):
        said = _words(turn.own_words)
        unsaid = [text for name in _SPOKEN_TIMES for text in collect_texts(given.get(name)) if _words(text) - said]
        # A schedule in signs can mean more than the words in it.
        others = (value for name, value in given.items() if name not in _REMINDER)
        unsaid += [text for value in others for text in collect_texts(value)]
        yield from (f"you did not say {shorten(text)}" for text in unsaid)


def _read(given: JsonObject, events: Sequence[str], times: JsonObject) -> str:
    plan, look = given.get("execution_plan"), given.get("preflight")
    steps = [cast("JsonObject", one) for one in cast("list[object]", plan) if isinstance(one, dict)] if plan else []
    only = steps[0] if len(steps) == 1 else None
    preflight = str(cast("JsonObject", look).get("tool")) if isinstance(look, dict) else ""
    words = "\n".join(str(given[name]) for name in _WORDS if given.get(name)) or str(given.get("message") or "")
    named = [*collect_texts(given.get("required_tools")), *collect_texts(given.get("tools"))]
    order = read_standing_order(
        words,
        [*named, *(str(step.get("toolName")) for step in steps), preflight],
        None if only is None else {"tool": only.get("toolName"), "arguments": only.get("parameters")},
        cast("int | None", given.get("token_budget")),
    )
    check_in = escape_invisible_json(given["check_in"]) if given.get("check_in") else ""
    listed = [
        order.describe(),
        f"check-in: {check_in}" if check_in else "",
        *(f"{name}: {', '.join(collect_texts(times[name]))}" for name in events),
    ]
    return "; ".join(filter(None, listed))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
