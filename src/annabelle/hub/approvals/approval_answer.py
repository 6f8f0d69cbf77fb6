"""Stores a person's answer to a question once, with the message that resumes the turn (POL-03, POL-05)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from sqlalchemy import Connection

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import StoredEvent, TurnEvent, now
from annabelle.core.ports import AuditTrail
from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.core.text import escape_invisible, escape_invisible_json
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trace import current_trace
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.approval_store import resume_if_answered
from annabelle.hub.approvals.expiry import QuestionExpiry
from annabelle.hub.approvals.questions import audit_approval, find_asking_task, format_deadline
from annabelle.hub.base import HubStorage
from annabelle.hub.conversations.event_log import WriteResult
from annabelle.hub.tasks.task_runner import TaskRunner
from annabelle.policy.rules.rule import RuleMatch, collect_texts, exact_glob
from annabelle.policy.tool_traits import ToolTraits, guess_traits
from annabelle.store import approvals, messages, rules, threads
from annabelle.store.approvals import Approval, ApprovalState, ApprovalVerdict
from annabelle.store.messages import StoredMessage
from annabelle.toolbox.call_hooks import arguments_hash
from annabelle.toolbox.facade import Toolbox

_NEVER = frozenset({"execute", "control"})
"""Such calls depend on more than their arguments, or change what is allowed."""


@dataclass(frozen=True, slots=True)
class AllowanceRule:
    words: str
    match: JsonObject


def allowance_for(tool: ToolSpec, traits: ToolTraits, arguments: JsonObject, agent_id: str) -> AllowanceRule | None:
    """The rule that allows calls like this one, None if it would not be narrow.

    Destination and target must match exactly, the payload is free. Arguments that are missing must stay missing: a
    hidden copy to somebody else is a different call. If the tool was not reviewed, all arguments must match.
    """
    if _NEVER & set(traits.classes_of(arguments)):
        return None
    known = cast("JsonObject", tool.input_schema.get("properties", {}))
    free = set(traits.payload) & known.keys() if traits.known else set[str]()
    fixed = {name: arguments.get(name) for name in {**known, **arguments} if name not in free}
    if not any(collect_texts(value) for value in fixed.values()) or not all(map(_is_plain, fixed.values())):
        return None
    globs = {name: tuple(map(exact_glob, collect_texts(value))) for name, value in fixed.items()}
    given = [f"{name} = {escape_invisible_json(value)}" for name, value in fixed.items() if collect_texts(value)]
    rest = f"; {', '.join(sorted(free))} may be anything." if free else ", and nothing else."
    words = f"Always let {agent_id} call {tool.name} with {', '.join(given)}{rest}"
    return AllowanceRule(words, RuleMatch(tools=(exact_glob(tool.name),), arguments=globs).model_dump(mode="json"))


def _is_plain(value: object) -> bool:
    """Whether a rule can match the value. Objects are excluded: texts lose their meaning without the keys."""
    if isinstance(value, dict):
        return False
    if isinstance(value, list | tuple):
        return all(map(_is_plain, cast("list[object]", value)))
    return MASK not in str(value)


_STATE_WORDS: Final[dict[ApprovalState, str]] = {
    "pending": "ran out",
    "approved": "was approved",
    "used": "was approved and carried out",
    "denied": "was denied",
    "expired": "ran out",
    "cancelled": "was taken back",
}


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A person's answer. `arguments` replace the original ones; `always` also adds a narrow rule."""

    approve: bool
    arguments: JsonObject | None = None
    note: str = ""
    always: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalOutcome:
    """The answered question, and what continues: nothing while another question of the turn is open."""

    approval: Approval
    going_on: StoredMessage | None
    rule_id: str | None = None
    task_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswerDeps:
    storage: HubStorage
    thread_queue: ThreadQueue
    agents: AgentManager
    toolbox: Toolbox
    expiry: QuestionExpiry
    tasks: TaskRunner


