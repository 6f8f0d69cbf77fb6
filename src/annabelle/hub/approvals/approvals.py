"""Everything the hub does about questions to people, as requests reach it."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.hub.approvals.allowance import Allowance
from annabelle.hub.approvals.deciding import Answer, Decided, Deciding
from annabelle.hub.approvals.expiring import Expiring
from annabelle.hub.approvals.withdrawing import Withdrawing
from annabelle.store import approvals
from annabelle.store.approvals import Approval, ApprovalState
from annabelle.store.database import Database


@dataclass(frozen=True, slots=True)
class Approvals:
    """A person's own questions: what waits, what was answered, and the answers themselves."""

    database: Database
    deciding: Deciding
    expiring: Expiring
    withdrawing: Withdrawing

    async def listing(self, user_id: str, state: ApprovalState | None, limit: int) -> list[Approval]:
        return await self.database.read(lambda conn: approvals.listing(conn, user_id, state, limit))

    async def get(self, approval_id: str, user_id: str) -> Approval:
        return await self.database.read(lambda conn: approvals.get(conn, approval_id, user_id))

    async def decide(self, approval_id: str, user_id: str, answer: Answer) -> Decided:
        return await self.deciding.decide(approval_id, user_id, answer)

    def allowance(self, approval: Approval) -> Allowance | None:
        """The rule that "always" would make of it."""
        return self.deciding.allowance(approval)
