"""A person's answer: written down once, in one transaction with the message that carries the turn on (POL-03)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from sqlalchemy import Connection

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.core.events import StoredEvent, TurnEvent
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import now
from annabelle.core.ports import Audit
from annabelle.core.redact import MASK, Redactor
from annabelle.core.tools import JsonObject
from annabelle.core.trace import current_trace
from annabelle.core.visible import visible
from annabelle.durable.lanes import Lanes
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.allowance import Allowance, allowance_for
from annabelle.hub.approvals.expiring import Expiring
from annabelle.hub.approvals.parking import carry_on
from annabelle.hub.approvals.question import until
from annabelle.hub.approvals.queued import asking_task
from annabelle.hub.events.log import EventLog, Written
from annabelle.policy.tools.guess import guessed
from annabelle.store import approvals, events, messages, rules, threads
from annabelle.store.approvals import Approval, ApprovalState, Verdict
from annabelle.store.database import Database
from annabelle.store.stored_message import StoredMessage
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.journal import arguments_hash

_HOW: Final[dict[ApprovalState, str]] = {
    "pending": "ran out",
    "approved": "was approved",
    "used": "was approved and carried out",
    "denied": "was denied",
    "expired": "ran out",
    "cancelled": "was taken back",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a question. Changed arguments replace the old ones; `always` makes a narrow rule too."""

    approve: bool
    arguments: JsonObject | None = None
    note: str = ""
    always: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """The question as it stands now, and what goes on: the message that carries the turn on, or the task that asked.

    Nothing goes on while another question of the turn waits.
    """

    approval: Approval
    going_on: StoredMessage | None
    rule_id: str | None = None
    task_id: str | None = None


