"""`/approve` and `/deny`: answer what Annabelle asks before a call."""

from __future__ import annotations

from typing import Final

from annabelle.core.errors import NotFound
from annabelle.core.text import escape_invisible
from annabelle.core.tools import name_in_words
from annabelle.hub.approvals.approval_answer import ApprovalAnswer
from annabelle.hub.commands.command import Button, Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.store.approvals import Approval

_ANSWERS: Final = (("Yes", "approve"), ("No", "deny"))


class ApprovalCommand(Command):
    """What both have in common: they answer one question, the newest of the person if none is named."""

    async def decide(self, call: CommandCall, *, approve: bool) -> CommandAnswer:
        if len(call.words) > 1:
            raise self.wrong_usage("One question is answered at a time.")
        approval_id = call.words[0] if call.words else (await self._find_newest(call)).id
        decided = await self.deps.services.approvals.decide(approval_id, call.user_id, ApprovalAnswer(approve))
        tool = name_in_words(escape_invisible(decided.approval.tool))
        waiting = await self.deps.services.approvals.listing(call.user_id, "pending", 1)
        more = " Another question waits." if waiting else ""
        buttons = [Button(say, f"/{name} {one.id}") for one in waiting for say, name in _ANSWERS]
        goes_on = None if decided.going_on is None else decided.going_on.id
        return CommandAnswer(f"{'Approved' if approve else 'Denied'}: {tool}.{more}", tuple(buttons), goes_on)

    async def _find_newest(self, call: CommandCall) -> Approval:
        """The newest question of this chat, or else of any."""
        await self.deps.services.approvals.expiry.expire_due()
        waiting = await self.deps.services.approvals.listing(call.user_id, "pending", 100)
        if not waiting:
            raise NotFound("No question waits for your answer.")
        return next((one for one in waiting if one.thread_id == call.thread_id), waiting[0])


class ApproveCommand(ApprovalCommand):
    info = CommandInfo(
        name="approve",
        usage="[ID]",
        summary="Say yes to the newest question, or to the one with this id.",
        examples=("/approve",),
        scope="approve",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        return await self.decide(call, approve=True)


class DenyCommand(ApprovalCommand):
    info = CommandInfo(
        name="deny",
        usage="[ID]",
        summary="Say no to the newest question, or to the one with this id.",
        examples=("/deny",),
        scope="approve",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        return await self.decide(call, approve=False)
