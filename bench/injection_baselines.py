"""What others do about injections: a handful of plain patterns, and a packaged classifier where one is installed."""

from __future__ import annotations

import json
import re
import subprocess

PLAIN = tuple(
    re.compile(expression, re.IGNORECASE)
    for expression in (
        r"ignore (?:all )?(?:the )?(?:previous|prior|above) (?:instructions|prompts)",
        r"disregard (?:all )?(?:the )?(?:previous|prior|above)",
        r"forget (?:everything|all|your) (?:instructions|previous|above)",
        r"you are now\b",
        r"new instructions?:",
        r"system prompt",
        r"\bdo anything now\b|\bDAN\b",
        r"developer mode|jailbreak",
        r"<\|im_start\|>|\[INST\]|<<SYS>>",
        r"act as (?:an?|the) ",
        r"do not (?:tell|inform|mention)",
    )
)

_ASK_PACKAGED = """
import json, sys
from stackone_defender import create_prompt_defense
defense = create_prompt_defense(block_high_risk=True)
defense.warmup_tier2()
for line in sys.stdin:
    found = defense.defend_tool_result(json.loads(line), "tool")
    print(json.dumps([found.tier2_score or 0.0, not found.allowed]), flush=True)
"""


def plain_score(text: str) -> float:
    """How many of the plain patterns are found."""
    return float(sum(bool(pattern.search(text)) for pattern in PLAIN))


def packaged_scores(python: str, texts: list[str]) -> list[tuple[float, bool]]:
    """Score and verdict of the packaged classifier that is installed for another interpreter."""
    lines = "\n".join(json.dumps(text) for text in texts)
    done = subprocess.run(
        [python, "-c", _ASK_PACKAGED], input=lines, capture_output=True, text=True, check=True, timeout=3_000
    )
    return [(float(score), bool(blocked)) for score, blocked in map(json.loads, done.stdout.splitlines())]
