"""Running code needs no question before foreign content was seen. After that it takes an order, code that does not
stand in that content, and a room of its own: the sandbox has no network, and without a folder of the person's there is
nothing in it to read, change or give away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.naming import plain
from annabelle.policy.tools.nouns import mentions

_TELLING: Final = 8
_FENCED: Final = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_RUN_IT: Final = re.compile(
    r"\b(?:run|execute|try|test|start|führe?|ausführen|starte|exécute|lance|ejecuta|corre|uruchom|wykonaj)\b"
)


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    lines = [line for code in call.values(call.traits.code) for line in map(plain, code.splitlines()) if line]
    ordered = _ordered(call, turn)
    if ordered and lines and (all(line in turn.now.text for line in lines) or _handed_over(lines, turn)):
        return  # the person's own code, word for word
    if turn.suspicious or turn.pried or not ordered or not _is_alone(call):
        yield "this would run code that you did not write"
        return
    given = plain(turn.words)
    if any(len(line) >= _TELLING and (turn.seen.others_wrote(line) or line in given) for line in lines):
        yield "the code stands in that content"


def _handed_over(lines: list[str], turn: TurnFacts) -> bool:
    """Whether these are the lines of a block of code in the message, and the message says to run it."""
    if _RUN_IT.search(turn.own_words.casefold()) is None:
        return False
    given = {plain(line) for block in _FENCED.findall(turn.words) for line in block.splitlines()}
    return all(line in given for line in lines)


def _is_alone(call: CallFacts) -> bool:
    """Whether the code gets nothing of the person's to see: no folder, no session that may have one, nothing kept."""
    return isinstance(call.arguments.get("code"), str) and not any(
        call.arguments.get(name) for name in ("working_dir", "session_id", "args", "name")
    )


def _ordered(call: CallFacts, turn: TurnFacts) -> bool:
    """What is only kept or fetched needs more than an order to keep or fetch something."""
    traits = call.traits
    if traits.wants == ("run",) and "code" not in traits.code:
        return "run" in turn.orders  # a kept script is named in passing, too
    if turn.wants(traits.wants, traits.about):
        return True
    spoken_of = "run" in turn.orders or (bool(turn.ordered) and mentions(turn.own_words, traits.about))
    return "run" in traits.wants and spoken_of
