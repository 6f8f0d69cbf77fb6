"""Where a call waits for a person's yes. A yes is bound to tool and exact arguments, and used once (I-04)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from sqlalchemy import Connection

from annabelle.core.errors import NotAllowed
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import now
from annabelle.core.ports import Audit
from annabelle.core.redact import Redactor
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Decision
from annabelle.hub.approvals.question import question
from annabelle.hub.approvals.queued import announce, granted_before, task_of, tell
from annabelle.store import approvals, decisions, messages, threads
from annabelle.store.approvals import Approval, NewApproval, Yes
from annabelle.store.database import Database
from annabelle.toolbox.journal import arguments_hash


@dataclass(frozen=True, slots=True)
class StoredDesk:
    """Questions and answers as rows of the hub's database: nothing a caller sends can stand for one.

    `asked` is told of every new question, so that whoever waits for its expiry knows.
    """

    database: Database
    redact: Redactor
    hours: float
    audit: Audit | None = None
    asked: Callable[[], None] = lambda: None

    async def granted(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
        """Whether the person said yes to exactly this call; the yes is used up by this call id.

        A queued call is made once itself, with the arguments it was queued with: a yes to the queueing is one to it.
        """
        call_id = context.call_id
        if call_id is None:
            return False
        if task_of(context) is not None and await self.database.read(
            lambda conn: _queued(conn, tool, arguments, context)
        ):
            return True

        def use(conn: Connection) -> str | None:
            return approvals.use(conn, _bound(conn, tool, arguments, context), call_id)

        approval_id = await self.database.write(use)
        if approval_id is None:
            return False
        failpoint("hub.after_grant")
        self._note("used", tool, context, approval_id)
        return True

    async def ask(self, tool: ToolSpec, arguments: JsonObject, context: CallContext, decision: Decision) -> ToolResult:
        """Write the question down. The same call again, after a crash, finds the same question."""
        call_id, thread_id, message_id = context.call_id, context.thread_id, context.message_id
        assert call_id is not None
        assert thread_id is not None
        assert message_id is not None

        def write(conn: Connection) -> Approval:
            threads.touch(conn, thread_id, now())
            bound, task_id = _bound(conn, tool, arguments, context), task_of(context)
            if approvals.denied(conn, bound, call_id) is not None:
                raise NotAllowed(
                    f"The user said no to exactly this call of {tool.name}.", hint="Do not ask again; go on without it."
                )
            new = NewApproval(
                bound=bound,
                thread_id=thread_id,
                message_id=message_id if task_id is None else announce(conn, task_id, call_id).id,
                call_id=call_id,
                tool=tool.name,
                arguments=cast("JsonObject", self.redact.data(arguments)),
                reasons=tuple(map(self.redact, decision.reasons)),
                expires_at=now() + timedelta(hours=self.hours),
            )
            asked = approvals.ask(conn, new)
            if task_id is not None:
                tell(conn, asked)
            return asked

        approval = await self.database.write(write)
        failpoint("hub.after_ask")
        if approval.tool != tool.name or approval.state in ("expired", "cancelled", "used"):
            raise NotAllowed(f"The question about {tool.name} was taken back.", hint="Go on without this call.")
        self._note("asked", tool, context, approval.id)
        self.asked()
        return ToolResult(text=question([approval]), trust="trusted", source="own", approval_id=approval.id)

    def _note(self, event: str, tool: ToolSpec, context: CallContext, approval_id: str) -> None:
        if self.audit is not None:
            facts: JsonObject = {
                "event": event,
                "approval_id": approval_id,
                "tool": tool.name,
                "agent_id": context.agent_id,
                "user_id": context.user_id,
                "call_id": context.call_id,
            }
            self.audit.note("approval", facts, context.trace_id)


def _bound(conn: Connection, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> Yes:
    task_id = task_of(context)
    return Yes(
        root_id=_root(conn, context) if task_id is None else task_id,
        user_id=context.user_id,
        agent_id=context.agent_id or "",
        digest=arguments_hash(tool.name, arguments),
    )


def _root(conn: Connection, context: CallContext) -> str:
    assert context.message_id is not None
    message = messages.load(conn, context.message_id)
    if message.state != "running":
        # It was stopped while the call was on its way: nobody waits for a question, and no yes holds any more.
        raise NotAllowed("The turn is over.")
    return decisions.root_of(message)


def _queued(conn: Connection, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
    """Whether the person said yes to the queueing of this call, or to an earlier attempt at it."""
    queued_as, task_id = context.queued_as or "", task_of(context) or ""
    digest = arguments_hash(tool.name, arguments)
    return approvals.used_for(conn, queued_as, context.user_id) or granted_before(conn, task_id, digest)
