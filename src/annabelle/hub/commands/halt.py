"""`/kill` and `/resume`: stop a part of Annabelle until it is let go on, also across restarts (CMD-02)."""

from __future__ import annotations

from annabelle.core.errors import Conflict
from annabelle.hub.agents.halts import ALL
from annabelle.hub.agents.stopper import describe_resume, describe_stop
from annabelle.hub.commands.command import Button, Command, CommandAnswer, CommandCall, CommandInfo

_USAGE = "[all|thinker|scheduler|CHANNEL]"


class HaltCommand(Command):
    """What both have in common."""

    def read_target(self, call: CommandCall) -> str:
        """What is meant; everything if nothing is named."""
        known = (ALL, *self.deps.stopper.halts.parts)
        if not call.words:
            return ALL
        target = call.words[0].lower()
        if len(call.words) > 1 or target not in known:
            raise self.wrong_usage(f"“{' '.join(call.words)}” is none of: {', '.join(known)}.")
        return target


class KillCommand(HaltCommand):
    info = CommandInfo(
        name="kill",
        usage=_USAGE,
        summary="Stop everything, all agents, the schedule or a channel, until /resume.",
        examples=("/kill scheduler", "/kill"),
        admin=True,
        scope="manage",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        target = self.read_target(call)
        turns = await self.deps.stopper.stop(target, call.user_id)
        resume = f"/resume {target}"
        text = f"{describe_stop(target, turns)} It stays so, also over a restart, until: {resume}"
        return CommandAnswer(text, (Button("Let it go on", resume),))


class ResumeCommand(HaltCommand):
    info = CommandInfo(
        name="resume",
        usage=_USAGE,
        summary="Let go on what /kill stopped.",
        examples=("/resume scheduler", "/resume"),
        admin=True,
        scope="manage",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        target = self.read_target(call)
        try:
            was = await self.deps.stopper.resume(target, call.user_id)
        except Conflict:
            return CommandAnswer(
                f"Everything is stopped, not just {target}.", (Button("Resume all", f"/resume {ALL}"),)
            )
        return CommandAnswer(describe_resume(target, was=was))
