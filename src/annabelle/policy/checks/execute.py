"""Reasons to ask before code runs, or before Annabelle's own behaviour changes (I-13)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.person_words import normalize_text
from annabelle.policy.provenance import is_backed
from annabelle.policy.recipients import find_unnamed
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.policy.vocabulary import mentions_any

_TELLING: Final = 8
_FENCED: Final = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_RUN_IT: Final = re.compile(
    r"\b(?:run|execute|try|test|start|führe?|ausführen|starte|exécute|lance|ejecuta|corre|uruchom|wykonaj)\b"
)


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    lines = [line for code in call.values(call.traits.code) for line in map(normalize_text, code.splitlines()) if line]
    ordered = _is_ordered(call, turn)
    if ordered and lines and (all(line in turn.said_now.text for line in lines) or _is_pasted_code(lines, turn)):
        return  # the person's own code, word for word
    if turn.suspicious or turn.unsolicited_read or not ordered or not _is_isolated(call):
        yield "this would run code that you did not write"
        return
    given = normalize_text(turn.words)
    if any(len(line) >= _TELLING and (turn.seen.others_wrote(line) or line in given) for line in lines):
        yield "the code stands in that content"


def _is_pasted_code(lines: list[str], turn: TurnFacts) -> bool:
    """Whether the lines come from a code block in the message, and the message says to run it."""
    if _RUN_IT.search(turn.own_words.casefold()) is None:
        return False
    given = {normalize_text(line) for block in _FENCED.findall(turn.words) for line in block.splitlines()}
    return all(line in given for line in lines)


def _is_isolated(call: CallFacts) -> bool:
    """Whether the code can reach none of the person's data: no folder, session, arguments or saved script."""
    return isinstance(call.arguments.get("code"), str) and not any(
        call.arguments.get(name) for name in ("working_dir", "session_id", "args", "name")
    )


def _is_ordered(call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the person ordered this. Saving or fetching code takes more than an order to save or fetch something."""
    traits = call.traits
    if traits.wants == ("run",) and "code" not in traits.code:
        return "run" in turn.order_kinds  # a saved script may also be named in passing
    if turn.wants(traits.wants, traits.about):
        return True
    spoken_of = "run" in turn.order_kinds or (bool(turn.all_orders) and mentions_any(turn.own_words, traits.about))
    return "run" in traits.wants and spoken_of


_WANTED: Final[tuple[ActionKind, ...]] = ("control", "update", "create", "remember", "schedule", "delete", "transfer")
_FEW: Final = 3


def reasons_to_ask_for_control(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    ordered = bool(set(traits.wants or _WANTED) & turn.order_kinds)
    values = list(call.values(traits.values))
    theirs = bool(values) and is_backed(values, [turn.own_words])
    # Recombined words can say anything, but a page address written out in full is unambiguous.
    written_out = ordered and bool(values) and all(turn.said_now.names_page(value) for value in values)
    written_out |= turn.wants(traits.wants, traits.about) and all(_is_short(value, turn) for value in values)
    if turn.tainted and (turn.suspicious or not (theirs and ordered) or (turn.tainted_now and not written_out)):
        yield "this would change how Annabelle works, or what it lets through"
    elif not (ordered or theirs):
        yield "you did not ask for this change of how Annabelle works"
    for receiver in find_unnamed(call.values(traits.to), turn, traits.wants or _WANTED):
        yield f"you did not name {receiver}"


def _is_short(value: str, turn: TurnFacts) -> bool:
    """A few words exactly as the person wrote them, such as a name, a town or a job."""
    return len(value.split()) <= _FEW and turn.said_now.contains(value)
