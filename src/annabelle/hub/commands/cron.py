"""`/cron`: what runs by itself, and when."""

from __future__ import annotations

from typing import Final

from annabelle.hub.agents.halts import SCHEDULER
from annabelle.hub.commands.command import Button, Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.skills.skill_service import format_moment
from annabelle.store.skills import StoredSkill

_MOST: Final = 30


class CronCommand(Command):
    info = CommandInfo(name="cron", summary="What runs by itself, and when it is due next.", examples=("/cron",))

    async def run(self, call: CommandCall) -> CommandAnswer:
        self.expect_no_words(call)
        found = await self.deps.services.skills.list(call.user_id)
        on = sorted((one for one in found if one.enabled), key=lambda one: (one.next_due is None, one.next_due, one.id))
        lines = [self._describe(skill) for skill in on[:_MOST]] or ["Nothing runs by itself."]
        if len(on) > _MOST:
            lines.append(f"… and {len(on) - _MOST} more.")
        if off := len(found) - len(on):
            lines.append(f"{off} {'is' if off == 1 else 'are'} switched off.")
        if not self.deps.stopper.halts.is_halted(SCHEDULER):
            return CommandAnswer("\n".join(lines))
        resume = (Button("Let it go on", f"/resume {SCHEDULER}"),) if call.admin else ()
        return CommandAnswer("\n".join(["The scheduler is stopped, so nothing of this happens now.", *lines]), resume)

    def _describe(self, skill: StoredSkill) -> str:
        due = (
            ""
            if skill.next_due is None
            else f", next {format_moment(skill.next_due, self.deps.services.skills.time_zone)}"
        )
        failed = f", failed {skill.failures} times in a row" if skill.failures else ""
        return f"{skill.name}: {self.deps.services.skills.describe(skill)}{due}{failed}"
