"""Reads what a guarding model answers. What is not clear is no verdict: never "safe" by default."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, cast

from annabelle.core.trust import ThreatType

_SCORE: Final = re.compile(r"<score>\s*(yes|no)\s*</score>", re.IGNORECASE)
_THINKING: Final = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_OBJECT: Final = re.compile(r"\{[^{}]*\"violation\"[^{}]*\}", re.DOTALL)
_GUARD: Final = re.compile(r"^\s*(safe|unsafe)\b[\s:]*((?:S\d{1,2}[,\s]*)*)\s*$", re.IGNORECASE)
_BLOCKING: Final = frozenset({"S1", "S2", "S3", "S4", "S5", "S7", "S9", "S14"})
_GUARD_KINDS: Final[dict[str, ThreatType]] = {
    "S5": "social_engineering",
    "S7": "data_exfiltration",
    "S14": "prompt_injection",
}
_WORDS: Final[tuple[tuple[ThreatType, tuple[str, ...]], ...]] = (
    (
        "prompt_injection",
        ("prompt injection", "prompt_injection", "injected instruction", "ignore previous", "instructions"),
    ),
    ("jailbreak", ("jailbreak", "bypass", "unrestricted")),
    ("social_engineering", ("social engineering", "social_engineering", "phishing", "impersonat", "deceiv")),
    ("data_exfiltration", ("exfiltrat", "data_exfiltration", "leak", "steal", "credential", "private data")),
    ("privilege_escalation", ("privilege", "escalat", "permission", "admin")),
    ("code_execution", ("code execution", "code_execution", "execute", "shell", "script", "malware")),
    ("harmful_content", ("harmful", "violence", "weapon", "self-harm", "hate")),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A clear answer: whether it is an attack, and which kind."""

    violation: bool
    kind: ThreatType = "malicious_content"


def read_answer(text: str) -> Answer | None:
    """What the model said, in any of the forms such models have; None when it is not clear.

    A text under examination may bring verdicts of its own, and a model may repeat them: of verdicts that differ, the
    graver one holds.
    """
    spoken = _THINKING.sub("", text)
    scores = [score.lower() for score in _SCORE.findall(spoken)]
    if scores:
        return Answer(True, _kind(text)) if "yes" in scores else Answer(False)
    objects = [answer for found in _OBJECT.findall(spoken) if (answer := _from_json(found)) is not None]
    if objects:
        return next((answer for answer in objects if answer.violation), objects[0])
    guard = _GUARD.match(spoken)
    return _from_guard(guard) if guard else None


def _from_json(text: str) -> Answer | None:
    try:
        body = cast("dict[str, object]", json.loads(text))
    except ValueError:
        return None
    violation = body.get("violation")
    if violation in (0, 1):
        violation = bool(violation)
    if not isinstance(violation, bool):
        return None
    category = str(body.get("category") or "").lower().replace(" ", "_")
    return Answer(violation, _kind(category)) if violation else Answer(False)


def _from_guard(found: re.Match[str]) -> Answer:
    """Only some categories are about attacks; the others are about what may be talked of."""
    if found.group(1).lower() == "safe":
        return Answer(False)
    codes = re.findall(r"S\d{1,2}", found.group(2).upper())
    blocking = [code for code in codes if code in _BLOCKING]
    if codes and not blocking:
        return Answer(False)
    return Answer(True, _GUARD_KINDS.get(blocking[0], "harmful_content") if blocking else "malicious_content")


def _kind(text: str) -> ThreatType:
    low = text.lower()
    for kind, words in _WORDS:
        if any(word in low for word in words):
            return kind
    return "malicious_content"
