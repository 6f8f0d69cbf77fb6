"""What must hold after all the killing, judged from outside: replies, witness lines, sessions, processes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crash.plan import Turn


@dataclass
class Verdict:
    """Counts of everything that must be zero, and of what is allowed but named."""

    turns: int = 0
    lost: list[str] = field(default_factory=list)
    doubled_replies: list[str] = field(default_factory=list)
    wrong_replies: list[str] = field(default_factory=list)
    doubled_calls: list[str] = field(default_factory=list)
    silent_losses: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    bad_sessions: list[str] = field(default_factory=list)
    bad_memory: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def faults(self) -> dict[str, list[str]]:
        named = {
            "lost messages": self.lost,
            "doubled replies": self.doubled_replies,
            "wrong replies": self.wrong_replies,
            "doubled non-idempotent calls": self.doubled_calls,
            "calls neither made nor reported": self.silent_losses,
            "conversations out of order": self.out_of_order,
            "damaged sessions": self.bad_sessions,
            "turns not remembered once": self.bad_memory,
            "orphan processes": self.orphans,
        }
        return {name: found for name, found in named.items() if found}


def judge_replies(verdict: Verdict, turns: Sequence[Turn], threads: dict[int, list[dict]]) -> None:
    """Each message has one answer, and answers come in the order of the messages."""
    for conversation, messages in threads.items():
        mine = [turn for turn in turns if turn.conversation == conversation]
        replies = [m for m in messages if m["source"] != "user"]
        position = {message["id"]: index for index, message in enumerate(m for m in messages if m["source"] == "user")}
        if len(position) != len(mine):
            verdict.lost.append(f"conversation {conversation}: {len(position)} of {len(mine)} messages stored")
        answered = Counter(reply["replyTo"] for reply in replies)
        for turn, message in zip(mine, (m for m in messages if m["source"] == "user"), strict=False):
            if message["text"] != turn.text:
                verdict.out_of_order.append(f"{turn.key}: stored out of order")
            count = answered.get(message["id"], 0)
            if count == 0:
                verdict.lost.append(f"{turn.key}: no answer")
            elif count > 1:
                verdict.doubled_replies.append(f"{turn.key}: {count} answers")
        order = [position[reply["replyTo"]] for reply in replies if reply["replyTo"] in position]
        if order != sorted(order):
            verdict.out_of_order.append(f"conversation {conversation}: answers in order {order}")
        verdict.wrong_replies += [
            f"{reply['replyTo']}: {reply['source']} {reply['text'][:100]!r}"
            for reply in replies
            if reply["source"] != "agent" or not reply["text"].startswith("done ")
        ]


def judge_effects(verdict: Verdict, turns: Sequence[Turn], witness: Path, reported: dict[tuple[str, str], str]) -> None:
    """What the witness saw against what the system says of each call: done, or the code of its error."""
    lines = [json.loads(line) for line in witness.read_text().splitlines()]
    seen_calls = Counter((line["tool"], line["key"]) for line in lines)
    for turn in turns:
        if seen_calls["mark", turn.key] > 1:
            verdict.doubled_calls.append(f"{turn.key}: {seen_calls['mark', turn.key]} times")
        for tool in ("touch", "mark"):
            state, count = reported.get((tool, turn.key), "missing"), seen_calls[tool, turn.key]
            if state == "outcome_unknown":
                verdict.unknown.append(turn.key)
            elif state == "missing" or (state == "done" and count == 0):
                verdict.silent_losses.append(f"{turn.key}: {tool} happened {count} times and is reported {state}")
            elif state != "done" and tool == "mark" and count:
                verdict.silent_losses.append(f"{turn.key}: mark happened and is reported {state}")
            elif state != "done":
                verdict.refused.append(f"{turn.key}: {tool} {state}")
    for conversation in {turn.conversation for turn in turns}:
        mine = [turn.key for turn in turns if turn.conversation == conversation]
        seen = list(dict.fromkeys(line["key"] for line in lines if line["tool"] == "mark" and line["key"] in mine))
        if seen != [key for key in mine if key in seen]:
            verdict.out_of_order.append(f"conversation {conversation}: effects in order {seen}")


def judge_sessions(verdict: Verdict, turns: Sequence[Turn], sessions: dict[int, list[dict]]) -> None:
    """Every session lists every turn once, in order; `sessions` holds the raw records per conversation."""
    for conversation in {turn.conversation for turn in turns}:
        mine = [turn.text for turn in turns if turn.conversation == conversation]
        records = sessions.get(conversation, [])
        said = [record["user"] for record in records if record.get("type") == "turn"]
        if said != mine:
            verdict.bad_sessions.append(f"conversation {conversation}: {len(said)} turns recorded, {len(mine)} sent")