class ApprovalService:
    """A user's own questions and their answers. The store only finds questions of the answering user."""

    def __init__(self, parts: ApprovalAnswerDeps, redact: Redactor, audit: AuditTrail | None = None) -> None:
        self._deps, self._redact, self._audit = parts, redact, audit
        self.expiry = parts.expiry

    async def listing(self, user_id: str, state: ApprovalState | None, limit: int) -> list[Approval]:
        return await self._deps.storage.database.read(
            lambda conn: approvals.list_approvals(conn, user_id, state, limit)
        )

    async def get(self, approval_id: str, user_id: str) -> Approval:
        return await self._deps.storage.database.read(lambda conn: approvals.get_approval(conn, approval_id, user_id))

    def allowance(self, approval: Approval) -> AllowanceRule | None:
        """The rule that `always` would add, None if there is no narrow one."""
        return self._allowance(approval, approval.arguments)

    async def decide(self, approval_id: str, user_id: str, answer: ApprovalAnswer) -> ApprovalOutcome:
        """Store the answer, and resume the turn if none of its questions is open."""
        parts = self._deps
        answer = replace(answer, note=self._redact.distinctive_secrets.mask(answer.note))
        await parts.expiry.expire_due()
        asked = await self.get(approval_id, user_id)
        verdict = self._verdict(asked, user_id, answer)
        allowance = self._allowance_to_add(asked, answer)

        def write(conn: Connection) -> WriteResult[ApprovalOutcome]:
            threads.touch_thread(conn, asked.thread_id, now())
            if not approvals.decide_approval(conn, approval_id, verdict):
                raise _already_answered(approvals.get_approval(conn, approval_id, user_id))
            rule = None
            if allowance is not None:
                rule = rules.add_allowance(
                    conn, user_id=user_id, agent_id=asked.agent_id, words=allowance.words, match=allowance.match
                )
            message = messages.load_message(conn, asked.message_id)
            going_on, task_id = resume_if_answered(conn, message), find_asking_task(message)
            now_is = approvals.get_approval(conn, approval_id, user_id)
            told = _decision_events(conn, now_is)
            return WriteResult(
                ApprovalOutcome(now_is, going_on, rule.id if rule is not None else None, task_id), user_id, told
            )

        decided = await parts.storage.events.transact(write)
        self._note(decided, answer)
        failpoint("hub.after_decision")
        if decided.going_on is not None:
            await parts.thread_queue.start_next(decided.going_on.thread_id)
        if decided.task_id is not None:
            await parts.tasks.continue_task(decided.task_id)
        return decided

    def _verdict(self, asked: Approval, user_id: str, answer: ApprovalAnswer) -> ApprovalVerdict:
        if asked.state != "pending":
            raise _already_answered(asked)
        if not answer.approve:
            if answer.arguments is not None or answer.always:
                field = "arguments" if answer.arguments is not None else "always"
                raise InvalidArguments(f"{field} goes with a yes only.", field=field)
            return ApprovalVerdict("denied", user_id, answer.note)
        # Raises if the agent may not work now. The question stays open.
        self._deps.agents.registry.agent(asked.agent_id)
        self._deps.agents.check_paused(asked.agent_id)
        edited = answer.arguments
        if edited is None or edited == asked.arguments:
            return ApprovalVerdict("approved", user_id, answer.note)
        if self._redact.distinctive_secrets.found_in(edited):
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
        policy = self._deps.agents.registry.policy(asked.agent_id)
        self._deps.toolbox.check(asked.tool, edited, policy)
        return ApprovalVerdict("approved", user_id, answer.note, edited, arguments_hash(asked.tool, edited))

    def _allowance_to_add(self, asked: Approval, answer: ApprovalAnswer) -> AllowanceRule | None:
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

    def _allowance(self, asked: Approval, arguments: JsonObject) -> AllowanceRule | None:
        tools = self._deps.toolbox.tools(caller="agent").tools
        spec = next((tool for tool in tools if tool.name == asked.tool), None)
        if spec is None:
            return None
        traits = self._deps.toolbox.reviewed_traits(spec) or guess_traits(spec)
        return allowance_for(spec, traits, arguments, asked.agent_id)

    def _note(self, decided: ApprovalOutcome, answer: ApprovalAnswer) -> None:
        approval = decided.approval
        event = "approved" if answer.approve else "denied"
        audit_approval(self._audit, event, approval, edited=approval.edited is not None, rule_id=decided.rule_id)
        if self._audit is not None and decided.rule_id is not None:
            made: JsonObject = {"event": "allowed", "rule_id": decided.rule_id, "user_id": approval.user_id}
            self._audit.note("rule", made, current_trace())


def _decision_events(conn: Connection, approval: Approval) -> list[StoredEvent]:
    verdict: Literal["Approved", "Denied"] = "Denied" if approval.state == "denied" else "Approved"
    changes = " with changes" if approval.edited is not None else ""
    data: JsonObject = {
        "text": f"{verdict}{changes}: {escape_invisible(approval.tool)}.",
        "approval_id": approval.id,
        "state": approval.state,
    }
    event = TurnEvent(message_id=approval.message_id, key=f"decided:{approval.id}", type="notice", data=data)
    return threads.append_events(conn, approval.thread_id, [event])


def _already_answered(approval: Approval) -> Conflict:
    at = approval.decided_at or approval.expires_at
    when = f" at {format_deadline(at)}" if approval.state != "cancelled" else ""
    return Conflict(
        f"The question about {escape_invisible(approval.tool)} "
        f"{_STATE_WORDS[approval.state]}{when}; it can not be answered again.",
        hint="If it is still wanted, ask for it again in the chat.",
    )
