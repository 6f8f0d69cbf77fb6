"""What "always" means: the narrowest rule that lets this kind of call pass, shown before it is made (POL-05)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from annabelle.core.redact import MASK
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.visible import visible_data
from annabelle.policy.rules.rule import Match, exactly, texts_of
from annabelle.policy.tools.traits import Traits

_NEVER = frozenset({"execute", "control"})
"""What such a call does depends on more than its arguments, or changes what is allowed at all."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How the rule reads, and which calls it is about."""

    words: str
    match: JsonObject


def allowance_for(tool: ToolSpec, traits: Traits, arguments: JsonObject, agent_id: str) -> Allowance | None:
    """The rule for calls like this one: where it goes and what it touches stay exactly so, what it says is free.

    What was not given must not be given either: a hidden copy to somebody else is another call. Of a tool that nobody
    reviewed everything stays exactly so.
    """
    if _NEVER & set(traits.classes_of(arguments)):
        return None
    known = cast("JsonObject", tool.input_schema.get("properties", {}))
    free = set(traits.payload) & known.keys() if traits.known else set[str]()
    fixed = {name: arguments.get(name) for name in {**known, **arguments} if name not in free}
    if not any(texts_of(value) for value in fixed.values()) or not all(map(_plain, fixed.values())):
        return None
    globs = {name: tuple(map(exactly, texts_of(value))) for name, value in fixed.items()}
    given = [f"{name} = {visible_data(value)}" for name, value in fixed.items() if texts_of(value)]
    rest = f"; {', '.join(sorted(free))} may be anything." if free else ", and nothing else."
    words = f"Always let {agent_id} call {tool.name} with {', '.join(given)}{rest}"
    return Allowance(words, Match(tools=(exactly(tool.name),), arguments=globs).model_dump(mode="json"))


def _plain(value: object) -> bool:
    """Whether a rule can hold the value: inside an object the same texts may mean something else."""
    if isinstance(value, dict):
        return False
    if isinstance(value, list | tuple):
        return all(map(_plain, cast("list[object]", value)))
    return MASK not in str(value)
