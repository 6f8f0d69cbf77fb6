"""`make crash`: turns keep coming while processes are killed, at named points and at random; none is lost or doubled.

    make crash ARGS="--turns 200 --engine sqlite"

First only thinkers die (no outcome may be unknown then), then everything does. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from annabelle.core.jsonl import load_records
from annabelle.hub.failpoints import FAILPOINTS as HUB_POINTS
from annabelle.servers.kit.server import FAILPOINTS as SERVER_POINTS
from annabelle.thinker.failpoints import FAILPOINTS as THINKER_POINTS
from annabelle.toolbox.middleware.record import FAILPOINTS as TOOLBOX_POINTS
from crash.plan import Kill, Target, Turn, kills, turns
from crash.remembered import judge_memory, wait_until_stored
from crash.system import System
from crash.verdict import Verdict, judge_effects, judge_replies, judge_sessions
from support.postgres import connect, postgres_database, session_records
from support.reaper import Reaper
from support.scripted_model import ScriptedServer
from support.timing import seconds
from support.warm_process import TEMPLATE

POINTS = (*THINKER_POINTS, *HUB_POINTS, *TOOLBOX_POINTS, *SERVER_POINTS)
# A turn whose two calls are slowed by deaths takes a few seconds; one that needs this long hangs.
TURN_SECONDS = 120
# The hub gives up a message whose thinker dies twenty times without progress, so the kills pause after this many.
DEATHS_IN_A_ROW = 5


class Run:
    """One attack: sends the turns, deals the kills, waits until everything is answered."""

    def __init__(self, system: System, planned: list[Turn], seed: int) -> None:
        self._system, self._chance = system, random.Random(seed)
        self.turns = planned
        self._conversations = 1 + max(turn.conversation for turn in planned)
        self._sent = 0
        self._messages: dict[int, str] = {}
        self._open: list[str] = []
        self.threads: dict[int, str] = {}
        self.dealt: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.call_hits = 0

    def _send(self, count: int) -> None:
        while len(self.turns) < self._sent + count:  # a point that was not reached in time needs one turn more
            self.turns.append(Turn(len(self.turns), len(self.turns) % self._conversations))
        for turn in self.turns[self._sent : self._sent + count]:
            body = {
                "text": turn.text, "channel": "http", "chatId": f"chat-{turn.conversation}", "externalId": turn.key,
            }  # fmt: skip
            answer = self._system.insist("POST", "/message", body)
            self._messages[turn.number] = answer["messageId"]
            self._open.append(answer["messageId"])
            self.threads[turn.conversation] = answer["threadId"]
        self._sent += max(0, count)

    def attack(self, dealt: list[Kill], until: int) -> None:
        """Deal these kills while the turns up to `until` are sent, as evenly as they come."""
        first = self._sent
        for index, kill in enumerate(dealt):
            due = first + round((until - first) * (index + 1) / len(dealt))
            self._deal(kill, max(1, due - self._sent) if due > self._sent else 0)
            self._system.expect_running()
            print(f"{index + 1}/{len(dealt)} {kill}: {self._sent} turns sent", file=sys.stderr, flush=True)
            if (index + 1) % DEATHS_IN_A_ROW == 0:
                self.wait_answered()
        self._send(max(0, until - self._sent))

    def _deal(self, kill: Kill, to_send: int) -> None:
        if kill.failpoint is not None:
            armed = self._system.failpoints / kill.failpoint
            armed.touch()
            self._send(to_send)
            self._settle(lambda: not armed.exists(), 60, nudge=True)
            hit = not armed.exists()
            armed.unlink(missing_ok=True)
        else:
            self._send(to_send)
            time.sleep(self._chance.uniform(0, 0.25))
            hit = self._system.kill_one(kill.target, self._chance, timeout=4)
            if not hit:  # no thinker runs while nobody speaks
                self._send(1)
                hit = self._system.kill_one(kill.target, self._chance)
        (self.dealt if hit else self.missed)[str(kill)] += 1
        if hit and kill.target != "thinker":
            self.call_hits += 1
        if hit and kill.target == "hub":
            self._settle(lambda: not self._system.orphans(), 10)
            self._system.wait_ready()

    def _settle(self, condition, timeout: float, nudge: bool = False) -> bool:
        """Wait for a condition; a failpoint may need one more turn to be reached, so one is sent now and then."""
        deadline, next_nudge = time.monotonic() + seconds(timeout), time.monotonic() + seconds(4)
        while time.monotonic() < deadline:
            if condition():
                return True
            if nudge and time.monotonic() > next_nudge:
                self._system.expect_running()
                for message in self._open:
                    expect_no_defect(self._system.insist("GET", f"/messages/{message}"))
                self._send(1)
                next_nudge = time.monotonic() + seconds(4)
            time.sleep(0.02)
        return False

    def wait_answered(self) -> None:
        """Until every sent message has its answer. Raises as soon as one gets none while nothing is killed."""
        deadline = time.monotonic() + seconds(TURN_SECONDS)
        while self._open:
            answer = self._system.insist("GET", f"/messages/{self._open[0]}?wait=5")
            if answer["state"] in ("done", "failed"):
                expect_no_defect(answer)
                self._open.pop(0)
                deadline = time.monotonic() + seconds(TURN_SECONDS)
                continue
            self._system.expect_running()
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"the turn {self._open[0]} is {answer['state']} and does not end; {len(self._open)} wait"
                )

    def messages(self) -> dict[int, list[dict]]:
        return {
            conversation: [line for line in listed["messages"] if line["type"] == "text"]
            for conversation, thread in self.threads.items()
            for listed in [self._system.insist("GET", f"/threads/{thread}/messages?limit=1000")]
        }

    def reported(self) -> dict[tuple[str, str], str]:
        """What the system itself says of each call, by tool and key: done, or the code of its error."""
        states: dict[tuple[str, str], str] = {}
        for turn in self.turns[: self._sent]:
            events = self._system.insist("GET", f"/messages/{self._messages[turn.number]}/events")["events"]
            for event in events:
                if event["type"] == "tool_complete":
                    tool, error = event["data"]["name"].removeprefix("witness_"), event["data"].get("error")
                    states[tool, turn.key] = error["code"] if error else "done"
        return states


def expect_no_defect(answer: dict) -> None:
    """Raise where a turn failed of a defect and not of a kill: every one after it would."""
    reply = answer.get("reply") or {}
    if (reply.get("metadata") or {}).get("error", {}).get("code") == "internal_error":
        raise AssertionError(f"the turn {answer['messageId']} failed: {reply['text']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--conversations", type=int, default=8)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--database", default="", help="this empty one of PostgreSQL, which is started without it")
    parser.add_argument("--per-failpoint", type=int, default=3)
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failpoints", default="", help="only these, comma separated")
    parser.add_argument("--keep", type=Path, default=None, help="work in this folder and leave it there")
    asked = parser.parse_args()
    if __name__ != "__main__":
        TEMPLATE.start_forked()
    reaper = Reaper()
    reaper.start()
    with ExitStack() as stack:
        stack.callback(reaper.stop)
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        database = asked.database or (stack.enter_context(postgres_database()) if asked.engine == "postgres" else None)
        model = stack.enter_context(ScriptedServer())
        system = System(folder, model.openai_url, database)
        stack.callback(system.end)
        try:
            return attack(asked, system, database)
        except AssertionError as error:
            faults = {"cut short": [str(error)]}
            print(json.dumps({"name": "crash", "engine": asked.engine, "faults": faults, "ok": False}))
            return 1


def attack(asked: argparse.Namespace, system: System, database: str | None) -> int:
    planned = turns(asked.turns, asked.conversations)
    points = list(filter(None, asked.failpoints.split(","))) or POINTS
    thinker_points = [point for point in points if point in THINKER_POINTS]
    other_points = [point for point in points if point not in THINKER_POINTS]
    thinkers_first = kills(thinker_points, asked.per_failpoint, asked.random // 4, asked.seed, ["thinker"])
    the_rest = asked.random - asked.random // 4
    targets: list[Target] = ["hub", "server", "thinker", "forkserver"]
    everything = kills(other_points, asked.per_failpoint, the_rest, asked.seed, targets)
    began = time.monotonic()
    system.start()
    run = Run(system, planned, asked.seed)
    share = len(thinkers_first) / max(1, len(thinkers_first) + len(everything))
    run.attack(thinkers_first, round(asked.turns * share))
    run.wait_answered()
    unknown_after_thinkers = [key for (_, key), state in run.reported().items() if state == "outcome_unknown"]
    run.attack(everything, asked.turns)
    run.wait_answered()
    verdict = Verdict(turns=len(planned))
    messages, reported = run.messages(), run.reported()
    sessions = read_sessions(system, run.threads, database)
    if waiting := wait_until_stored(system.home, database, 120):
        verdict.bad_memory.append(f"{waiting} turns were not handed to the memory in time")
    judge_memory(verdict, system.home, database, run.threads, messages)
    exit_code = system.stop()
    deadline = time.monotonic() + seconds(5)
    while system.orphans() and time.monotonic() < deadline:
        time.sleep(0.05)
    verdict.orphans = system.orphans()
    judge_replies(verdict, planned, messages)
    judge_effects(verdict, planned, system.witness, reported)
    judge_sessions(verdict, planned, sessions)
    faults = dict(verdict.faults)
    if unknown_after_thinkers:
        faults["unknown outcomes although only thinkers died"] = unknown_after_thinkers
    if len(verdict.unknown) > run.call_hits:
        faults["more unknown outcomes than kills"] = verdict.unknown
    if run.missed and asked.per_failpoint:
        missed = {name: n for name, n in run.missed.items() if not name.startswith("random")}
        if missed:
            faults["failpoints that were never reached"] = [f"{name}: {n}" for name, n in missed.items()]
    if exit_code != 0:
        faults["hub's exit code"] = [str(exit_code)]
    summary = {
        "name": "crash", "engine": asked.engine, "turns": len(planned), "conversations": asked.conversations,
        "seconds": round(time.monotonic() - began), "kills": sum(run.dealt.values()),
        "dealt": dict(sorted(run.dealt.items())),
        "missed": dict(run.missed), "hub_starts": system.starts, "unknown_outcomes": verdict.unknown,
        "reported_as_failed": verdict.refused,
        "unknown_when_only_thinkers_died": len(unknown_after_thinkers), "faults": faults, "ok": not faults,
    }  # fmt: skip
    print(json.dumps(summary))
    return 0 if not faults else 1


def read_sessions(system: System, threads: dict[int, str], database: str | None) -> dict[int, list[dict]]:
    if database is None:
        files = {path.stem: path for path in system.home.glob("agents/*/sessions/*.jsonl")}
        return {
            conversation: load_records(files[thread]) if thread in files else []
            for conversation, thread in threads.items()
        }
    with connect(database) as connection:
        return {conversation: session_records(connection, thread) for conversation, thread in threads.items()}


if __name__ == "__main__":
    sys.exit(main())
