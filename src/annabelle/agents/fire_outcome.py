"""How a fire ends, and what follows from it: the person is told, failures are tried again, one-shots are over.

All of it happens in the transaction that stores the outcome, so each fire has exactly one (SKL-04, SKL-08, SKL-11). A
run by a model is a message in a thread of its own, whose turn ends the fire (SKL-03, POL-09).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from sqlalchemy import Connection

from annabelle.agents.check_in import comes_again, move_heartbeat
from annabelle.agents.kind import EndedTurn
from annabelle.core.contract import TurnResult
from annabelle.core.errors import (
    AgentPaused,
    AgentStopped,
    ErrorBody,
    ModelTooSmall,
    OutcomeUnknown,
    TurnCancelled,
)
from annabelle.core.messages import StoredEvent
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.core.trust import Trust
from annabelle.policy.provenance import trust_after
from annabelle.skills.due import retry_after
from annabelle.skills.schedule import OneMoment, read_schedule
from annabelle.skills.skill_input import SAY
from annabelle.store import goals, skills, tool_calls
from annabelle.store.messages import StoredMessage
from annabelle.store.outbox import post
from annabelle.store.skills import StoredFire, StoredSkill

_TOLD_CHARS: Final = 4_000
_SILENT: Final = ErrorBody(code="internal_error", message="The run failed without saying why.")
_EndState = Literal["finished", "failed", "skipped", "unknown"]
_NO_FAILURES: Final[dict[str, _EndState]] = {
    OutcomeUnknown.code: "unknown",
    # A person or their budget stopped it.
    AgentPaused.code: "skipped",
    AgentStopped.code: "skipped",
    TurnCancelled.code: "skipped",
    # It comes again until a person chooses another model.
    ModelTooSmall.code: "skipped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FireOutcome:
    """What came of a fire."""

    state: _EndState
    text: str = ""
    trust: Trust = "trusted"
    told: bool = True
    """Whether the person hears of it, where the skill tells at all."""
    code: str = ""
    """Of the error that ended it."""

    @classmethod
    def from_call(cls, result: ToolResult) -> FireOutcome:
        if result.error is not None and result.error.code in _NO_FAILURES:
            return cls.from_error(result.error)
        state = "failed" if result.is_error else "finished"
        return cls(state=state, text=result.for_person, trust=result.trust)

    @classmethod
    def from_turn(cls, conn: Connection, message: StoredMessage, result: TurnResult) -> FireOutcome:
        if not result.success:
            return cls.from_error(result.error or _SILENT)
        trust = trust_after(tool_calls.list_untrusted_tools(conn, message.id))
        return cls(state="finished", text="" if result.sent_by_tool else result.text, trust=trust)

    @classmethod
    def from_error(cls, error: ErrorBody) -> FireOutcome:
        state = _NO_FAILURES.get(error.code, "failed")
        return cls(state=state, text=error.for_person, told=state != "skipped", code=error.code)


def is_reminder(skill: StoredSkill) -> bool:
    return skill.plan is not None and skill.plan["tool"] == SAY


def end_fire(conn: Connection, fire: StoredFire, outcome: FireOutcome, at: datetime) -> list[StoredEvent]:
    """Store the outcome and what follows from it. A fire that has ended is left as it is."""
    kept: JsonObject = {"text": outcome.text[:_TOLD_CHARS], "trust": outcome.trust}
    skill = skills.load_skill(conn, fire.skill_id)
    state = "skipped" if skill is None and outcome.state == "failed" else outcome.state
    if not skills.finish_fire(conn, fire.id, state, kept, at) or skill is None:
        return []
    if state == "failed":
        return _try_again(conn, skill, fire, outcome, at)
    once = isinstance(read_schedule(skill.trigger), OneMoment) and skill.next_due is None
    over = once and not comes_again(skill) and not fire.by_hand
    skills.change_skill(conn, skill.id, {"failures": 0} | ({"enabled": False} if over else {}))
    goal = None if skill.goal_id is None else goals.find_goal(conn, skill.goal_id)
    if goal is not None:
        move_heartbeat(conn, goal, at)
    if state == "unknown":  # it may have happened, so it is not tried again
        return tell(conn, skill, f"“{skill.name}” was interrupted: {outcome.text}", fire.id)
    if outcome.code == ModelTooSmall.code:  # it is so for every skill, and told once in a chat
        return post(conn, skill.thread_id, outcome.text, f"{ModelTooSmall.code}:{skill.thread_id}")
    if state == "skipped":
        told = outcome.told or (outcome.code == AgentPaused.code and skill.comes_once)  # it is waited for
        return tell(conn, skill, f"“{skill.name}” was not done. {outcome.text}", fire.id) if told else []
    return [] if is_reminder(skill) else _tell_result(conn, skill, fire, outcome, at)


def tell(conn: Connection, skill: StoredSkill, text: str, key: str, **about: object) -> list[StoredEvent]:
    return post(conn, skill.thread_id, text, f"skill:{skill.id}:{key}", {"skill_id": skill.id, **about})


def _try_again(
    conn: Connection, skill: StoredSkill, fire: StoredFire, outcome: FireOutcome, at: datetime
) -> list[StoredEvent]:
    """Later, and the fifth failure in a row switches it off (SKL-04). What was run by hand or by an event is not."""
    words = outcome.text
    schedule = read_schedule(skill.trigger)
    if schedule is None or fire.by_hand:
        return tell(conn, skill, f"“{skill.name}” failed. {words}", fire.id)
    failures = skill.failures + 1
    wait = retry_after(failures)
    if wait is None:
        changes: JsonObject = {"failures": failures, "enabled": False, "next_due": None, "disabled_why": words}
        skills.change_skill(conn, skill.id, changes)
        return tell(conn, skill, f"“{skill.name}” failed {failures} times and is switched off now. {words}", fire.id)
    once = isinstance(schedule, OneMoment)
    if once and skill.next_due is not None:  # another time was arranged meanwhile
        return []
    again = at + wait
    due = again if skill.next_due is None else min(skill.next_due, again)
    skills.change_skill(conn, skill.id, {"failures": failures, "next_due": due})
    if failures == 1 and once:  # what comes once is waited for
        return tell(conn, skill, f"“{skill.name}” failed and is tried again. {words}", fire.id)
    return []


def _tell_result(
    conn: Connection, skill: StoredSkill, fire: StoredFire, outcome: FireOutcome, at: datetime
) -> list[StoredEvent]:
    if not skill.notify or not outcome.text.strip():
        return []
    pause = timedelta(minutes=skill.notify_interval_minutes)
    if skill.last_notified_at is not None and at - skill.last_notified_at < pause:
        return []
    skills.change_skill(conn, skill.id, {"last_notified_at": at})
    goal = None if skill.goal_id is None else goals.find_goal(conn, skill.goal_id)
    text = outcome.text if goal is None else f"{goal.title}: {outcome.text}"
    return tell(conn, skill, text[:_TOLD_CHARS], fire.id, name=skill.name, trust=outcome.trust)


def end_run(conn: Connection, fire: StoredFire, ended: EndedTurn) -> list[StoredEvent]:
    """End the fire with its turn, or let it wait for the person's answer."""
    message, parked = ended.message, ended.parked
    if parked is None:
        return end_fire(conn, fire, FireOutcome.from_turn(conn, message, ended.result), ended.at)
    if not parked.waits:
        return end_fire(conn, fire, FireOutcome(state="skipped", text=parked.text), ended.at)
    if not parked.questions:
        return []
    skills.park_fire(conn, fire.id)
    skill = skills.load_skill_of_fire(conn, fire.id)
    if skill is None:
        return []
    ids = [one.id for one in parked.questions]
    text = f"“{skill.name}” needs your yes to go on.\n\n{parked.text}"
    return tell(conn, skill, text, f"{fire.id}:asks:{ids}", approvals=ids)
