"""`/cost`: what was spent today and this month."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.messages import now
from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.policy.costs import load_caps
from annabelle.store import cost_control, ledger
from annabelle.store.cost_control import NANO, PeriodSpending
from annabelle.store.ledger import UsageTotal


class CostCommand(Command):
    info = CommandInfo(
        name="cost", summary="What was spent today and this month, and what is left.", examples=("/cost",)
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        self.expect_no_words(call)
        at = now()
        day_key, month_key = cost_control.periods_of(at)

        def read(conn: Connection) -> tuple[list[PeriodSpending], list[UsageTotal]]:
            return list(cost_control.read_spending(conn, at)), ledger.sum_usage(conn, call.user_id, "day")

        spent, days = await self.deps.storage.database.read(read)
        today = next((day for day in days if day.key == day_key), None)
        month = [day for day in days if day.key.startswith(month_key)]
        lines = [f"Today you used {_describe([today] if today else [])}, this month {_describe(month)}."]
        if call.admin:
            lines += [
                self._describe_budget(name, one) for name, one in zip(("Today", "This month"), spent, strict=True)
            ]
        return CommandAnswer("\n".join(lines))

    def _describe_budget(self, name: str, spent: PeriodSpending) -> str:
        cap = load_caps(self.deps.status.base.settings).cap_for(spent.period)
        used = (spent.settled + spent.reserved) / NANO
        budget = "no budget is set" if cap is None else f"{cap / NANO:.2f} USD are the budget"
        return f"{name} for everybody: {used:.4f} USD; {budget}."


def _describe(days: list[UsageTotal]) -> str:
    tokens = sum(day.usage.input_tokens + day.usage.output_tokens for day in days)
    cost, calls = sum(day.usage.cost_usd or 0 for day in days), sum(day.calls for day in days)
    return f"{calls} model {'call' if calls == 1 else 'calls'} with {tokens} tokens for {cost:.4f} USD"
