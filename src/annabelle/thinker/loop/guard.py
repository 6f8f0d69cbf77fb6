"""Holds what an answer claims against what was done, and says so where the two differ (LOOP-05, TRU-04)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.intent.ordered import ordered
from annabelle.thinker.loop.claims import Claim, claims_in
from annabelle.thinker.loop.deeds import Deed, backs, reads_only
from annabelle.toolbox.ranking.words import bounded

_NOTHING: Final[dict[ActionKind, str]] = {
    "send": "no message was sent",
    "create": "nothing was created",
    "update": "nothing was changed",
    "delete": "nothing was deleted",
    "schedule": "nothing was scheduled",
    "remember": "nothing was saved",
    "transfer": "nothing was downloaded, uploaded or installed",
    "pay": "nothing was paid or ordered",
    "run": "nothing was run",
    "control": "nothing was switched",
    "search": "nothing was looked up",
    "done": "nothing was changed",
}
_ADMITS_DOUBT: Final = re.compile(
    r"not (?:known|clear|certain|sure)|unknown|unclear|uncertain|unsure|may(?: or may not)? have|might(?: not)? have|"
    r"can(?:'t|not| not) (?:confirm|say|tell|be sure)|could not (?:confirm|verify)|unbekannt|unklar|"
    r"nicht (?:sicher|bekannt)|inconnu|pas (?:sûr|certain)|desconocid|no (?:es seguro|sé si)|nie wiadomo",
    re.IGNORECASE,
)
_REFUSES: Final = re.compile(
    r"\b(?:don't|do not|can't|cannot|can not|(?:am|'m) (?:unable|not able) to|won't be able to)\b.{0,40}"
    r"\b(?:access|provide|get|fetch|retrieve|browse|search|look up|check)\b.{0,60}"
    r"\b(?:real-?time|current|live|up-to-date|today's|latest|internet|web|online|news|weather)\b"
    r"|\b(?:internet|web|search|tools?)\b.{0,30}\b(?:is|are) (?:currently |not )(?:un)?available\b",
    re.IGNORECASE,
)
_FINDING: Final = re.compile(r"(?:^|_)(?:search|web|fetch|news|weather|browse|browser|navigate|look)(?:_|$)")


@dataclass(frozen=True, slots=True)
class Checked:
    """A claim, and the tool whose call bears it out."""

    claim: Claim
    backed_by: str | None


def check(text: str, asked: str, deeds: Sequence[Deed], earlier: Iterable[str] = ()) -> list[Checked]:
    """Every claim of an answer with what backs it: a call of this turn, or of an earlier one it speaks of."""
    read = any(deed.reads_only and deed.outcome == "done" for deed in deeds)
    nothing_to_do = not ordered(bounded(asked)) - {"search"}
    checked: list[Checked] = []
    for claim in claims_in(text, asked, read_something=read):
        by = next((deed.tool for deed in deeds if deed.backs(claim.kind)), None)
        if by is None and claim.kind == "done" and nothing_to_do:
            # Who asked for nothing but an answer is told `done` about the looking up.
            by = next((deed.tool for deed in deeds if deed.outcome == "done"), None)
        if by is None and claim.of_the_past:
            by = next((tool for tool in earlier if backs(tool, claim.kind, reads_only=reads_only(tool, None))), None)
        checked.append(Checked(claim, by))
    return checked


def unbacked(checked: Iterable[Checked]) -> list[Claim]:
    return [one.claim for one in checked if one.backed_by is None]


def refuses(text: str, tools: Iterable[str]) -> bool:
    """Whether an answer says it can not look something up although there is a tool for it."""
    return _REFUSES.search(text[:1000].replace("’", "'")) is not None and any(_FINDING.search(name) for name in tools)


def failure(claims: Iterable[Claim]) -> str:
    """What stands in place of an answer that claimed what nobody did."""
    return f"I have not done that: {_listed(claims)}. Please ask me again, or say how it should be done."


def correction(claims: Iterable[Claim]) -> str:
    """The line under an answer that claims more than was done."""
    return f"Note: {_listed(claims)} in this turn."


def doubt(text: str, deeds: Iterable[Deed]) -> str:
    """The line under an answer that is sure of what nobody knows; empty when there is no need for one."""
    tools = dict.fromkeys(deed.tool for deed in deeds if deed.outcome == "unknown")
    if not tools or _ADMITS_DOUBT.search(text.replace("’", "'")):
        return ""
    return f"Note: it is not known whether {' and '.join(tools)} took effect. Please check before you ask for it again."


def reminder(claims: Sequence[Claim]) -> str:
    """What the model is told before its second try."""
    if not claims:
        return "(You were given a tool that can find this out. Use it before you answer.)"
    return (
        f"(Check of your draft, which the user has not seen: in this turn {_listed(claims)}. Do it now with the tool "
        "for it, or answer again and say plainly what was done and what was not.)"
    )


def _listed(claims: Iterable[Claim]) -> str:
    return " and ".join(dict.fromkeys(_NOTHING[claim.kind] for claim in claims))
