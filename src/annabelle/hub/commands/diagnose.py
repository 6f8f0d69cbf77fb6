"""`/diagnose`: whether all is well, and what to do where it is not (DIA-01)."""

from __future__ import annotations

from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.diagnosis.report import render_report


class DiagnoseCommand(Command):
    info = CommandInfo("diagnose", "Checks whether all is well.", examples=("/diagnose",), admin=True, scope="manage")

    async def run(self, call: CommandCall) -> CommandAnswer:
        self.expect_no_words(call)
        return CommandAnswer(render_report(await self.deps.services.upkeep.diagnosis.run()))