async def _nobody_waits(_task_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class DecidingParts:
    """What answers need around them."""

    database: Database
    events: EventLog
    lanes: Lanes
    agents: AgentManager
    toolbox: Toolbox
    expiring: Expiring
    audit: Audit | None = None
    redact: Redactor = field(default_factory=Redactor)
    task_goes_on: Callable[[str], Awaitable[None]] = _nobody_waits


class Deciding:
    """Takes answers. Only the person who was asked gets this far; to others there is no such question."""

    def __init__(self, parts: DecidingParts) -> None:
        self._parts = parts

    def allowance(self, approval: Approval) -> Allowance | None:
        """The rule that `always` would make, to be shown before it is made; none where there is no narrow one."""
        return self._allowance(approval, approval.arguments)

    async def decide(self, approval_id: str, user_id: str, answer: Answer) -> Decided:
        """Write the answer down and go on with the turn once nothing it asked is open."""
        parts = self._parts
        answer = replace(answer, note=parts.redact.known.masked(answer.note))
        await parts.expiring.look()
        asked = await parts.database.read(lambda conn: approvals.get(conn, approval_id, user_id))
        verdict = self._verdict(asked, user_id, answer)
        allowance = self._always(asked, answer)

        def write(conn: Connection) -> Written[Decided]:
            threads.touch(conn, asked.thread_id, now())
            if not approvals.decide(conn, approval_id, verdict):
                raise _answered(approvals.get(conn, approval_id, user_id))
            rule = None
            if allowance is not None:
                rule = rules.add_allowance(
                    conn, user_id=user_id, agent_id=asked.agent_id, words=allowance.words, match=allowance.match
                )
            message = messages.load(conn, asked.message_id)
            going_on, task_id = carry_on(conn, message), asking_task(message)
            now_is = approvals.get(conn, approval_id, user_id)
            told = _told(conn, now_is)
            return Written(Decided(now_is, going_on, rule.id if rule is not None else None, task_id), user_id, told)

        decided = await parts.events.transact(write)
        self._note(decided, answer)
        failpoint("hub.after_decision")
        if decided.going_on is not None:
            await parts.lanes.offer(decided.going_on.thread_id)
        if decided.task_id is not None:
            await parts.task_goes_on(decided.task_id)
        return decided

    def _verdict(self, asked: Approval, user_id: str, answer: Answer) -> Verdict:
        if asked.state != "pending":
            raise _answered(asked)
        if not answer.approve:
            if answer.arguments is not None or answer.always:
                field = "arguments" if answer.arguments is not None else "always"
                raise InvalidArguments(f"{field} goes with a yes only.", field=field)
            return Verdict("denied", user_id, answer.note)
        # Nothing is lost: the question waits until the agent may work again, or is there again.
        self._parts.agents.agent(asked.agent_id)
        self._parts.agents.check_paused(asked.agent_id)
        edited = answer.arguments
        if edited is None or edited == asked.arguments:
            return Verdict("approved", user_id, answer.note)
        if self._parts.redact.known.within(edited):
            raise InvalidArguments(
                "The arguments hold a secret of this home, and secrets go to tools as handles only.",
                hint="Deny the call and make it yourself: annabelle tools call.",
                field="arguments",
            )
        if MASK in str(edited):
            raise InvalidArguments(
                f"The arguments hold {MASK}, which stands for a secret that is not shown.",
                hint="Approve the call as it is, or write a value of your own there.",
                field="arguments",
            )
        policy = self._parts.agents.policy(asked.agent_id)
        self._parts.toolbox.check(asked.tool, edited, policy)
        return Verdict("approved", user_id, answer.note, edited, arguments_hash(asked.tool, edited))

    def _always(self, asked: Approval, answer: Answer) -> Allowance | None:
        if not answer.always:
            return None
        allowance = self._allowance(asked, asked.arguments if answer.arguments is None else answer.arguments)
        if allowance is None:
            raise InvalidArguments(
                f"There is no narrow rule for {asked.tool}, so it can not always be allowed.",
                hint="Approve this one call instead.",
                field="always",
            )
        return allowance

    def _allowance(self, asked: Approval, arguments: JsonObject) -> Allowance | None:
        tools = self._parts.toolbox.tools(caller="agent").tools
        spec = next((tool for tool in tools if tool.name == asked.tool), None)
        if spec is None:
            return None
        traits = self._parts.toolbox.reviewed(spec) or guessed(spec)
        return allowance_for(spec, traits, arguments, asked.agent_id)

    def _note(self, decided: Decided, answer: Answer) -> None:
        audit, approval = self._parts.audit, decided.approval
        if audit is None:
            return
        facts: JsonObject = {
            "event": "approved" if answer.approve else "denied",
            "approval_id": approval.id,
            "tool": approval.tool,
            "agent_id": approval.agent_id,
            "user_id": approval.user_id,
            "edited": approval.edited is not None,
            "rule_id": decided.rule_id,
        }
        audit.note("approval", facts, current_trace())
        if decided.rule_id is not None:
            made: JsonObject = {"event": "allowed", "rule_id": decided.rule_id, "user_id": approval.user_id}
            audit.note("rule", made, current_trace())


def _told(conn: Connection, approval: Approval) -> list[StoredEvent]:
    verdict: Literal["Approved", "Denied"] = "Denied" if approval.state == "denied" else "Approved"
    changes = " with changes" if approval.edited is not None else ""
    data: JsonObject = {
        "text": f"{verdict}{changes}: {visible(approval.tool)}.",
        "approval_id": approval.id,
        "state": approval.state,
    }
    event = TurnEvent(message_id=approval.message_id, key=f"decided:{approval.id}", type="notice", data=data)
    return events.append(conn, approval.thread_id, [event])


def _answered(approval: Approval) -> Conflict:
    at = approval.decided_at or approval.expires_at
    when = f" at {until(at)}" if approval.state != "cancelled" else ""
    return Conflict(
        f"The question about {visible(approval.tool)} {_HOW[approval.state]}{when}; it can not be answered again.",
        hint="If it is still wanted, ask for it again in the chat.",
    )
